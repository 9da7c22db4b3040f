"""Routes events to buckets by cells in space, by classes of equal columns, and by slices of time.

Each query has its own placement for its roles. An event is copied to every bucket in which it can be part of a
solution. One of the copies is *primary*. A solution is reported in the bucket of the primary copy of its last event,
where all its other events have a copy.
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
from anabranch.columns.globe import RADIUS
from anabranch.columns.hashing import hash_tuples
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.kernel.checks import straight
from anabranch.constrain.kernel.tables import CHAIN_ROUNDING
from anabranch.splitmix import mix_all

#: The width of cells, as a multiple of the greatest distance between two events of a solution, and the length of slices
#: of time, as a multiple of the longest time between them. Wider cells spread the work less; with narrower ones, more
#: events are copied to several cells.
_WIDTH = 8.0


@dataclass(frozen=True, slots=True)
class Placement:
    """How the roles of one query are routed.

    Attributes
    ----------
    equal : for each variable, the columns that are equal in all events of a solution; empty if there are none
    as_doubles : for each of these columns, whether they are compared as doubles
    reach : the greatest straight distance between two events of a solution; infinite if it is not bounded
    window : the longest time between two events of a solution, in the unit of event times; infinite if not bounded
    takes_unknown : whether an event without a location can be a solution: one that is a single event, with NOT
    """

    equal: tuple[tuple[str, ...], ...]
    as_doubles: tuple[bool, ...]
    reach: float
    window: float
    takes_unknown: bool = False

    def copies(
        self, values: list[pa.Array], locations: F64, t: npt.NDArray[Any], n_buckets: int, is_awaited: bool = False
    ) -> tuple[I64, I64, I64]:
        """The copies of roles of one variable: the index of the role, the bucket, and 1 for the primary copy.

        Parameters
        ----------
        values : the columns that are equal in all events of a solution, one entry per role
        locations, t : locations and times of the roles
        is_awaited : whether a solution needs the role also if it is later: the variable has NOT, or AT LEAST
        """
        n = len(t)
        if n_buckets == 1:
            return np.arange(n), np.zeros(n, np.int64), np.ones(n, np.int64)
        if self.as_doubles:
            columns = [
                _as_doubles(column) if cast else column for column, cast in zip(values, self.as_doubles, strict=True)
            ]
            role, code, is_primary = np.arange(n), hash_tuples(columns, n), np.ones(n, np.bool_)
        elif self.reach < inf:
            role, code, is_primary = _cells(locations, self.reach)
            if self.takes_unknown:
                unknown = np.flatnonzero(np.isnan(locations).any(axis=1))
                role, code = np.append(role, unknown), np.append(code, np.zeros(len(unknown), np.uint64))
                is_primary = np.append(is_primary, np.ones(len(unknown), np.bool_))
        else:
            role, code, is_primary = np.arange(n), np.zeros(n, np.uint64), np.ones(n, np.bool_)
        if self.window < inf:
            role, code, is_primary = _slices(role, code, is_primary, t, self.window, is_awaited)
        return role, (mix_all(code) % np.uint64(n_buckets)).astype(np.int64), is_primary.astype(np.int64)


def placement_of(analysis: ConstrainAnalysis, radius: float, scale: float) -> Placement:
    """The placement of a query; `scale` is the number of units of event time in one unit of its bounds."""
    reach, window = analysis.extent, analysis.span
    if radius and reach >= np.pi * radius:
        reach = inf
    equal, as_doubles = analysis.equal_columns
    reach = straight(reach, radius) * (1 + 1e-9) if reach < inf else inf
    takes_unknown = sum(variable.count for variable in analysis.query.variables) == 1
    return Placement(equal, as_doubles, reach, window * scale, takes_unknown)


def radius_of(analysis: ConstrainAnalysis) -> float:
    """The radius of the globe if the distances of a query are great circles, or 0 if they are straight."""
    return RADIUS if analysis.query.is_on_sphere else 0.0


def _as_doubles(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.float64(), safe=False)


# ---------------------------------------------------------------- space and time


def _cells(locations: F64, reach: float) -> tuple[I64, U64, Bools]:
    """The cells within reach of each location, and which of them contains it; none for an unknown location."""
    width = _WIDTH * reach or 1.0
    known = np.flatnonzero(~np.isnan(locations).any(axis=1))
    steps = (0.0, -(1 + 1e-9), 1 + 1e-9)
    center, *sides = (_whole(np.floor((locations[known] + step * reach) / width)) for step in steps)
    roles, codes, are_primary = [], [], []
    for corner in range(8):
        cell = np.stack([sides[corner >> axis & 1][:, axis] for axis in range(3)], axis=1)
        # If both sides of an axis are in the same cell, one corner is enough.
        is_duplicate = np.zeros(len(known), np.bool_)
        for axis in range(3):
            if corner >> axis & 1:
                is_duplicate |= sides[0][:, axis] == sides[1][:, axis]
        chosen = ~is_duplicate
        code = np.zeros(int(chosen.sum()), np.uint64)
        for axis in range(3):
            code = mix_all(code ^ cell[chosen, axis].view(np.uint64))
        roles.append(known[chosen])
        codes.append(code)
        are_primary.append((cell[chosen] == center[chosen]).all(axis=1))
    return np.concatenate(roles), np.concatenate(codes), np.concatenate(are_primary)


def _slices(
    role: I64, code: U64, is_primary: Bools, t: npt.NDArray[Any], window: float, is_awaited: bool
) -> tuple[I64, U64, Bools]:
    """Put each copy into the slice of its time, and a second copy into the next slice if it may be needed there.

    A role of an awaited variable may also be needed in the slice before.
    """
    if t.dtype == np.float64:
        length = _WIDTH * window * (1 + 1e-9) or 1.0
        reached = window + 1e-9 * window + CHAIN_ROUNDING * np.abs(t)
        own, before, after = (_whole(np.floor(time / length)) for time in (t, t - reached, t + reached))
    else:
        whole = int(min(np.ceil(window), 2.0**59))
        length = max(1, int(_WIDTH) * whole)
        own, before, after = t // length, (t - whole) // length, (t + whole) // length
    parts = [(role, code, is_primary, own[role])]
    for time_slice in (before, after) if is_awaited else (after,):
        chosen = time_slice[role] != own[role]
        parts.append((role[chosen], code[chosen], np.zeros(int(chosen.sum()), np.bool_), time_slice[role[chosen]]))
    role, code, is_primary, slices = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return role, mix_all(code ^ slices.view(np.uint64)), is_primary


def _whole(numbers: F64) -> I64:
    """Numbers as integers; larger numbers are clipped, so neighbours stay neighbours."""
    return np.clip(numbers, -(2.0**62), 2.0**62).astype(np.int64)
