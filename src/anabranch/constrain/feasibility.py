"""SEMANTICS MAY: whether all bounds on the distances of one location can be true together, in the plane.

A true location v is in the disc of its error. Another one, in a disc with the radius d around its reading, can be at a
distance from `least` to `most` of v if v is at most `most` + d and at least `least` - d from this reading. So v is in a
ring around each of the readings. If there are points that are in all rings, then one of them is a point where two
circles cross, or there is a circle all of whose points are in all rings.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from anabranch.arrays import F64, Bools

#: A point is in a ring if it misses it by at most this share of the largest radius.
_ROUNDING = 1e-9


def have_common_point(centres: F64, inner: F64, outer: F64) -> Bools:
    """Whether rings have a point in common, which may be at the edge of some.

    Parameters
    ----------
    centres : (n, rings, 2)
    inner, outer : (n, rings) the radii; a ring with an inner radius of 0 or less is a disc
    """
    inner = np.maximum(inner, 0.0)
    tolerance = _ROUNDING * np.maximum(outer.max(axis=1, initial=0.0, where=np.isfinite(outer)), inner.max(axis=1))
    feasible = np.zeros(len(centres), np.bool_)
    with np.errstate(invalid="ignore", divide="ignore"):  # circles that do not cross, or have no outer radius
        for point in _candidates(centres, inner, outer):
            gap = np.sqrt(((point[:, None, :] - centres) ** 2).sum(axis=2))
            missed = np.maximum(gap - outer, inner - gap)
            feasible |= (missed <= tolerance[:, None]).all(axis=1)
    return feasible


def _candidates(centres: F64, inner: F64, outer: F64) -> list[F64]:
    """Points (n, 2), of which one is in all rings if any point is: NaN where there is none."""
    count = centres.shape[1]
    circles = [(ring, radius[:, ring]) for radius in (outer, inner) for ring in range(count)]
    points = [centres[:, ring] + np.stack([radius, np.zeros(len(radius))], axis=1) for ring, radius in circles]
    for (one, one_radius), (other, other_radius) in combinations(circles, 2):
        if one != other:
            points += _crossings(centres[:, one], one_radius, centres[:, other], other_radius)
    return points


def _crossings(one: F64, one_radius: F64, other: F64, other_radius: F64) -> list[F64]:
    """The points where two circles cross, and the point between them, which is on both if they only touch."""
    along = other - one
    gap = np.sqrt((along**2).sum(axis=1))
    along = along / gap[:, None]
    foot = (gap + (one_radius - other_radius) * (one_radius + other_radius) / gap) / 2
    half = np.sqrt(one_radius**2 - foot**2)
    middle = one + foot[:, None] * along
    across = half[:, None] * np.stack([-along[:, 1], along[:, 0]], axis=1)
    return [middle, middle + across, middle - across]
