"""The oracle of CONSTRAIN: tries every choice of events, and keeps those for which all conditions are true.

There is one nested loop per variable, in the order of the query. A condition is evaluated as soon as all events that it
names are chosen, only to save time. There are no implied bounds, indexes or partitions. The conditions are evaluated
one by one (`tests/oracles/conditions.py`), in doubles if columns are doubles; times are decimals, as they were written.

How the definitions are interpreted
-----------------------------------
- An event consists of the declared columns of a row; other columns are ignored. Duplicate rows are one event. Two rows
  that differ in any declared column are two events, even with the same key and time. A row whose key or time is NULL or
  not a finite number is not an event.
- The events of a solution are all different, also if their variables are. If two variables over one stream can exchange
  their events, that is another solution.
- A condition holds if it is TRUE, not if it is FALSE or NULL. If a coordinate of an event is NULL or not a finite
  number, the event has no location, and spatial functions of it are NULL. They are also NULL for a text that is not a
  geometry.
- `v*k` is a set of k different events, which is one solution. A condition that names v once holds for each of them. A
  condition that names it twice holds for every *ordered* pair of different events, because the events of a set have no
  order. This makes no difference for a symmetric condition; `v.t - v.t IN [0, 5]` means that all times are equal, and
  `v.t < v.t` has no solution. A condition with v on both sides of an OR names it twice. For two such variables, all
  combinations of their events are tested. A condition that names v three times is refused by the binder; `v*1` is `v`.
- With `NOT u`, a solution of the other variables is an answer if no event can be added to it as u: the solution with
  this event, which is none of its others, would satisfy all conditions, also those that name u.
- `AT LEAST k v` is a set of k or more different events. For given events of the other variables, it is an answer if it
  satisfies all conditions (as `v*n` with the number of its events), and no set with one more event does.
- Over INDEPENDENT streams, the probability of a solution is that of the worlds in which it is one (`probabilities`).
- SPAN and a difference of TIMESTAMPs are in seconds.
- DISTANCE is Euclidean; with GEODESIC it is the great circle by the haversine formula, on the sphere of RADIUS metres.
  With a height above this sphere, in metres, it is the straight line.
  Between extended geometries it is the distance of their nearest points, 0 if they touch; not on the globe.
- WITHIN and INTERSECTS include boundaries, also those of holes. They are planar, also for degrees: the edges of a
  polygon are straight on the map, not on the globe.

Geometries are parsed from text (POINT, LINESTRING, POLYGON, MULTIPOLYGON) and compared in fractions, by crossings of a
ray and the signs of areas, without Shapely. BINARY geometries are not supported.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from anabranch.binding.typed import Reference, Typed, walk
from anabranch.catalog import Model
from anabranch.constrain.query import BoundConstrain, BoundCounted
from anabranch.language.types import Type
from tests.oracles.conditions import Bindings, Functions, Relations, holds
from tests.oracles.events import NO_RELATIONS, Event, Row, Rows, events_by_stream, frozen
from tests.untraced import untraced

#: The mean radius of the Earth in metres.
RADIUS = 6_371_008.8

#: The event of each variable, by its name as written, and `t`, the latest time. The events of a counted variable are a
#: tuple ordered by time, then key, then the other columns (NULL first).
Solution = dict[str, Any]

#: The events of each variable, by its name in conditions.
Chosen = dict[str, tuple[Event, ...]]


# ---------------------------------------------------------------- solutions


@untraced
def solutions(query: BoundConstrain, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Solution]:
    """Every solution.

    Parameters
    ----------
    query : BoundConstrain
        Bound with the types of its sources if there are times among their columns.
    rows : mapping from the name of a stream to its rows
        Times are numbers or datetimes (in UTC if they have no time zone).
    relations : mapping from the name of a relation, as declared, to its rows
    """
    events = events_by_stream(query.streams, rows)
    present = [variable for variable in query.variables if variable.count > 0]
    answers = []
    for sized, chosen in _maximal(query, present, events, relations):
        void = (
            any(_choices(query, [*sized, replace(variable, count=1)], events, relations, chosen))
            for variable in query.variables
            if variable.count == 0
        )
        if not any(void):
            answers.append(_solution(present, chosen))
    return answers


@untraced
def probabilities(query: BoundConstrain, rows: Rows, relations: Relations = NO_RELATIONS) -> dict[Hashable, float]:
    """The probability of every solution, by its `frozen` events: the sum over all worlds in which it is a solution.

    In a world, each key and time of an INDEPENDENT stream has one of its events, or none; each choice is independent of
    the others. The events of other streams are in every world.
    """
    choices: list[list[tuple[float, list[tuple[str, Row]]]]] = []
    for name, events in events_by_stream(query.streams, rows).items():
        if not events or events[0].stream.model is not Model.INDEPENDENT:
            choices.append([(1.0, [(name, event.row) for event in events])])
            continue
        alternatives: dict[tuple[Any, ...], list[Event]] = {}
        for event in events:
            instance = tuple(event.columns[column.name.lower()] for column in event.stream.keys)
            alternatives.setdefault((*instance, event.time), []).append(event)
        column = events[0].stream.probability
        for group in alternatives.values():
            happened = [(event.row[column], [(name, event.row)]) for event in group]
            choices.append([*happened, (1.0 - sum(p for p, _ in happened), [])])
    answers: dict[Hashable, float] = {}
    for world in itertools.product(*choices):
        p = math.prod(chance for chance, _ in world)
        world_rows: dict[str, list[Row]] = {stream.name.lower(): [] for stream in query.streams}
        for name, row in itertools.chain.from_iterable(chosen for _, chosen in world):
            world_rows[name].append(row)
        for solution in solutions(query, world_rows, relations) if p > 0 else ():
            answers[frozen(solution)] = answers.get(frozen(solution), 0.0) + p
    return answers


def _maximal(
    query: BoundConstrain,
    variables: Sequence[BoundCounted],
    events: Mapping[str, Sequence[Event]],
    relations: Relations,
) -> Iterator[tuple[Sequence[BoundCounted], Chosen]]:
    """Every choice of events, in which no event can be added to the set of AT LEAST; with the variables as `v*n`."""
    growing = next((variable for variable in variables if variable.grows), None)
    if growing is None:
        yield from ((variables, chosen) for chosen in _choices(query, variables, events, relations))
        return
    name = growing.name
    # If no set of n events satisfies the conditions, which are about each event and every two, no larger one does.
    by_size: list[tuple[Sequence[BoundCounted], list[Chosen]]] = []
    while not by_size or by_size[-1][1]:
        sized = [replace(v, count=len(by_size) + 1) if v is growing else v for v in variables]
        by_size.append((sized, list(_choices(query, sized, events, relations))))
    for (sized, smaller), (_, larger) in itertools.pairwise(by_size[growing.count - 1 :]):
        for chosen in smaller:
            extended = (
                set(chosen[name]) < set(other[name]) and all(other[n] == chosen[n] for n in chosen if n != name)
                for other in larger
            )
            if not any(extended):
                yield sized, chosen


def _choices(
    query: BoundConstrain,
    variables: Sequence[BoundCounted],
    events: Mapping[str, Sequence[Event]],
    relations: Relations,
    begun: Mapping[str, tuple[Event, ...]] = MappingProxyType({}),
) -> Iterator[Chosen]:
    """Every choice of a set of events for each of these variables that satisfies all conditions on them.

    The first variables may have their events already (`begun`).
    """
    names = [variable.name for variable in variables]
    mentions = [(condition, _mentions(condition)) for condition in query.conditions]
    mentions = [(condition, mentioned) for condition, mentioned in mentions if set(mentioned) <= set(names)]
    #: The conditions to evaluate when the first k variables have their events, by k.
    due: list[list[tuple[Typed, dict[str, list[int]]]]] = [[] for _ in range(len(names) + 1)]
    for condition, mentioned in mentions:
        due[max((names.index(owner) + 1 for owner in mentioned), default=0)].append((condition, mentioned))

    def true(chosen: Chosen) -> bool:
        return all(
            holds(condition, bindings, relations, FUNCTIONS)
            for condition, mentioned in due[len(chosen)]
            for bindings in _assignments(mentioned, chosen)
        )

    def extended(chosen: Chosen) -> Iterator[Chosen]:
        if not true(chosen):
            return
        if len(chosen) == len(names):
            yield chosen
            return
        variable = variables[len(chosen)]
        taken = set(itertools.chain.from_iterable(chosen.values()))
        free = [event for event in events[variable.stream.name.lower()] if event not in taken]
        for combination in itertools.combinations(free, variable.count):
            yield from extended({**chosen, variable.name: combination})

    return extended(dict(begun))


def _mentions(condition: Typed) -> dict[str, list[int]]:
    """The variables in a condition, with the numbers of their mentions: 1, or 1 and 2 for a counted variable."""
    by_owner: dict[str, set[int]] = {}
    for node in walk(condition):
        if isinstance(node, Reference) and node.owner is not None:
            by_owner.setdefault(node.owner, set()).add(node.mention)
    return {owner: sorted(numbers) for owner, numbers in by_owner.items()}


def _assignments(mentioned: Mapping[str, Sequence[int]], chosen: Mapping[str, tuple[Event, ...]]) -> Iterator[Bindings]:
    """Every assignment of different events of each variable to its mentions."""
    choices = [
        [
            [((owner, number), event.columns) for number, event in zip(numbers, events, strict=True)]
            for events in itertools.permutations(chosen[owner], len(numbers))
        ]
        for owner, numbers in mentioned.items()
    ]
    for choice in itertools.product(*choices):
        yield dict(itertools.chain.from_iterable(choice))


def _solution(variables: Sequence[BoundCounted], chosen: Mapping[str, tuple[Event, ...]]) -> Solution:
    answer: Solution = {}
    for variable in variables:
        rows = tuple(event.row for event in chosen[variable.name])
        answer[variable.label] = rows if variable.is_set else rows[0]
    latest = max(itertools.chain.from_iterable(chosen.values()), key=lambda event: event.time)
    return {**answer, "t": latest.row[latest.stream.time.name]}


# ---------------------------------------------------------------- functions

Point = tuple[Fraction, Fraction]
Segment = tuple[Point, Point]


@dataclass(frozen=True)
class Geometry:
    """Points, edges and areas. An area is a list of rings, the outer one and then the holes; a ring is its edges."""

    points: tuple[Point, ...] = ()
    edges: tuple[Segment, ...] = ()
    areas: tuple[tuple[tuple[Segment, ...], ...], ...] = ()

    @property
    def corners(self) -> list[Point]:
        """The points, and the ends of edges."""
        return [*self.points, *itertools.chain.from_iterable(self.edges)]

    @property
    def is_point(self) -> bool:
        """Whether this is one point and nothing else."""
        return len(self.points) == 1 and not self.edges

    def covers(self, point: Point) -> bool:
        """Whether a point is inside or on a boundary."""
        return (
            point in self.points
            or any(_side(edge, point) == 0 and _in_box(edge, point) for edge in self.edges)
            or any(_is_inside(itertools.chain(*rings), point) for rings in self.areas)
        )


def span(u: Event, v: Event) -> float:
    """The absolute difference of times; seconds for TIMESTAMPs."""
    kinds = {event.stream.time.type is Type.TIMESTAMP for event in (u, v)}
    if len(kinds) > 1:
        message = "a TIMESTAMP and a number have no SPAN"
        raise TypeError(message)
    return abs(u.time - v.time) / 1e6 if kinds.pop() else abs(u.time - v.time)


def distance(u: Event | str, v: Event | str) -> float | None:
    """The distance of the nearest points of two events or geometries; NULL if one has no location."""
    if isinstance(u, Event) and isinstance(v, Event):
        if u.location is None or v.location is None:
            return None
        if not _is_geodesic(u, v):
            return math.dist(u.location, v.location)
        if len(u.location) == 3:
            return math.dist(from_centre(*u.location), from_centre(*v.location))
        return great_circle(*u.location, *v.location)
    a, b = _geometry(u), _geometry(v)
    if a is None or b is None:
        return None
    if not _is_geodesic(u, v):
        return _nearest(a, b)
    if not (a.is_point and b.is_point):
        message = "the distance of an extended geometry on the globe"
        raise NotImplementedError(message)
    return great_circle(*map(float, a.points[0]), *map(float, b.points[0]))


def within(u: Event | str, v: Event | str) -> bool | None:
    """Whether a point is in a geometry or on its boundary; NULL if one has no location."""
    a, b = _geometry(u), _geometry(v)
    if a is None or b is None:
        return None
    if not a.is_point:
        message = "WITHIN of an extended geometry"
        raise NotImplementedError(message)
    return b.covers(a.points[0])


def intersects(u: Event | str, v: Event | str) -> bool | None:
    """Whether two events or geometries have a point in common; NULL if one has no location."""
    a, b = _geometry(u), _geometry(v)
    return None if a is None or b is None else _nearest(a, b) == 0


FUNCTIONS: Functions = {"span": span, "distance": distance, "within": within, "intersects": intersects}


def great_circle(lon: float, lat: float, other_lon: float, other_lat: float) -> float:
    """The distance in metres between two points in degrees, by the haversine formula."""
    lon, lat, other_lon, other_lat = map(math.radians, (lon, lat, other_lon, other_lat))
    by_latitude = math.sin((other_lat - lat) / 2) ** 2
    by_longitude = math.cos(lat) * math.cos(other_lat) * math.sin((other_lon - lon) / 2) ** 2
    return 2 * RADIUS * math.asin(min(1.0, math.sqrt(by_latitude + by_longitude)))


def from_centre(lon: float, lat: float, height: float) -> tuple[float, float, float]:
    """A point in metres from the centre of the globe: turned by its latitude, then by its longitude."""
    lon, lat, radius = math.radians(lon), math.radians(lat), RADIUS + height
    return radius * math.cos(lat) * math.cos(lon), radius * math.cos(lat) * math.sin(lon), radius * math.sin(lat)


def _is_geodesic(*arguments: Event | str) -> bool:
    """Whether the events are on the globe; either all of them are, or none."""
    kinds = {argument.stream.declaration.geodesic for argument in arguments if isinstance(argument, Event)}
    if len(kinds) > 1:
        message = "an event on the globe and one in the plane have no DISTANCE"
        raise TypeError(message)
    return True in kinds


# ---------------------------------------------------------------- geometries


def _geometry(argument: Event | str) -> Geometry | None:
    """The point of an event, or a geometry from text; None for an unknown location, and for any other text."""
    if isinstance(argument, str):
        return geometry(argument)
    return None if argument.location is None else Geometry((_point(*argument.location[:2]),))


def geometry(text: str) -> Geometry | None:
    """A geometry from well-known text; None if the text is not a geometry of a supported type.

    The numbers are rounded to doubles, like those of events.
    """
    matched = re.fullmatch(r"\s*(\w+)\s*(\(.*\))\s*", text)
    read = _READERS.get(matched[1].upper()) if matched else None
    if matched is None or read is None:
        return None
    number = r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)"
    pairs = re.sub(rf"{number}\s+{number}", r'["\1","\2"]', matched[2])
    try:
        return read(json.loads(pairs.replace("(", "[").replace(")", "]")))
    except (ValueError, TypeError):
        return None


def _point(x: Any, y: Any) -> Point:
    return Fraction(float(x)), Fraction(float(y))


def _path(points: Sequence[Sequence[str]]) -> tuple[Segment, ...]:
    return tuple(itertools.pairwise(_point(*point) for point in points))


def _ring(points: Sequence[Sequence[str]]) -> tuple[Segment, ...]:
    """A path that ends where it begins."""
    return _path([*points, points[0]])


def _polygons(parts: Sequence[Sequence[Sequence[Sequence[str]]]]) -> Geometry:
    areas = tuple(tuple(map(_ring, rings)) for rings in parts)
    return Geometry(edges=tuple(edge for rings in areas for ring in rings for edge in ring), areas=areas)


_READERS: dict[str, Callable[[Any], Geometry]] = {
    "POINT": lambda points: Geometry(tuple(_point(*point) for point in points)),
    "LINESTRING": lambda points: Geometry(edges=_path(points)),
    "POLYGON": lambda rings: _polygons([rings]),
    "MULTIPOLYGON": _polygons,
}


def _side(edge: Segment, point: Point) -> Fraction:
    """Twice the signed area of the triangle: positive if the point is left of the edge, 0 if it is in line with it."""
    (x, y), (x_end, y_end) = edge
    return (x_end - x) * (point[1] - y) - (point[0] - x) * (y_end - y)


def _in_box(edge: Segment, point: Point) -> bool:
    axes = zip(zip(*edge, strict=True), point, strict=True)
    return all(min(ends) <= coordinate <= max(ends) for ends, coordinate in axes)


def _is_inside(edges: Iterator[Segment], point: Point) -> bool:
    """Whether a ray to the right crosses an odd number of edges; for points that are not on an edge."""
    inside = False
    for edge in edges:
        low, high = sorted(edge, key=lambda end: end[1])
        if low[1] <= point[1] < high[1] and _side((low, high), point) > 0:
            inside = not inside
    return inside


def _cross(one: Segment, other: Segment) -> bool:
    """Whether two edges cross between their ends; if they only touch, one has an end on the other."""
    return _side(one, other[0]) * _side(one, other[1]) < 0 and _side(other, one[0]) * _side(other, one[1]) < 0


def _nearest(a: Geometry, b: Geometry) -> float:
    """The distance of the nearest points of two geometries, 0 if they touch."""
    if any(map(a.covers, b.corners)) or any(map(b.covers, a.corners)):
        return 0.0
    if any(_cross(one, other) for one in a.edges for other in b.edges):
        return 0.0
    squares = [_square(x, y) for x in a.corners for y in b.corners]
    squares += [_square_to_edge(x, edge) for x in a.corners for edge in b.edges]
    squares += [_square_to_edge(x, edge) for x in b.corners for edge in a.edges]
    return math.sqrt(min(squares))


def _square(x: Point, y: Point) -> Fraction:
    return (x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2


def _square_to_edge(point: Point, edge: Segment) -> Fraction:
    """The square of the distance to the nearest point of an edge."""
    start, end = edge
    length = _square(start, end)
    if not length:
        return _square(point, start)
    projection = sum((p - s) * (e - s) for p, s, e in zip(point, start, end, strict=True)) / length
    share = min(max(projection, Fraction(0)), Fraction(1))
    return _square(point, (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])))
