"""Where events must meet: cells of space, classes of equal values, and stretches of time.

Each query has a placement of its own, for its own roles. An event goes wherever it can be part of a solution; a
solution is reported where its last event is *at home*, which is one place, and where all its other events have come.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, U64, Bools
from anabranch.columns.hashing import hash_tuples
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.geometry import RADIUS
from anabranch.constrain.kernel.checks import straight
from anabranch.splitmix import mix_all

#: Cells are so many times as wide as the furthest way between two events, and stretches of time as long as the longest
#: time between them: wider ones spread the work less, narrower ones have more events that go to several.
_WIDE = 8.0


@dataclass(frozen=True, slots=True)
class Placement:
    """How the roles of one query are spread.

    Attributes
    ----------
    equal : for each variable, the columns that are equal in all events of a solution; empty where there are none
    as_doubles : for each of these columns, whether they are compared as doubles
    reach : how far the events of a solution are apart at most, as places are measured; infinite where nothing says so
    window : the most time between two events of a solution, in the unit of times; infinite likewise
    """

    equal: tuple[tuple[str, ...], ...]
    as_doubles: tuple[bool, ...]
    reach: float
    window: float

    def copies(self, values: list[pa.Array], at: F64, t: npt.NDArray[Any], n_buckets: int) -> tuple[I64, I64, I64]:
        """Where some roles of one variable go: (number of the role, bucket, whether it is at home there).

        Parameters
        ----------
        values : the columns of the class of equal values, one entry a role
        at, t : places and times of the roles
        """
        n = len(t)
        if n_buckets == 1:
            return np.arange(n), np.zeros(n, np.int64), np.ones(n, np.int64)
        if self.as_doubles:
            chosen = [_as_doubles(each) if cast else each for each, cast in zip(values, self.as_doubles, strict=True)]
            role, code, home = np.arange(n), hash_tuples(chosen, n), np.ones(n, np.bool_)
        elif self.reach < inf:
            role, code, home = _cells(at, self.reach)
        else:
            role, code, home = np.arange(n), np.zeros(n, np.uint64), np.ones(n, np.bool_)
        if self.window < inf:
            role, code, home = _stretches(role, code, home, t, self.window)
        return role, (mix_all(code) % np.uint64(n_buckets)).astype(np.int64), home.astype(np.int64)


def placement_of(analysis: ConstrainAnalysis, radius: float, scale: float) -> Placement:
    """The placement of a query; `scale` is how many units of a time make one of its bounds."""
    reach, window = analysis.extent, analysis.span
    if radius and reach >= np.pi * radius:
        reach = inf
    equal, as_doubles = analysis.equal_columns
    return Placement(equal, as_doubles, straight(reach, radius) * (1 + 1e-9) if reach < inf else inf, window * scale)


def radius_of(analysis: ConstrainAnalysis) -> float:
    """The radius of the globe, or 0 where the events of a query are in the plane."""
    return RADIUS if any(stream.declaration.geodesic for stream in analysis.query.streams) else 0.0


def _as_doubles(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.float64(), safe=False)


# ---------------------------------------------------------------- space and time


def _cells(at: F64, reach: float) -> tuple[I64, U64, Bools]:
    """The cells within reach of each place; none for a place that is not known."""
    width = _WIDE * reach or 1.0
    known = np.flatnonzero(~np.isnan(at).any(axis=1))
    steps = (0.0, -(1 + 1e-9), 1 + 1e-9)
    here, *sides = (_whole(np.floor((at[known] + step * reach) / width)) for step in steps)
    roles, codes, homes = [], [], []
    for corner in range(8):
        cell = np.stack([sides[corner >> axis & 1][:, axis] for axis in range(3)], axis=1)
        # Where both sides of an axis are in one cell, one corner stands for both.
        again = np.zeros(len(known), np.bool_)
        for axis in range(3):
            if corner >> axis & 1:
                again |= sides[0][:, axis] == sides[1][:, axis]
        chosen = ~again
        code = np.zeros(int(chosen.sum()), np.uint64)
        for axis in range(3):
            code = mix_all(code ^ cell[chosen, axis].view(np.uint64))
        roles.append(known[chosen])
        codes.append(code)
        homes.append((cell[chosen] == here[chosen]).all(axis=1))
    return np.concatenate(roles), np.concatenate(codes), np.concatenate(homes)


def _stretches(role: I64, code: U64, home: Bools, t: npt.NDArray[Any], window: float) -> tuple[I64, U64, Bools]:
    """Each copy in the stretch of its time, and once more in the next one where it may be needed there."""
    if t.dtype == np.float64:
        length = _WIDE * window * (1 + 1e-9) or 1.0
        slack = 1e-9 * window + 1e-15 * np.abs(t)
        own, last = (_whole(np.floor(each / length)) for each in (t, t + window + slack))
    else:
        whole = int(min(np.ceil(window), 2.0**59))
        length = max(1, int(_WIDE) * whole)
        own, last = t // length, (t + whole) // length
    role, code, home = [np.concatenate([each, each]) for each in (role, code, home)]
    half = len(role) // 2
    stretch = np.concatenate([own[role[:half]], last[role[half:]]])
    home[half:] = False
    chosen = np.ones(len(role), np.bool_)
    chosen[half:] = own[role[half:]] != last[role[half:]]
    return role[chosen], mix_all(code[chosen] ^ stretch[chosen].view(np.uint64)), home[chosen]


def _whole(numbers: F64) -> I64:
    """Numbers as integers; those beyond are pressed to the ends, which keeps neighbours neighbours."""
    return np.clip(numbers, -(2.0**62), 2.0**62).astype(np.int64)
