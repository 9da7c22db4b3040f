"""The number of nodes of a tree. Branches with the same future are counted together, so this is polynomial."""

from __future__ import annotations

from numba import types
from numba.typed import Dict

from anabranch.compiled import compiled
from reproductions.simpmatch.gaps import make_sides
from reproductions.simpmatch.inputs import PairInput
from reproductions.simpmatch.query import MAYBE, SURELY, UNKNOWN, Query, closed_outcome, make_query, open_outcome

#: A kind of node: the events of a and of b so far, the rank at which the open segment of a began (or -1), and how many
#: segments of a were satisfied.
STATE = types.UniTuple(types.int64, 4)


@compiled
def count_nodes(pair: PairInput, stop_early: bool) -> float:
    """Return the number of nodes that `possible_worlds` would add, without building them; a float, because it is large.

    Nodes with the same events so far, the same start of the open segment of a and as many satisfied segments have the
    same future. `ways` has the number of nodes of each such kind: gap by gap, and in a gap by the events placed in it.
    """
    a, b, bounds = make_sides(pair)
    query = make_query(pair)
    nodes = 0.0
    entering = Dict.empty(STATE, types.float64)
    _add(entering, query, stop_early, 0, 0, -1, 0, 1.0)
    for g in range(len(bounds)):
        ways, leaving = entering, Dict.empty(STATE, types.float64)
        while len(ways):
            further = Dict.empty(STATE, types.float64)
            for (i, j, begin, satisfied), count in ways.items():
                if a.run[g] <= i < a.run_end[g]:
                    nodes += count
                    new_begin, new_satisfied = _after_event(query, i, begin, satisfied, 2 * j)
                    _add(further, query, stop_early, i + 1, j, new_begin, new_satisfied, count)
                if b.run[g] <= j < b.run_end[g]:
                    nodes += count
                    _add(further, query, stop_early, i, j + 1, begin, satisfied, count)
                if i >= a.need[g] and j >= b.need[g]:
                    tied = 1 if b.recorded[g] >= 0 else 0
                    nodes += count * tied
                    if a.recorded[g] >= 0:
                        nodes += count
                        new_begin, new_satisfied = _after_event(query, i, begin, satisfied, 2 * j + tied)
                        _add(leaving, query, stop_early, i + 1, j + tied, new_begin, new_satisfied, count)
                    else:
                        _add(leaving, query, stop_early, i, j + tied, begin, satisfied, count)
            ways = further
        entering = leaving
    return nodes


@compiled
def _after_event(query: Query, i: int, begin: int, satisfied: int, rank: int) -> tuple[int, int]:
    """Return where the open segment of a began, and how many are satisfied, after event i of a happened at a rank."""
    if i % 2 == 0:
        return (rank if i // 2 < query.segments_a else -1), satisfied
    closed = closed_outcome(query.inner, query.relations, query.segments_b, begin, rank)
    return -1, min(satisfied + (1 if closed == SURELY else 0), query.outer)


@compiled
def _add(ways, query: Query, stop_early: bool, i: int, j: int, begin: int, satisfied: int, count: float) -> None:
    """Add a number of nodes to their kind, unless MATCHESQUERY ends their branches."""
    left = query.segments_a - i // 2 - (1 if begin >= 0 else 0)
    may = satisfied + (left if query.future[j] >= MAYBE else 0)
    must = satisfied + (left if query.future[j] == SURELY else 0)
    if begin >= 0:
        if query.opened[begin, j] == UNKNOWN:
            query.opened[begin, j] = open_outcome(query.inner, query.relations, query.segments_b, begin, j)
        may += 1 if query.opened[begin, j] >= MAYBE else 0
        must += 1 if query.opened[begin, j] == SURELY else 0
    if may >= query.outer and not (stop_early and must >= query.outer):
        state = (i, j, begin, satisfied)
        ways[state] = ways.get(state, 0.0) + count
