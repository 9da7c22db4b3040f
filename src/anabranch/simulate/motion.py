"""How tags move about a building, as models of different knowledge see it: what to infer from.

A model moves among *states*. In the plain ones a state is a location. In the one that knows the heading, a cell of a
corridor or of the stairs is a state for each neighbour from which it was entered: who walks goes on, mostly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.simulate.building import CORRIDOR, OUTSIDE, STAIRS, Building, Codes, Floats


@dataclass(frozen=True, slots=True)
class States:
    """The states of a model, and the moves of one step between them, standing still among them.

    Attributes
    ----------
    names : by number
    place, origin : the location of each state, and the one it was entered from; -1 where that is not told apart
    before, after : the states of each move
    number : (N, N) array
        The state of a location that was entered from another; a location from itself where it is not told apart.
    """

    names: tuple[str, ...]
    place: Codes
    origin: Codes
    before: Codes
    after: Codes
    number: Codes

    def moves_of(self, path: Codes) -> Codes:
        """How often a path makes each move."""
        states = self.number[_entered_from(path), path]
        size = len(self.names)
        made, often = np.unique(states[:-1] * size + states[1:], return_counts=True)
        counts = np.zeros(len(self.before), np.int64)
        counts[np.searchsorted(self.before * size + self.after, made)] = often
        return counts


def make_states(building: Building, heading: bool) -> States:
    """The states of a plain model, or of one that knows the heading."""
    walked = np.isin(building.kinds, (CORRIDOR, STAIRS)) & heading
    size = len(building.locations)
    number = np.full((size, size), -1, np.int64)
    places: list[int] = []
    origins: list[int] = []
    names: list[str] = []
    for place, near in enumerate(building.neighbours):
        number[place, place] = len(places)
        for origin in sorted(near) if walked[place] else [-1]:
            number[slice(None) if origin < 0 else origin, place] = len(places)
            names.append(building.locations[place] + (f" from {building.locations[origin]}" if origin >= 0 else ""))
            places.append(place)
            origins.append(origin)
    pairs = [
        (state, there)
        for state, place in enumerate(places)
        for there in sorted((state, *(int(number[place, near]) for near in building.neighbours[place])))
    ]
    before, after = np.array(pairs).T
    return States(tuple(names), np.array(places), np.array(origins), before, after, number)


def _entered_from(path: Codes) -> Codes:
    """The location before the present one, at each step; at first, whichever comes next."""
    changed = np.flatnonzero(np.diff(path)) + 1
    if not len(changed):
        return path
    since = np.searchsorted(changed, np.arange(len(path)), side="right")
    entered: Codes = np.concatenate([[path[changed[0]]], path[changed - 1]])[since]
    return entered


def make_models(building: Building, paths: Sequence[Codes], rates: Floats) -> dict[str, dict[str, pa.Table]]:
    """The models by name, each of the tables initial, transition and detection.

    Parameters
    ----------
    building : Building
    paths : where others were, second by second, to count moves
    rates : (R, N) array
        The chance that each antenna reads a tag at each location.
    """
    plain, headed = make_states(building, heading=False), make_states(building, heading=True)
    # A half more, so that no move is impossible.
    counts, headed_counts = (
        0.5 + np.sum([states.moves_of(path) for path in paths], axis=0) for states in (plain, headed)
    )
    weights = {
        "building": (plain, _alike(building, plain, counts)),
        "habits": (plain, counts),
        "heading": (headed, _alike(building, headed, headed_counts)),
    }
    return {
        name: {
            "initial": _initial(building, states),
            "transition": _transition(states, of_moves),
            "detection": _detection(building, states, rates),
        }
        for name, (states, of_moves) in weights.items()
    }


def corridor_names(building: Building) -> list[str]:
    """The names that cells of the corridors have in some model."""
    names: dict[str, None] = {}
    for heading in (False, True):
        states = make_states(building, heading)
        names |= dict.fromkeys(states.names[state] for state in _in_corridor(building, states))
    return list(names)


def _in_corridor(building: Building, states: States) -> Codes:
    return np.flatnonzero(building.kinds[states.place] == CORRIDOR)


def _alike(building: Building, states: States, counts: Floats) -> Floats:
    """The average count of the moves of each sort: one door is like another, one cell of a corridor like the next."""
    sorts = np.where(np.isin(building.kinds, (CORRIDOR, STAIRS, OUTSIDE)), building.kinds, "room")
    here, there, origin = states.place[states.before], states.place[states.after], states.origin[states.before]
    came_from = np.where(origin < 0, "", sorts[origin])
    sort = [came_from, sorts[here], sorts[there], here == there, there == origin]
    _, of_sort = np.unique(np.array(sort, np.str_), axis=1, return_inverse=True)
    of_sort = of_sort.reshape(-1)
    return (np.bincount(of_sort, counts) / np.bincount(of_sort))[of_sort]


def _initial(building: Building, states: States) -> pa.Table:
    """A tag is first known of while it is outside, or where an antenna reads it first: somewhere in a corridor."""
    (outside,), cells = np.flatnonzero(building.kinds[states.place] == OUTSIDE), _in_corridor(building, states)
    p = np.concatenate([[0.5], np.full(len(cells), 0.5 / len(cells))])
    return pa.table({"location": [states.names[state] for state in (outside, *cells)], "p": p})


def _transition(states: States, weights: Floats) -> pa.Table:
    """How tags move in one second, with chances in proportion to the weights of the moves."""
    names = np.array(states.names)
    p = weights / np.bincount(states.before, weights)[states.before]
    return pa.table({"prev_location": names[states.before], "location": names[states.after], "p": p})


def _detection(building: Building, states: States, rates: Floats) -> pa.Table:
    of_states = rates[:, states.place]
    antenna, state = np.nonzero(of_states)
    readers = np.array([each.name for each in building.antennas])[antenna]
    return pa.table({"reader": readers, "location": np.array(states.names)[state], "p": of_states[antenna, state]})
