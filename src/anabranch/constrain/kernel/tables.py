"""Queries, events and lists as record arrays, so that kernel functions have few parameters.

*Variables* are numbered over all queries. A *pair* is an ordered pair of variables of one query. A *role* is an event
as one of the variables that it can be. An *item* is a role that is kept; it has a copy of the time and the location,
which most comparisons need.

Times are integers or doubles, so each record with times has two types.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64, ROUNDING, Bools

Table = npt.NDArray[np.void]

#: An implied bound is the sum of a chain of bounds, each of which holds up to ROUNDING; there are at most 64 variables.
CHAIN_ROUNDING = 64 * ROUNDING

#: What a check compares: columns of both events, the difference of two columns, its absolute value, the difference of
#: two times, its absolute value, the distance between the events, or the distance between two boxes.
COLUMNS, DIFFERENCE, SPREAD, TIMES, SPAN, DISTANCE, BOXES = range(7)

#: The operator of a check, in the order of `OPERATORS`.
LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL = range(6)
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")

#: Which time of an event a check compares.
END, BEGIN = range(2)

#: A comparison of the first event of a pair, on the left, with the second; if `swapped`, the second is on the left.
#: `limit` is the square of the straight distance for `value`. Differences of times are compared with `value` up to the
#: share `rounding` of the larger time.
CHECK = np.dtype(
    [
        ("what", "i8"), ("how", "i8"), ("value", "f8"), ("limit", "f8"), ("rounding", "f8"), ("left", "i8"),
        ("right", "i8"), ("swapped", "i8"),
    ]
)  # fmt: skip


def variable_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A variable.

    query, first, size : its query, the first variable of that query, and the number of variables of that query
    count : the number of its events in a solution; 0 for a variable with NOT, and 1 for one with AT LEAST: the first
        event of a set
    pair : its pair with the first variable of its query; its pairs with the others follow
    longest : the longest time by which any other event of a solution may be later; for an awaited variable, also the
        time for which a solution waits for its events
    """
    names = ("query", "first", "size", "count", "pair")
    return np.dtype([*((name, "i8") for name in names), ("longest", time)])


def pair_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A pair of variables.

    earliest, latest : the implied bounds on the time from the first event to the second
    near : the square of the greatest distance between the two events
    sure : the square of a distance within which the events pass all checks, if these are only bounds; else -1
    check, end : its first check, and the index after its last check
    search_order : entry k of the pairs of a variable holds the k-th variable of the query to search for it
    """
    return np.dtype(
        [
            ("earliest", time), ("latest", time), ("near", "f8"), ("sure", "f8"), ("check", "i8"), ("end", "i8"),
            ("search_order", "i8"),
        ]
    )  # fmt: skip


def event_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """An event.

    t, begin : its end and its start
    slack : how much implied bounds from it are widened, because a sum of a DOUBLE time and a bound is rounded
    x, y, z : its location in the plane, in space, or on the unit sphere; NaN if unknown
    role : its first role; an additional last entry is the number of roles
    """
    times = [(name, time) for name in ("t", "begin", "slack")]
    return np.dtype([*times, ("x", "f8"), ("y", "f8"), ("z", "f8"), ("role", "i8")])


def role_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A role.

    event, variable : its event and variable
    is_primary : whether this bucket reports the solutions that it completes
    list, x, y, z : the list in which it is kept, and its cell
    expires : the last time at which it may be needed
    met : the variables of its query that have an event which agrees with it, as bits
    """
    numbers = [(name, "i8") for name in ("event", "variable", "is_primary", "list", "x", "y", "z")]
    return np.dtype([*numbers, ("expires", time), ("met", "u8")])


def item_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A kept role, with the time and the location of its event."""
    return np.dtype([("t", time), ("x", "f8"), ("y", "f8"), ("z", "f8"), ("role", "i8")])


class Graph(NamedTuple):
    """Queries: their variables, pairs and checks.

    Attributes
    ----------
    first : the first variable of each query; one entry more than queries
    reach : the greatest straight distance between two events of a solution of each query; infinite if not bounded
    awaited : for each variable, whether solutions wait for later events of it: it has NOT, or AT LEAST
    scale : the number of units of event time in one unit of the value of a check
    radius : of the globe in metres if distances are great circles; 0 if they are straight
    """

    first: I64
    reach: F64
    awaited: Bools
    variables: Table
    pairs: Table
    checks: Table
    scale: float
    radius: float


class Events(NamedTuple):
    """Events in order of time, the columns that checks compare (NaN is NULL), and the roles in order of events."""

    events: Table
    columns: F64
    roles: Table

    def __len__(self) -> int:
        return len(self.events) - 1


def make_events(
    t: npt.NDArray[np.generic], begin: npt.NDArray[np.generic], locations: F64, columns: F64,
    first: I64, variable: I64, is_primary: Bools,
) -> Events:  # fmt: skip
    """Events from arrays: times, locations (n, 3), columns, the first role of each event, and the role columns."""
    n, kind = len(t), t.dtype
    events = np.zeros(n + 1, event_type(kind))
    events["t"][:n], events["begin"][:n] = t, begin
    if kind == np.float64:
        events["slack"][:n] = CHAIN_ROUNDING * np.abs(t)
    events["x"][:n], events["y"][:n], events["z"][:n] = locations[:, 0], locations[:, 1], locations[:, 2]
    events["role"] = first
    roles = np.zeros(len(variable), role_type(kind))
    roles["event"] = np.repeat(np.arange(n), np.diff(first))
    roles["variable"], roles["is_primary"] = variable, is_primary
    roles["expires"] = -np.inf if kind == np.float64 else np.iinfo(np.int64).min
    return Events(events, np.require(columns, requirements=("C", "W")), roles)
