"""How many nodes the tree would have: branches with the same future are counted together, so this is polynomial."""

from __future__ import annotations

from numba import types
from numba.typed import Dict

from anabranch.compiled import compiled
from benchmarks.relate_paper.asked import Asked
from benchmarks.relate_paper.gaps import make_sides
from benchmarks.relate_paper.query import MAYBE, SURELY, UNKNOWN, Query, fate_closed, fate_open, make_query

#: A kind of node: the events of a and of b so far, the rank at which the open segment of a began (or -1), and how many
#: of its segments were satisfied.
STATE = types.UniTuple(types.int64, 4)


@compiled
def count_nodes(asked: Asked, sure: bool) -> float:
    """The nodes that `possible_worlds` would add, without making them; as a float, because they are many.

    Nodes with the same events so far, the same beginning of the open segment of a and as many satisfied ones have the
    same future. `ways` has the number of nodes of each such kind: gap by gap, and in a gap by the events placed in it.
    """
    a, b, bounds = make_sides(asked)
    query = make_query(asked)
    nodes = 0.0
    entering = Dict.empty(STATE, types.float64)
    _add(entering, query, sure, 0, 0, -1, 0, 1.0)
    for g in range(len(bounds)):
        ways, leaving = entering, Dict.empty(STATE, types.float64)
        while len(ways):
            further = Dict.empty(STATE, types.float64)
            for (i, j, begin, satisfied), count in ways.items():
                if a.run[g] <= i < a.run_end[g]:
                    nodes += count
                    begun, more = _after_event(query, i, begin, satisfied, 2 * j)
                    _add(further, query, sure, i + 1, j, begun, more, count)
                if b.run[g] <= j < b.run_end[g]:
                    nodes += count
                    _add(further, query, sure, i, j + 1, begin, satisfied, count)
                if i >= a.need[g] and j >= b.need[g]:
                    tied = 1 if b.recorded[g] >= 0 else 0
                    nodes += count * tied
                    if a.recorded[g] >= 0:
                        nodes += count
                        begun, more = _after_event(query, i, begin, satisfied, 2 * j + tied)
                        _add(leaving, query, sure, i + 1, j + tied, begun, more, count)
                    else:
                        _add(leaving, query, sure, i, j + tied, begin, satisfied, count)
            ways = further
        entering = leaving
    return nodes


@compiled
def _after_event(query: Query, i: int, begin: int, satisfied: int, rank: int) -> tuple[int, int]:
    """Where the open segment of a began, and how many were satisfied, once event i of a has happened at a rank."""
    if i % 2 == 0:
        return (rank if i // 2 < query.segments_a else -1), satisfied
    closed = fate_closed(query.inner, query.relations, query.segments_b, begin, rank)
    return -1, min(satisfied + (1 if closed == SURELY else 0), query.outer)


@compiled
def _add(ways, query: Query, sure: bool, i: int, j: int, begin: int, satisfied: int, count: float) -> None:
    """Add to a kind of node, unless MATCHESQUERY ends its branches."""
    left = query.segments_a - i // 2 - (1 if begin >= 0 else 0)
    may = satisfied + (left if query.to_come[j] >= MAYBE else 0)
    must = satisfied + (left if query.to_come[j] == SURELY else 0)
    if begin >= 0:
        if query.opened[begin, j] == UNKNOWN:
            query.opened[begin, j] = fate_open(query.inner, query.relations, query.segments_b, begin, j)
        may += 1 if query.opened[begin, j] >= MAYBE else 0
        must += 1 if query.opened[begin, j] == SURELY else 0
    if may >= query.outer and not (sure and must >= query.outer):
        state = (i, j, begin, satisfied)
        ways[state] = ways.get(state, 0.0) + count
