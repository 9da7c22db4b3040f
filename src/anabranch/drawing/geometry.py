"""Points and boxes on a page, in pixels, where y grows downwards; and longitudes around the globe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, by its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Return the area that lies in both boxes."""
        across = min(self.x + self.width / 2, other.x + other.width / 2) - max(
            self.x - self.width / 2, other.x - other.width / 2
        )
        down = min(self.y + self.height / 2, other.y + other.height / 2) - max(
            self.y - self.height / 2, other.y - other.height / 2
        )
        return max(across, 0.0) * max(down, 0.0)

    def contains(self, point: Point) -> bool:
        """Return whether a point lies in the box."""
        return abs(point[0] - self.x) <= self.width / 2 and abs(point[1] - self.y) <= self.height / 2

    def padded(self, margin: float) -> Box:
        """Return the box with a margin on all sides."""
        return Box(self.x, self.y, self.width + 2 * margin, self.height + 2 * margin)


def arrow_barbs(behind: Point, tip: Point, *, length: float, spread: float) -> tuple[Point, Point]:
    """Return the ends of the two strokes of an arrow head at `tip`, which points away from `behind`.

    Parameters
    ----------
    behind, tip : Point
    length : float
        Of a stroke, in pixels.
    spread : float
        The angle between the arrow and a stroke, in radians.
    """
    angle = math.atan2(tip[1] - behind[1], tip[0] - behind[0])
    left, right = (
        (tip[0] - length * math.cos(angle + turn), tip[1] - length * math.sin(angle + turn))
        for turn in (spread, -spread)
    )
    return left, right


def convex_hull(points: Sequence[Point]) -> list[Point]:
    """Return the corners of the convex hull of points; its two ends where all points lie on a line.

    Examples
    --------
    >>> convex_hull([(0, 0), (2, 0), (1, 1), (2, 2), (0, 2)])
    [(0, 0), (2, 0), (2, 2), (0, 2)]
    """
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    below, above = _half_hull(ordered), _half_hull(ordered[::-1])
    return below[:-1] + above[:-1]


def _half_hull(ordered: Sequence[Point]) -> list[Point]:
    """Return one side of the hull: the corners at which the path turns left."""
    corners: list[Point] = []
    for x, y in ordered:
        while len(corners) > 1:
            (ax, ay), (bx, by) = corners[-2:]
            # In pixels: a smaller turn cannot be seen and may be a rounding error.
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.01:
                break
            corners.pop()
        corners.append((x, y))
    return corners


def west_end(longitudes: Sequence[float]) -> float:
    """Return the longitude at which the region begins, east of the widest gap.

    Examples
    --------
    >>> west_end([165.0, -95.0, 180.0, -140.0])
    165.0
    """
    ordered = sorted({longitude % 360.0 for longitude in longitudes})
    gaps = [(east - before) % 360.0 for before, east in zip([ordered[-1], *ordered], ordered, strict=False)]
    west = ordered[gaps.index(max(gaps))]
    return west if west <= 180 else west - 360


def turned(longitude: float, west: float) -> float:
    """Return the same longitude as a number between west and west + 360."""
    return west + (longitude - west) % 360.0
