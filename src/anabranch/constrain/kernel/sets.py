"""Finds maximal sets of events that agree with each other, by the algorithm of Bron and Kerbosch with pivots.

A *group* is the first event of sets, and its candidates: the events that agree with it. The candidates that come before
the first event are in no set of the group, but a set with which one of them agrees is not maximal. So each maximal set
is found once, in the group of its first event.

A search has lists of candidates that agree with all chosen ones, in a pool. A list has three parts: the candidates that
are chosen next, those that can be added later, and those that must not be added any more. The candidates that agree
with the *pivot* need not be chosen next: a maximal set that has none of the others has the pivot.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.constrain.kernel.checks import agree
from anabranch.constrain.kernel.search import larger
from anabranch.constrain.kernel.tables import Table

#: The columns of `levels`: the start of a list in the pool, the end of its first two parts, its end, the end of its
#: first part, and the index in it of the chosen candidate.
START, OPEN, END, NEXT, AT = range(5)


@compiled
def agreements(
    pairs: Table, checks: Table, events: Table, columns: F64, pair: int, scale: float, radius: float, members: I64,
    starts: I64,
) -> Bools:  # fmt: skip
    """Whether every two candidates of a group agree: one square matrix per group, one after the other."""
    total = 0
    for group in range(len(starts) - 1):
        total += (starts[group + 1] - starts[group]) ** 2
    matrix, block = np.zeros(total, np.bool_), 0
    for group in range(len(starts) - 1):
        first, size = starts[group], starts[group + 1] - starts[group]
        for i in range(size):
            for j in range(i + 1, size):
                if agree(pairs, checks, events, columns, pair, members[first + i], members[first + j], scale, radius):
                    matrix[block + i * size + j] = matrix[block + j * size + i] = True
        block += size * size
    return matrix


@compiled
def maximal_sets(matrix: Bools, starts: I64, earlier: I64, least: int, most: int) -> tuple[I64, int]:
    """Find the maximal sets of all groups.

    Parameters
    ----------
    matrix : of `agreements`
    starts : the index of the first candidate of each group; one entry more than groups
    earlier : how many candidates of each group, the first ones, come before its first event
    least : the least number of events of a set, with the first event
    most : the most steps of the search in a group

    Returns
    -------
    For each set, its group, the number of its candidates, and their indices; and the first group that needs more steps,
    or -1.
    """
    found, length, block = np.empty(1024, np.int64), 0, 0
    for group in range(len(earlier)):
        size = starts[group + 1] - starts[group]
        found, length, steps = _sets_of_group(
            matrix, block, size, starts[group], group, earlier[group], least, most, found, length
        )
        if steps > most:
            return found[:length].copy(), group
        block += size * size
    return found[:length].copy(), -1


@compiled
def _sets_of_group(
    matrix: Bools, block: int, size: int, first: int, group: int, earlier: int, least: int, most: int, found: I64,
    length: int,
) -> tuple[I64, int, int]:  # fmt: skip
    """Append the sets of one group; returns the sets, their length and the number of steps."""
    pool, levels, steps = np.empty(4 * size + 4, np.int64), np.zeros((size + 1, 5), np.int64), 0
    for index in range(size):
        pool[index] = (index + earlier) % size
    levels[0, OPEN], levels[0, END] = size - earlier, size
    if size == 0 and least <= 1:
        found, length = _write(pool, levels, 0, group, first, found, length)
    _choose_next(matrix, block, size, pool, levels, 0)
    depth = 0
    while depth >= 0 and steps <= most:
        if levels[depth, AT] == levels[depth, NEXT]:
            depth -= 1
            if depth >= 0:
                levels[depth, AT] += 1
            continue
        steps += 1
        if len(pool) < 2 * levels[depth, END] + 1:
            pool = larger(pool, 2 * levels[depth, END] + 1)
        _add(matrix, block, size, pool, levels, depth)
        n_open, n_all = levels[depth + 1, OPEN] - levels[depth + 1, START], levels[depth + 1, END] - levels[depth, END]
        if n_all == 0 and depth + 2 >= least:
            found, length = _write(pool, levels, depth + 1, group, first, found, length)
        if n_open > 0 and depth + 2 + n_open >= least:
            depth += 1
            _choose_next(matrix, block, size, pool, levels, depth)
        else:
            levels[depth, AT] += 1
    return found, length, steps


@compiled_inline
def _add(matrix: Bools, block: int, size: int, pool: I64, levels: I64, depth: int) -> None:
    """Write the list of the next depth: the candidates that agree with the chosen one.

    Those that were chosen before it at this depth must not be added any more.
    """
    at, end = levels[depth, AT], levels[depth, END]
    line = block + pool[at] * size
    top = levels[depth + 1, START] = end
    for index in range(at + 1, levels[depth, OPEN]):
        if matrix[line + pool[index]]:
            pool[top] = pool[index]
            top += 1
    levels[depth + 1, OPEN] = top
    for index in range(levels[depth, START], at):
        if matrix[line + pool[index]]:
            pool[top] = pool[index]
            top += 1
    for index in range(levels[depth, OPEN], end):
        if matrix[line + pool[index]]:
            pool[top] = pool[index]
            top += 1
    levels[depth + 1, END] = top


@compiled_inline
def _choose_next(matrix: Bools, block: int, size: int, pool: I64, levels: I64, depth: int) -> None:
    """Move the candidates that do not agree with the pivot to the first part of a list.

    The pivot is the candidate that agrees with most of those that can be added.
    """
    start, open_end = levels[depth, START], levels[depth, OPEN]
    best, pivot = -1, 0
    for index in range(start, levels[depth, END]):
        line, count = block + pool[index] * size, 0
        for other in range(start, open_end):
            count += matrix[line + pool[other]]
        if count > best:
            best, pivot = count, line
    top = start
    for index in range(start, open_end):
        if not matrix[pivot + pool[index]]:
            pool[top], pool[index] = pool[index], pool[top]
            top += 1
    levels[depth, NEXT], levels[depth, AT] = top, start


@compiled
def _write(pool: I64, levels: I64, depth: int, group: int, first: int, found: I64, length: int) -> tuple[I64, int]:
    """Append a set: the candidates that are chosen at the depths before this one."""
    if length + depth + 2 > len(found):
        found = larger(found, length + depth + 2)
    found[length], found[length + 1] = group, depth
    for level in range(depth):
        found[length + 2 + level] = first + pool[levels[level, AT]]
    return found, length + depth + 2
