"""Queries, events and lists as tables of numbers: record arrays, so that a kernel is handed few of them.

A *variable* is a number over all queries together. A *pair* is two variables of one query, in this order. A
*role* is an event as one variable that it can be. An *item* is a role that is kept, with its time and place beside it,
for they decide most often.

A time is a whole number or a double, so each table with times comes in two types.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64, Bools

Table = npt.NDArray[np.void]

#: What a check compares, of two events: two columns, the difference of two columns, the amount of that difference, two
#: times, the amount by which they differ, the distance of places, or the gap between two boxes.
COLUMNS, DIFFERENCE, SPREAD, TIMES, SPAN, DISTANCE, BOXES = range(7)

#: How: the order is that of `OPERATORS`.
LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL = range(6)
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")

#: Which of an event's times a check is about.
END, BEGIN = range(2)

#: A comparison of the first of a pair with the second; with the second on its left where it is `swapped`. `limit` is
#: the square of the straight way that belongs to a distance.
CHECK = np.dtype(
    [
        ("what", "i8"), ("how", "i8"), ("value", "f8"), ("limit", "f8"), ("left", "i8"), ("right", "i8"),
        ("swapped", "i8"),
    ]
)  # fmt: skip


def variable_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A variable.

    Its query, and the first variable and the number of variables of that; how many events it stands for; the pair of
    it with the first variable of its query (the others follow); the most that any other event of a solution may be
    later.
    """
    names = ("query", "first", "size", "count", "pair")
    return np.dtype([*((name, "i8") for name in names), ("longest", time)])


def pair_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A pair of variables.

    The least and the most that the second may be later than the first, as follows from all bounds together; the square
    of how far apart they may be at most (`near`), and of how far they can be apart and surely pass all checks (`sure`,
    where these are bounds alone, else -1); where its checks begin and end. `turn` is of the first variable alone: which
    variable of the query is looked for in the turn that has the place of this pair.
    """
    return np.dtype(
        [
            ("earliest", time), ("latest", time), ("near", "f8"), ("sure", "f8"), ("check", "i8"), ("end", "i8"),
            ("turn", "i8"),
        ]
    )  # fmt: skip


def event_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """An event.

    When it ended and began; where it was, in the plane or on the unit sphere (NaN where that is not known); its first
    role. One entry more than events tells where the roles end.
    """
    return np.dtype([("t", time), ("begin", time), ("x", "f8"), ("y", "f8"), ("z", "f8"), ("role", "i8")])


def role_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A role.

    Its event and variable; whether solutions that it completes are reported here; until when it is kept; the variables
    of its query of which an event has come that agrees with it (bits); the list that it is kept in, and its cell.
    """
    numbers = [(name, "i8") for name in ("event", "variable", "home", "list", "x", "y", "z")]
    return np.dtype([*numbers, ("expires", time), ("met", "u8")])


def item_type(time: npt.DTypeLike) -> np.dtype[np.void]:
    """A role that is kept."""
    return np.dtype([("t", time), ("x", "f8"), ("y", "f8"), ("z", "f8"), ("role", "i8")])


class Graph(NamedTuple):
    """Queries: their variables, pairs and checks.

    Attributes
    ----------
    first : the first variable of each query; one entry more than queries
    reach : of each query, how far apart its events may be, as places are measured; infinite where nothing says so
    scale : how many units of a time make one of a check's value
    radius : of the globe in metres, or 0 for the plane
    """

    first: I64
    reach: F64
    variables: Table
    pairs: Table
    checks: Table
    scale: float
    radius: float


class Events(NamedTuple):
    """Events in order of time, the columns that checks compare (NaN where there is none), and roles by event."""

    events: Table
    columns: F64
    roles: Table

    def __len__(self) -> int:
        return len(self.events) - 1


def make_events(
    t: npt.NDArray[np.generic], begin: npt.NDArray[np.generic], at: F64, columns: F64,
    first: I64, variable: I64, home: Bools,
) -> Events:  # fmt: skip
    """Events from arrays: times, places (n, 3), columns, where the roles of each begin, and the roles."""
    n, kind = len(t), t.dtype
    events = np.zeros(n + 1, event_type(kind))
    events["t"][:n], events["begin"][:n] = t, begin
    events["x"][:n], events["y"][:n], events["z"][:n] = at[:, 0], at[:, 1], at[:, 2]
    events["role"] = first
    roles = np.zeros(len(variable), role_type(kind))
    roles["event"], roles["variable"], roles["home"] = np.repeat(np.arange(n), np.diff(first)), variable, home
    roles["expires"] = -np.inf if kind == np.float64 else np.iinfo(np.int64).min
    return Events(events, np.require(columns, requirements=("C", "W")), roles)
