"""Distributions of counts: how many of several independent events are true, counted up to a limit."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64


def summed_counts(p: F64, group: I64, n_groups: int) -> F64:
    """The distribution of the sum of the independent counts of each group; a group without counts has the sum 0.

    Parameters
    ----------
    p : (counts, limit + 1)
        The probability of each number from 0 on; the last column is that of the limit or more.
    group : the group of each count, below `n_groups`

    Examples
    --------
    >>> heads = np.array([[0.5, 0.5, 0.0]] * 3)
    >>> summed_counts(heads, np.array([0, 0, 0]), 2).tolist()
    [[0.125, 0.375, 0.5], [1.0, 0.0, 0.0]]
    """
    order = np.argsort(group, kind="stable")
    p, group = p[order], group[order]
    while True:
        begins = np.flatnonzero(np.concatenate([[True], np.diff(group) != 0])) if len(group) else group
        rank = np.arange(len(group)) - np.repeat(begins, np.diff(np.append(begins, len(group))))
        odd = rank % 2 == 1
        if not odd.any():
            break
        # Neighbours are added in pairs, so that all groups need only as many rounds as the largest has levels.
        right = np.flatnonzero(odd)
        p[right - 1] = _sums(p[right - 1], p[right])
        p, group = p[~odd], group[~odd]
    sums = np.zeros((n_groups, p.shape[1]))
    sums[:, 0] = 1.0
    sums[group] = p
    return sums


def _sums(first: F64, second: F64) -> F64:
    """The distribution of the sum of two independent counts, row by row."""
    size = first.shape[1]
    sums = np.zeros_like(first)
    for count in range(size):
        sums[:, count:] += first[:, count : count + 1] * second[:, : size - count]
        sums[:, -1] += first[:, count] * second[:, size - count :].sum(axis=1)
    return sums
