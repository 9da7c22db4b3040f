"""Hidden Markov models of how tags move in a building, with different knowledge.

In the models without heading, a state is a location. In the model with heading, a cell of a corridor or of the stairs
has a state for each neighbour from which it can be entered: people mostly keep walking in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.simulate.building import CORRIDOR, OUTSIDE, STAIRS, Building


@dataclass(frozen=True, slots=True)
class States:
    """The states of a model, and the possible moves of one step between them, including staying.

    Attributes
    ----------
    names : tuple of str
        The name of each state.
    location, origin : int64
        The location of each state, and the location from which it was entered; -1 for a state of all origins.
    before, after : int64
        The states of each move.
    number : (N, N) int64
        `number[origin, location]` is a state.
    """

    names: tuple[str, ...]
    location: I64
    origin: I64
    before: I64
    after: I64
    number: I64

    def moves_of(self, path: I64) -> I64:
        """Return how often a path makes each move."""
        states = self.number[_entered_from(path), path]
        size = len(self.names)
        moves, times = np.unique(states[:-1] * size + states[1:], return_counts=True)
        counts = np.zeros(len(self.before), np.int64)
        counts[np.searchsorted(self.before * size + self.after, moves)] = times
        return counts


def make_states(building: Building, heading: bool) -> States:
    """Return the states of a model with or without heading."""
    walked = np.isin(building.kinds, (CORRIDOR, STAIRS)) & heading
    size = len(building.locations)
    number = np.full((size, size), -1, np.int64)
    locations: list[int] = []
    origins: list[int] = []
    names: list[str] = []
    for location, near in enumerate(building.neighbours):
        number[location, location] = len(locations)
        for origin in sorted(near) if walked[location] else [-1]:
            number[slice(None) if origin < 0 else origin, location] = len(locations)
            names.append(building.locations[location] + (f" from {building.locations[origin]}" if origin >= 0 else ""))
            locations.append(location)
            origins.append(origin)
    pairs = [
        (state, there)
        for state, location in enumerate(locations)
        for there in sorted((state, *(int(number[location, near]) for near in building.neighbours[location])))
    ]
    before, after = np.array(pairs).T
    return States(tuple(names), np.array(locations), np.array(origins), before, after, number)


def _entered_from(path: I64) -> I64:
    """Return the location before the present one at each step; for the first location, the next one."""
    changed = np.flatnonzero(np.diff(path)) + 1
    if not len(changed):
        return path
    since = np.searchsorted(changed, np.arange(len(path)), side="right")
    entered: I64 = np.concatenate([[path[changed[0]]], path[changed - 1]])[since]
    return entered


def make_models(building: Building, paths: Sequence[I64], rates: F64) -> dict[str, dict[str, pa.Table]]:
    """Return the models by name, each with the tables initial, transition and detection.

    Parameters
    ----------
    building : Building
    paths : sequence of int64 arrays
        The location at each second of other tags, whose moves are counted.
    rates : (R, N) array
        The probability that each antenna reads a tag at each location.
    """
    plain, headed = make_states(building, heading=False), make_states(building, heading=True)
    # Half a count more, so that no possible move has probability 0.
    counts, headed_counts = (
        0.5 + np.sum([states.moves_of(path) for path in paths], axis=0) for states in (plain, headed)
    )
    weights = {
        "building": (plain, _mean_by_type(building, plain, counts)),
        "habits": (plain, counts),
        "heading": (headed, _mean_by_type(building, headed, headed_counts)),
    }
    return {
        name: {
            "initial": _initial(building, states),
            "transition": _transition(states, move_weights),
            "detection": _detection(building, states, rates),
        }
        for name, (states, move_weights) in weights.items()
    }


def corridor_names(building: Building) -> list[str]:
    """Return the names of corridor cells in any of the models."""
    names: dict[str, None] = {}
    for heading in (False, True):
        states = make_states(building, heading)
        names |= dict.fromkeys(states.names[state] for state in _in_corridor(building, states))
    return list(names)


def _in_corridor(building: Building, states: States) -> I64:
    return np.flatnonzero(building.kinds[states.location] == CORRIDOR)


def _mean_by_type(building: Building, states: States, counts: F64) -> F64:
    """Return the mean count of all moves of the same type: all doors are alike, and so are all corridor cells."""
    kinds = np.where(np.isin(building.kinds, (CORRIDOR, STAIRS, OUTSIDE)), building.kinds, "room")
    here, there, origin = states.location[states.before], states.location[states.after], states.origin[states.before]
    origin_kind = np.where(origin < 0, "", kinds[origin])
    features = [origin_kind, kinds[here], kinds[there], here == there, there == origin]
    _, move_type = np.unique(np.array(features, np.str_), axis=1, return_inverse=True)
    move_type = move_type.reshape(-1)
    return (np.bincount(move_type, counts) / np.bincount(move_type))[move_type]


def _initial(building: Building, states: States) -> pa.Table:
    """Return the first locations: a tag is first outside or, where an antenna first reads it, in a corridor."""
    (outside,), cells = np.flatnonzero(building.kinds[states.location] == OUTSIDE), _in_corridor(building, states)
    p = np.concatenate([[0.5], np.full(len(cells), 0.5 / len(cells))])
    return pa.table({"location": [states.names[state] for state in (outside, *cells)], "p": p})


def _transition(states: States, weights: F64) -> pa.Table:
    """Return the moves of one second, with probabilities proportional to their weights."""
    names = np.array(states.names)
    p = weights / np.bincount(states.before, weights)[states.before]
    return pa.table({"prev_location": names[states.before], "location": names[states.after], "p": p})


def _detection(building: Building, states: States, rates: F64) -> pa.Table:
    state_rates = rates[:, states.location]
    antenna, state = np.nonzero(state_rates)
    readers = np.array([antenna.name for antenna in building.antennas])[antenna]
    return pa.table({"reader": readers, "location": np.array(states.names)[state], "p": state_rates[antenna, state]})
