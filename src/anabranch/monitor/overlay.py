"""The union of polygons, in fractions: no corner is lost or moved before the result is rounded.

All edges are divided where they meet others. The parts that have no polygon on their right are the boundary of the
union. Edges that two polygons share, in opposite directions, are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from anabranch.monitor.polygons import Ring, edges_of

_Point = tuple[Fraction, Fraction]
_Edge = tuple[_Point, _Point]


def union(polygons: Sequence[tuple[Ring, ...]]) -> tuple[Ring, ...]:
    """The rings of the union of polygons, with the area to their left."""
    exact = [[_exact(edge) for edge in edges_of(rings)] for rings in polygons]
    parts = {part: None for own in exact for edge in own for part in _divided(edge, exact) if _is_outer(part, exact)}
    rings = (_without_straight_corners(ring) for ring in _chained(parts))
    return tuple(tuple((float(x), float(y)) for x, y in ring) for ring in rings)


def _exact(edge: Sequence[float]) -> _Edge:
    x0, y0, x1, y1 = map(Fraction, edge)
    return (x0, y0), (x1, y1)


def _divided(edge: _Edge, polygons: Iterable[Iterable[_Edge]]) -> Iterator[_Edge]:
    """The parts of an edge between the points where it meets other edges."""
    start, end = edge
    points = {start, end}.union(*(_meeting(edge, other) for own in polygons for other in own))
    along = sorted(points, key=lambda point: _dot(_minus(point, start), _minus(end, start)))
    yield from zip(along, along[1:], strict=False)


def _meeting(edge: _Edge, other: _Edge) -> list[_Point]:
    """The points of another edge on an edge: where they cross, or the ends of the other one if both are on a line."""
    if not _boxes_meet(edge, other):
        return []
    start, direction, side = edge[0], _minus(edge[1], edge[0]), _minus(other[1], other[0])
    across, offset = _cross(direction, side), _minus(other[0], edge[0])
    if across == 0:
        return [point for point in other if _is_on(point, edge)]
    share, other_share = _cross(offset, side) / across, _cross(offset, direction) / across
    if not (0 <= share <= 1 and 0 <= other_share <= 1):
        return []
    return [(start[0] + share * direction[0], start[1] + share * direction[1])]


def _is_outer(part: _Edge, polygons: Iterable[Sequence[_Edge]]) -> bool:
    """Whether no polygon is to the right of a part of an edge, which meets no edge in between."""
    middle = ((part[0][0] + part[1][0]) / 2, (part[0][1] + part[1][1]) / 2)
    direction = _minus(part[1], part[0])
    for edges in polygons:
        own = [edge for edge in edges if _is_on(middle, edge)]
        if own:
            if any(_dot(_minus(edge[1], edge[0]), direction) < 0 for edge in own):
                return False
        elif _is_inside(middle, edges):
            return False
    return True


def _is_inside(point: _Point, edges: Iterable[_Edge]) -> bool:
    """Whether a point that is on no edge is in a polygon."""
    x, y = point
    crossed = [edge for edge in edges if (edge[0][1] > y) != (edge[1][1] > y)]
    return sum(x < x0 + (y - y0) / (y1 - y0) * (x1 - x0) for (x0, y0), (x1, y1) in crossed) % 2 == 1


def _chained(parts: Iterable[_Edge]) -> Iterator[list[_Point]]:
    """The rings of a boundary; each passes a point once."""
    following: dict[_Point, list[_Point]] = defaultdict(list)
    for start, end in parts:
        following[start].append(end)
    while following:
        ring = [next(iter(following))]
        while ring:
            ends = following[ring[-1]]
            point = ends.pop()
            if not ends:
                del following[ring[-1]]
            if point in ring:
                yield ring[ring.index(point) :]
                del ring[ring.index(point) + 1 :]
                if point not in following:
                    ring.pop()
            else:
                ring.append(point)


def _without_straight_corners(ring: Sequence[_Point]) -> list[_Point]:
    """A ring without the points at which it does not turn."""
    neighbours = zip([ring[-1], *ring[:-1]], ring, [*ring[1:], ring[0]], strict=True)
    return [at for before, at, after in neighbours if _cross(_minus(at, before), _minus(after, at)) != 0]


def _boxes_meet(one: _Edge, other: _Edge) -> bool:
    return all(
        max(min(one[0][k], one[1][k]), min(other[0][k], other[1][k]))
        <= min(max(one[0][k], one[1][k]), max(other[0][k], other[1][k]))
        for k in range(2)
    )


def _is_on(point: _Point, edge: _Edge) -> bool:
    offset, direction = _minus(point, edge[0]), _minus(edge[1], edge[0])
    return _boxes_meet((point, point), edge) and _cross(offset, direction) == 0


def _minus(one: _Point, other: _Point) -> _Point:
    return one[0] - other[0], one[1] - other[1]


def _cross(one: _Point, other: _Point) -> Fraction:
    return one[0] * other[1] - one[1] * other[0]


def _dot(one: _Point, other: _Point) -> Fraction:
    return one[0] * other[0] + one[1] * other[1]
