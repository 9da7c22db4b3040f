"""The contestants over many pairs: entities end to end in flat arrays, and one call for all pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.relate_paper.baselines import baseline_ignore, baseline_static
from benchmarks.relate_paper.nodes import count_nodes
from benchmarks.relate_paper.tree import NO_LIMIT, possible_worlds, sase

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

# All take the pairs (n, 2) of entities' numbers; where the events of each entity begin, with one entry more than
# entities; times, lo and hi of all events; and the question.


@njit(cache=True)
def possible_worlds_of_pairs(
    pairs: I64,
    events: I64,
    times: F64,
    lo: F64,
    hi: F64,
    outer: int,
    inner: int,
    relations: int,
    limit: int = NO_LIMIT,
    sure: bool = False,
) -> tuple[F64, I64]:
    """The probability of each pair by the tree, and its nodes; NaN where they reach the limit."""
    probability, nodes = np.empty(len(pairs)), np.empty(len(pairs), np.int64)
    for n in range(len(pairs)):
        a, end_a, b, end_b = events[pairs[n, 0]], events[pairs[n, 0] + 1], events[pairs[n, 1]], events[pairs[n, 1] + 1]
        probability[n], nodes[n] = possible_worlds(
            times[a:end_a], lo[a:end_a], hi[a:end_a], times[b:end_b], lo[b:end_b], hi[b:end_b],
            outer, inner, relations, limit, sure,
        )  # fmt: skip
    return probability, nodes


@njit(cache=True)
def sase_of_pairs(
    pairs: I64,
    events: I64,
    times: F64,
    lo: F64,
    hi: F64,
    outer: int,
    inner: int,
    relations: int,
    delta: int,
    limit: int = NO_LIMIT,
) -> tuple[F64, I64]:
    """The same with delta timestamps for each lost event."""
    probability, nodes = np.empty(len(pairs)), np.empty(len(pairs), np.int64)
    for n in range(len(pairs)):
        a, end_a, b, end_b = events[pairs[n, 0]], events[pairs[n, 0] + 1], events[pairs[n, 1]], events[pairs[n, 1] + 1]
        probability[n], nodes[n] = sase(
            times[a:end_a], lo[a:end_a], hi[a:end_a], times[b:end_b], lo[b:end_b], hi[b:end_b],
            outer, inner, relations, delta, limit,
        )  # fmt: skip
    return probability, nodes


@njit(cache=True)
def baselines_of_pairs(
    pairs: I64, events: I64, times: F64, lo: F64, hi: F64, outer: int, inner: int, relations: int, static: bool
) -> F64:
    """1 or 0 for each pair, by BaselineStatic or by BaselineIgnore."""
    found = np.empty(len(pairs))
    for n in range(len(pairs)):
        a, end_a, b, end_b = events[pairs[n, 0]], events[pairs[n, 0] + 1], events[pairs[n, 1]], events[pairs[n, 1] + 1]
        times_a, lo_a, hi_a = times[a:end_a], lo[a:end_a], hi[a:end_a]
        times_b, lo_b, hi_b = times[b:end_b], lo[b:end_b], hi[b:end_b]
        if static:
            found[n] = baseline_static(times_a, lo_a, hi_a, times_b, lo_b, hi_b, outer, inner, relations)
        else:
            found[n] = baseline_ignore(times_a, lo_a, hi_a, times_b, lo_b, hi_b, outer, inner, relations)
    return found


@njit(cache=True)
def nodes_of_pairs(
    pairs: I64, events: I64, times: F64, lo: F64, hi: F64, outer: int, inner: int, relations: int, sure: bool = False
) -> F64:
    """How many nodes the tree of each pair has, without making them."""
    nodes = np.empty(len(pairs))
    for n in range(len(pairs)):
        a, end_a, b, end_b = events[pairs[n, 0]], events[pairs[n, 0] + 1], events[pairs[n, 1]], events[pairs[n, 1] + 1]
        nodes[n] = count_nodes(
            times[a:end_a], lo[a:end_a], hi[a:end_a], times[b:end_b], lo[b:end_b], hi[b:end_b],
            outer, inner, relations, sure,
        )  # fmt: skip
    return nodes
