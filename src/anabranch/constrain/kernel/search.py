"""Whole solutions: forward checking over the roles that agree with a new one.

Each variable that still needs events has a list of roles that agree with all chosen so far. The variable with the
fewest goes first; each choice shortens the lists of the others, and is given up as soon as one is too short.

Interchangeable events of one variable are chosen from the end of its list towards the beginning, so that each set of
them is found once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from anabranch.constrain.kernel.checks import I64, Events, Graph, agree


class Lists(NamedTuple):
    """The lists of a search, by depth and variable of the question; all lie in one pool.

    Attributes
    ----------
    begin, end : where each list begins and ends in the pool
    need : how many events each variable needs still
    chosen, variable : the role of each depth, and its variable within the question
    pointer : of each depth, the place of its choice in the list
    """

    begin: Any
    end: Any
    need: Any
    chosen: Any
    variable: Any
    pointer: Any


@njit(cache=True)
def new_lists(graph: Graph) -> Lists:
    """Room for the largest question."""
    variables, places = 0, 0
    for question in range(len(graph.first) - 1):
        own = graph.count[graph.first[question] : graph.first[question + 1]]
        variables, places = max(variables, len(own)), max(places, np.sum(own))
    shape = (places + 1, variables)
    numbers = np.zeros(places + 1, np.int64)
    return Lists(
        np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(variables, np.int64),
        numbers, numbers.copy(), numbers.copy(),
    )  # fmt: skip


@njit(cache=True)
def search(
    graph: Graph, events: Events, lists: Lists, question: int, pool: I64, top: int, found: I64, size: int
) -> tuple[I64, I64, int]:
    """Write all solutions that contain the first chosen role; gives the pool, the solutions, and their size.

    The lists of depth 0 are those of the roles that agree with it. A solution is written as its question, then the
    events of its variables, those of a counted one in rising order.
    """
    depth = 0
    lists.pointer[0] = -1
    while depth >= 0:
        if lists.pointer[depth] < 0:
            own = _fewest(lists, depth, graph.first[question + 1] - graph.first[question])
            if own < 0:
                found, size = _write(graph, events, lists, question, depth, found, size)
                depth -= 1
                continue
            lists.variable[depth + 1] = own
            lists.pointer[depth] = lists.end[depth, own]
            lists.need[own] -= 1
        own = lists.variable[depth + 1]
        lists.pointer[depth] -= 1
        if lists.pointer[depth] < lists.begin[depth, own]:
            lists.need[own] += 1
            depth -= 1
            continue
        lists.chosen[depth + 1] = pool[lists.pointer[depth]]
        pool, fits = _shorten(graph, events, lists, question, depth, pool, top)
        if fits:
            depth += 1
            lists.pointer[depth] = -1
    return pool, found, size


@njit(cache=True)
def _fewest(lists: Lists, depth: int, variables: int) -> int:
    """The variable that needs events and has the fewest to choose from; -1 where none needs any."""
    best, fewest = -1, 0
    for u in range(variables):
        length = lists.end[depth, u] - lists.begin[depth, u]
        if lists.need[u] > 0 and (best < 0 or length < fewest):
            best, fewest = u, length
    return best


@njit(cache=True)
def _shorten(
    graph: Graph, events: Events, lists: Lists, question: int, depth: int, pool: I64, top: int
) -> tuple[I64, bool]:
    """The lists of the next depth: what agrees with the role just chosen. False where one of them is too short."""
    first, own, role = graph.first[question], lists.variable[depth + 1], lists.chosen[depth + 1]
    y = events.event[role]
    place = top
    for u in range(graph.first[question + 1] - first):
        place = max(place, lists.end[depth, u])
    for u in range(graph.first[question + 1] - first):
        lists.begin[depth + 1, u] = place
        lists.end[depth + 1, u] = place
        if lists.need[u] == 0:
            continue
        pair = graph.pair[first + own] + u
        stop = lists.pointer[depth] if u == own else lists.end[depth, u]
        if place + stop - lists.begin[depth, u] > len(pool):
            pool = _larger(pool, place + stop - lists.begin[depth, u])
        for each in range(lists.begin[depth, u], stop):
            z = events.event[pool[each]]
            if z != y and agree(graph, events, pair, y, z):
                pool[place] = pool[each]
                place += 1
        lists.end[depth + 1, u] = place
        if place - lists.begin[depth + 1, u] < lists.need[u]:
            return pool, False
    return pool, True


@njit(cache=True)
def _write(
    graph: Graph, events: Events, lists: Lists, question: int, depth: int, found: I64, size: int
) -> tuple[I64, int]:
    """Write down the roles chosen at depths 0 to `depth`: the events of each variable in its places."""
    if size + depth + 2 > len(found):
        found = _larger(found, size + depth + 2)
    found[size] = question
    place = size + 1
    for u in range(graph.first[question + 1] - graph.first[question]):
        start = place
        for each in range(depth + 1):
            if lists.variable[each] == u:
                found[place] = events.event[lists.chosen[each]]
                place += 1
        found[start:place] = np.sort(found[start:place])
    return found, place


@njit(cache=True)
def _larger(array: I64, size: int) -> I64:
    """A copy of an array with room for more than twice as much, and for `size` at least."""
    larger = np.empty(max(size, 2 * len(array)), np.int64)
    larger[: len(array)] = array
    return larger
