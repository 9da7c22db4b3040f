"""The probability that two true locations are within a distance of each other, if each is uniform around its reading.

A true location is uniform in a *disc*: all points within the error of the reading. This is a disc of the plane, a cap
of the sphere, or a ball of space. Let a and b be the errors, c the distance of the readings, and s the distance of the
second true location from the first reading. Given s, the first one is in the part of its disc that is shared with the
disc of radius r around the second one, so

    P(distance <= r) = integral of shared(r, a, s) arc(s, c, b) ds / (size(a) size(b)),

where arc is the length of the circle of radius s that is inside the second disc. Sizes, shared parts and arcs have
closed forms. The integral has none in the plane and on the sphere. It is computed by the tanh-sinh rule between the
points where the formulas change, and compared with the rule of half as many points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache

import numpy as np

from anabranch.arrays import F64

#: The greatest difference between an integral and that of the next finer rule. The finer rule, which is used, has about
#: the square of this error.
TOLERANCE = 1e-9

#: The steps of the tanh-sinh rule, as powers of 2: a coarser rule decides most integrals.
_COARSEST, _FINEST = 4, 7

#: Integrals are computed for this many pairs of locations at a time, which bounds the memory.
_AT_ONCE = 2048

#: Below this angle, the difference of a sector and its triangle is integrated, because both are nearly equal.
_SMALL_ANGLE = 0.1
_NODES, _WEIGHTS = (part.tolist() for part in np.polynomial.legendre.leggauss(5))


#: Balls whose centres are nearer than this have the same centre; a quotient by it is still a finite number.
_LEAST_GAP = 1e-150


class Space(ABC):
    """How the discs of a space overlap; distances of a sphere are angles at its centre."""

    @abstractmethod
    def size(self, radius: F64) -> F64:
        """The area or volume of a disc."""

    @abstractmethod
    def shared(self, one: F64, other: F64, gap: F64, beyond: F64) -> F64:
        """The area or volume that two discs with these radii share, with this distance of their centres.

        `beyond` is the distance minus the first radius. It is given because it may be tiny, compared with both.
        """

    @abstractmethod
    def arc(self, radius: F64, gap: F64, other: F64, beyond: F64) -> F64:
        """The length or area of a circle that is inside another disc; `beyond` is its radius minus the distance."""

    def last_partial(self, gap: F64, radius: F64) -> F64:
        """How much larger than the gap a circle is from which on no arc in a disc is a part of a circle."""
        return radius

    def near_side(self, bound: F64, gap: F64) -> tuple[F64, F64, F64]:
        """(sign, bound, gap): P(distance <= bound) is this probability if the sign is 1, else 1 minus it."""
        return np.ones(len(bound)), bound, gap


class Surface(Space):
    """What the plane and the sphere have in common: two discs share two segments, cut off by the line between them."""

    def shared(self, one: F64, other: F64, gap: F64, beyond: F64) -> F64:
        """The area that two discs share."""
        half = self._half
        more, less = half(other + beyond), half(other - beyond)
        outer, inner = half(one + gap + other), half(one + gap - other)
        first = _from_half(more * less, outer * inner)
        second = _from_half(inner * less, outer * more)
        return self._segment(one, 2 * first) + self._segment(other, 2 * second)

    def _angle(self, radius: F64, gap: F64, other: F64, beyond: F64) -> F64:
        """The angle of a triangle opposite to the side `other`."""
        half = self._half
        return _from_half(
            half(other + beyond) * half(other - beyond), half(radius + gap + other) * half(radius + gap - other)
        )

    def _segment(self, radius: F64, angle: F64) -> F64:
        """The part of the sector with this angle that is beyond the chord: the sector minus its triangle."""
        area = self._sector_without_triangle(radius, angle)
        is_small = angle < _SMALL_ANGLE
        if is_small.any():
            of_radius, angle = np.broadcast_to(radius, area.shape)[is_small], angle[is_small]
            parts = (
                weight * self._growth(of_radius, angle * (1 + node) / 2)
                for node, weight in zip(_NODES, _WEIGHTS, strict=True)
            )
            area[is_small] = sum(parts) * angle / 2
        return area

    @staticmethod
    @abstractmethod
    def _half(total: F64) -> F64:
        """What takes the place of half a sum of sides in the formula of the angle."""

    @staticmethod
    @abstractmethod
    def _sector_without_triangle(radius: F64, angle: F64) -> F64:
        """The area of a segment, by a formula that is not precise for small angles."""

    @staticmethod
    @abstractmethod
    def _growth(radius: F64, angle: F64) -> F64:
        """The derivative of the area of a segment by the angle."""


class Plane(Surface):
    """Discs of the plane."""

    def size(self, radius: F64) -> F64:
        """The area of a disc."""
        return np.pi * radius**2

    def arc(self, radius: F64, gap: F64, other: F64, beyond: F64) -> F64:
        """The length of a circle that is inside another disc."""
        return 2 * radius * self._angle(radius, gap, other, beyond)

    @staticmethod
    def _half(total: F64) -> F64:
        return total / 2

    @staticmethod
    def _sector_without_triangle(radius: F64, angle: F64) -> F64:
        return radius**2 * (angle - np.sin(angle)) / 2

    @staticmethod
    def _growth(radius: F64, angle: F64) -> F64:
        return (radius * np.sin(angle / 2)) ** 2


class Sphere(Surface):
    """Caps of the unit sphere with a radius of at most a quarter of its circumference."""

    #: The greatest radius of a cap.
    LARGEST = np.pi / 2

    def size(self, radius: F64) -> F64:
        """The area of a cap."""
        return 4 * np.pi * np.sin(radius / 2) ** 2

    def arc(self, radius: F64, gap: F64, other: F64, beyond: F64) -> F64:
        """The length of a circle that is inside another cap."""
        return 2 * np.sin(radius) * self._angle(radius, gap, other, beyond)

    def last_partial(self, gap: F64, radius: F64) -> F64:
        """A cap with the point opposite to the centre has whole circles around this point."""
        return np.minimum(radius, 2 * (np.pi - gap) - radius)

    def near_side(self, bound: F64, gap: F64) -> tuple[F64, F64, F64]:
        """A location is far from another if it is near the point opposite to it."""
        is_far = bound > self.LARGEST
        return np.where(is_far, -1.0, 1.0), np.where(is_far, np.pi - bound, bound), np.where(is_far, np.pi - gap, gap)

    @staticmethod
    def _half(total: F64) -> F64:
        return np.sin(total / 2)

    @staticmethod
    def _sector_without_triangle(radius: F64, angle: F64) -> F64:
        t = np.tan(radius / 2) ** 2
        return 2 * angle * t / (1 + t) - 2 * np.arctan2(t * np.sin(angle), 1 + t * np.cos(angle))

    @staticmethod
    def _growth(radius: F64, angle: F64) -> F64:
        t, versine = np.tan(radius / 2) ** 2, 2 * np.sin(angle / 2) ** 2
        return 2 * t * (1 - t) * versine / ((1 + t) * ((1 + t) ** 2 - 2 * t * versine))


class Solid(Space):
    """Balls of space; the arc of a ball is the part of a sphere that is inside it."""

    def size(self, radius: F64) -> F64:
        """The volume of a ball."""
        return 4 / 3 * np.pi * radius**3

    def shared(self, one: F64, other: F64, gap: F64, beyond: F64) -> F64:
        """The volume of the two caps that are cut off by the plane between two balls."""
        apart = np.maximum(gap, _LEAST_GAP)
        total = np.zeros(np.broadcast_shapes(np.shape(one), np.shape(other), np.shape(gap)))
        for radius, depth in ((one, other + beyond), (other, one + apart - other)):
            height = np.clip(depth * (other - beyond) / (2 * apart), 0, 2 * radius)
            total += np.pi / 3 * height**2 * (3 * radius - height)
        return total

    def arc(self, radius: F64, gap: F64, other: F64, beyond: F64) -> F64:
        """The area of a sphere that is inside another ball."""
        height = np.clip((other + beyond) * (other - beyond) / (2 * np.maximum(gap, _LEAST_GAP)), 0, 2 * radius)
        return 2 * np.pi * radius * height


def _from_half(above: F64, below: F64) -> F64:
    """The angle whose half has this quotient as the square of its tangent; 0 or pi if there is no triangle."""
    return 2 * np.arctan2(np.sqrt(np.maximum(above, 0.0)), np.sqrt(np.maximum(below, 0.0)))


PLANE, SPHERE, SOLID = Plane(), Sphere(), Solid()


def chance_within(space: Space, bound: F64, one: F64, other: F64, gap: F64) -> F64:
    """The probability that two true locations are at most `bound` apart.

    Parameters
    ----------
    bound, one, other, gap : for each pair, the bound, both errors, and the distance of the readings

    Examples
    --------
    >>> chance_within(PLANE, *np.array([[1.0], [1.0], [1.0], [0.0]])).round(6).tolist()
    [0.586503]
    """
    sign, bound, gap = space.near_side(bound, gap)
    large, small = np.maximum(one, other), np.minimum(one, other)
    chance = (bound >= gap + large + small).astype(np.float64)
    is_open = (chance == 0) & (bound > 0) & (bound > gap - large - small) & (large > 0)
    is_point = is_open & (small == 0)
    chance[is_point] = _share(space, *(part[is_point] for part in (bound, large, gap, gap - bound)))
    rest = np.flatnonzero(is_open & (small > 0))
    for some in np.split(rest, range(_AT_ONCE, len(rest), _AT_ONCE)):
        chance[some] = _integrated(space, bound[some], large[some], small[some], gap[some])
    return np.where(sign > 0, chance, 1.0 - chance)


def _share(space: Space, bound: F64, radius: F64, gap: F64, beyond: F64) -> F64:
    """The share of a disc that is within a bound of a point; `beyond` is the distance minus the bound."""
    return np.clip(space.shared(bound, radius, gap, beyond) / space.size(radius), 0.0, 1.0)


def _integrated(space: Space, bound: F64, large: F64, small: F64, gap: F64) -> F64:
    """The probability, by the first rule that agrees with a coarser one."""
    # All distances of the second location are relative to the gap: errors may be tiny compared with it.
    slack = gap - bound
    is_wide = bound > large
    # Nearer than this, the smaller one of the two discs is inside the other one.
    inside = np.where(is_wide, -large - slack, large - bound - gap)
    certain = space.size(np.minimum(bound, large)) / space.size(large)
    certain *= _share(space, np.abs(bound - large), small, gap, -inside)
    outside = large - slack
    ends = [inside, outside, np.where(gap > small, -small, small - 2 * gap), space.last_partial(gap, small)]
    pieces = np.sort(np.clip(ends, inside, outside), axis=0)[:, :, None]
    bound, large, small, gap, slack = (part[:, None] for part in (bound, large, small, gap, slack))

    def density(beyond: F64) -> F64:
        s = np.maximum(gap + beyond, 0.0)
        shared = space.shared(bound, large, s, beyond + slack) / space.size(large)
        return shared * space.arc(s, gap, small, beyond) / space.size(small)

    for level in range(_COARSEST, _FINEST):
        fine, coarse = _integral(density, pieces, level)
        if (np.abs(fine - coarse) <= TOLERANCE).all():
            return np.clip(certain + fine, 0.0, 1.0)
    raise ArithmeticError("the probability of a distance does not converge")


def _integral(density: Callable[[F64], F64], pieces: F64, level: int) -> tuple[F64, F64]:
    """The sum of the integrals between consecutive ends, by a rule and by every second of its points."""
    share, weight = _rule(level)
    fine, coarse = np.zeros(pieces.shape[1]), np.zeros(pieces.shape[1])
    for low, high in zip(pieces, pieces[1:], strict=False):
        values = density(low + (high - low) * share) * (weight * (high - low))
        fine += values.sum(axis=1)
        coarse += 2 * values[:, ::2].sum(axis=1)
    return fine, coarse


@cache
def _rule(level: int) -> tuple[F64, F64]:
    """The points of the tanh-sinh rule in [0, 1], and their weights; the steps are 2^-level."""
    step = 2.0**-level
    t = step * np.arange(-3 * 2**level - 2**level // 4, 3 * 2**level + 2**level // 4 + 1)
    argument = np.pi / 2 * np.sinh(t)
    share = 1 / (1 + np.exp(-2 * argument))
    weight = step * np.pi / 4 * np.cosh(t) / np.cosh(argument) ** 2
    return share, weight
