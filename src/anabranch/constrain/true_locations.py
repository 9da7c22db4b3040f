"""Whether the true locations of a solution can satisfy its conditions (MAY), and with which probability (EXPECTED).

A true location is uniform in the disc around its reading, independently of all others. Factors without a common
location are computed exactly and multiplied. The others are tested together in sampled worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import shapely

from anabranch.arrays import F64, I64, Bools
from anabranch.columns.globe import RADIUS
from anabranch.columns.intervals import interval
from anabranch.columns.numbers import numbers_of
from anabranch.constrain import geometry
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.areas import shares_of_discs
from anabranch.constrain.events import locations_of
from anabranch.constrain.factors import CONFIDENCE, N_WORLDS, Event, Factor, Inside, Near
from anabranch.constrain.feasibility import circles_in_plane, circles_on_sphere, have_common_point
from anabranch.constrain.nearness import PLANE, SOLID, SPHERE, Space, Sphere, chance_within
from anabranch.constrain.query import BoundConstrain
from anabranch.constrain.spec import ConstrainSpec
from anabranch.constrain.worlds import drawn_locations
from anabranch.events.batch import Batch

#: The number of locations of an event that are drawn at a time: they fit in a cache of the processor.
_DRAWN_AT_ONCE = 1 << 16


class Chance(NamedTuple):
    """Probabilities with the ends of their intervals; all three are equal if they are exact."""

    probability: F64
    lower: F64
    upper: F64


class TrueLocations:
    """The true locations of the events of a batch; `row` is the index of each event in the table of its stream."""

    def __init__(self, spec: ConstrainSpec, batch: Batch, row: I64) -> None:
        self._spec, self._batch, self._row = spec, batch, row

    def chance(self, analysis: ConstrainAnalysis, events: Mapping[str, I64]) -> Chance:
        """The probability that each solution satisfies the conditions on true locations.

        Parameters
        ----------
        events : the events of each variable, (n, count), those of a set in a fixed order
        """
        query, factors = analysis.query, analysis.factors
        exact = self._have_discs(query, (*factors.alone, *factors.joint), events).astype(np.float64)
        for factor in factors.alone:
            some = np.flatnonzero(exact > 0)
            exact[some] *= self._alone(query, factor, {name: chosen[some] for name, chosen in events.items()})
        if not factors.joint:
            return Chance(exact, exact, exact)
        hits = self._hits(query, factors.joint, events, np.flatnonzero(exact > 0))
        lower, upper = interval(hits, N_WORLDS, 1 - CONFIDENCE)
        return Chance(exact * hits / N_WORLDS, exact * lower, exact * upper)

    def can_be_true(self, analysis: ConstrainAnalysis, events: Mapping[str, I64]) -> Bools:
        """Whether the bounds on the distances of each event can be true together; not for locations with a height."""
        query, unit = analysis.query, _unit(analysis.query)
        feasible = np.ones(len(next(iter(events.values()))), np.bool_)
        for event, star in analysis.factors.stars.items():
            others = []
            for near in star:
                _, location, _, error = self._near(query, near.seen_from(event), events)
                others.append((location, near.least.value / unit - error, near.most.value / unit + error))
            own = _chosen(events, event)
            reading, error = self._locations[own], self._errors[own] / unit
            if query.is_on_sphere:
                circles = circles_on_sphere(reading, error, others)
            else:
                circles = circles_in_plane(reading, error, others)
            feasible &= have_common_point(circles)
        return feasible

    # ------------------------------------------------------------ locations

    @cached_property
    def _locations(self) -> F64:
        return self._batch.gathered([locations_of(table) for table in self._batch.tables], np.float64)

    @cached_property
    def _errors(self) -> F64:
        """The error of the location of each event; 0 if its stream has none."""
        streams = [stream for analysis in self._spec.analyses for stream in analysis.query.streams]
        bounds = {self._spec.stream_number(stream.name): stream.location_error for stream in streams}
        parts = []
        for number, table in enumerate(self._batch.tables):
            bound = bounds.get(number)
            column = None if bound is None else bound.source
            amount = 0.0 if bound is None or bound.amount is None else float(bound.amount)
            parts.append(np.full(len(table), amount) if column is None else numbers_of(table.columns[column.lower()]))
        return self._batch.gathered(parts, np.float64)

    def _have_discs(self, query: BoundConstrain, factors: Sequence[Factor], events: Mapping[str, I64]) -> Bools:
        """Which solutions have errors that are radii of discs: finite, and on the globe less than a quarter of it."""
        largest = Sphere.LARGEST if query.is_on_sphere else np.inf
        have = np.ones(len(next(iter(events.values()))), np.bool_)
        for event in {event for factor in factors for event in factor.events}:
            have &= self._errors[_chosen(events, event)] / _unit(query) < largest
        return have

    def _near(self, query: BoundConstrain, near: Near, events: Mapping[str, I64]) -> tuple[F64, F64, F64, F64]:
        """The readings of both sides and their errors; on the globe, errors are angles."""
        one = _chosen(events, near.one)
        if isinstance(near.other, str):
            has_height = any(stream.has_height for stream in query.streams)
            on_globe = any(stream.declaration.geodesic for stream in query.streams)
            fixed = geometry.fixed_location(near.other, on_globe, has_height)
            location, error = np.broadcast_to(fixed, (len(one), 3)), np.zeros(len(one))
        else:
            other = _chosen(events, near.other)
            location, error = self._locations[other], self._errors[other]
        unit = _unit(query)
        return self._locations[one], location, self._errors[one] / unit, error / unit

    # ------------------------------------------------------------ exact probabilities

    def _alone(self, query: BoundConstrain, factor: Factor, events: Mapping[str, I64]) -> F64:
        """The probability of one factor.

        Conditions on locations without an error are decided by the readings, which satisfy them.
        """
        if isinstance(factor, Inside):
            return self._inside(factor, events)
        one, other, one_error, other_error = self._near(query, factor, events)
        gap, unit, space = _distance(query, one, other), _unit(query), _space(query)
        chance = np.ones(len(gap))
        if factor.most.value < np.inf:
            chance = chance_within(space, np.full(len(gap), factor.most.value / unit), one_error, other_error, gap)
        if factor.least.value > -np.inf:
            least = np.full(len(gap), max(factor.least.value, 0.0) / unit)
            chance -= chance_within(space, least, one_error, other_error, gap)
        return np.where(one_error + other_error == 0, 1.0, np.clip(chance, 0.0, 1.0))

    def _inside(self, factor: Inside, events: Mapping[str, I64]) -> F64:
        """The share of the disc of each event that is inside the area."""
        event = _chosen(events, factor.one)
        errors, chance = self._errors[event], np.ones(len(event))
        some = np.flatnonzero(errors > 0)
        areas = self._areas(factor, events)[some]
        centres = self._locations[event[some], :2]
        chance[some] = 0.0 if factor.touches else shares_of_discs(centres, errors[some], areas)
        return chance

    def _areas(self, factor: Inside, events: Mapping[str, I64]) -> geometry.Shapes:
        """The area of each solution."""
        if isinstance(factor.area, str):
            shape = geometry.shape_of(factor.area, on_globe=False)
            return np.full(len(_chosen(events, factor.one)), shape, object)
        owner, column = factor.area
        chosen = _chosen(events, owner)
        shapes = np.full(len(chosen), None, object)
        for number, table in enumerate(self._batch.tables):
            of_stream = self._batch.stream[chosen] == number
            if of_stream.any():
                rows = pa.array(self._row[chosen[of_stream]])
                shapes[of_stream] = geometry.shapes_of(table.columns[column].take(rows), on_globe=False)
        return shapes

    # ------------------------------------------------------------ sampled worlds

    def _hits(self, query: BoundConstrain, factors: Sequence[Factor], events: Mapping[str, I64], possible: I64) -> I64:
        """In how many worlds each solution satisfies all these factors; in none, if it is not among the possible."""
        hits = np.zeros(len(next(iter(events.values()))), np.int64)
        size = max(1, _DRAWN_AT_ONCE // N_WORLDS)
        for some in np.split(possible, range(size, len(possible), size)):
            chosen = {name: numbers[some] for name, numbers in events.items()}
            hits[some] = self._satisfied(query, factors, chosen).sum(axis=1)
        return hits

    def _satisfied(self, query: BoundConstrain, factors: Sequence[Factor], events: Mapping[str, I64]) -> Bools:
        """(n, worlds): where solutions satisfy all these factors."""
        space, unit = _space(query), _unit(query)
        located = sorted({event for factor in factors for event in factor.events})
        drawn = {}
        for number, event in enumerate(located):
            chosen = _chosen(events, event)
            drawn[event] = drawn_locations(space, self._locations[chosen], self._errors[chosen] / unit, number)
        satisfied = np.ones((len(_chosen(events, located[0])), N_WORLDS), np.bool_)
        for factor in factors:
            if isinstance(factor, Inside):
                satisfied &= self._inside_in_worlds(factor, events, drawn[factor.one])
                continue
            one, other, one_error, other_error = self._near(query, factor, events)
            to = other[:, None, :] if isinstance(factor.other, str) else drawn[factor.other]
            square = ((drawn[factor.one] - to) ** 2).sum(axis=2)
            least, most = (_straight(query, bound.value / unit) ** 2 for bound in (factor.least, factor.most))
            is_near = (square >= least) & (square <= most)
            satisfied &= is_near | (one_error + other_error == 0)[:, None]
        return satisfied

    def _inside_in_worlds(self, factor: Inside, events: Mapping[str, I64], drawn: F64) -> Bools:
        is_exact = self._errors[_chosen(events, factor.one)] == 0
        if factor.touches:
            return np.broadcast_to(is_exact[:, None], drawn.shape[:2])
        areas = self._areas(factor, events)
        shapely.prepare(areas)
        return shapely.intersects_xy(areas[:, None], drawn[:, :, 0], drawn[:, :, 1]) | is_exact[:, None]


def _chosen(events: Mapping[str, I64], event: Event) -> I64:
    """The numbers of an event in all solutions."""
    owner, index = event
    return events[owner][:, index]


def _space(query: BoundConstrain) -> Space:
    if query.is_on_sphere:
        return SPHERE
    return SOLID if any(stream.has_height for stream in query.streams) else PLANE


def _unit(query: BoundConstrain) -> float:
    """The radius of the globe if distances are angles, else 1."""
    return RADIUS if query.is_on_sphere else 1.0


def _distance(query: BoundConstrain, one: F64, other: F64) -> F64:
    """The distance of locations, (..., 3); an angle on the sphere."""
    straight = np.sqrt(((one - other) ** 2).sum(axis=-1))
    return 2.0 * np.arcsin(np.minimum(1.0, straight / 2.0)) if query.is_on_sphere else straight


def _straight(query: BoundConstrain, bound: float) -> float:
    """The length of a straight line through the unit sphere for a bound on an angle; in the plane, the bound."""
    if not query.is_on_sphere:
        return max(bound, 0.0)
    return 2.0 * np.sin(np.clip(bound, 0.0, np.pi) / 2.0)
