"""Analyses CONSTRAIN queries: conditions on single events and on several events, and the bounds implied for all pairs.

Each variable has one *slot*. A variable that stands for several interchangeable events has two slots, which is enough:
what holds for two of its events holds for any two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isclose

from anabranch.binding.equalities import equated_columns, merge_overlapping
from anabranch.binding.time_bounds import is_begin, time_bound
from anabranch.binding.typed import Reference, Typed, conjunction, of_event
from anabranch.constrain.bounds import ROUNDING, Bound, Closed, close_apart, tightest
from anabranch.constrain.factors import Factors, factors_of
from anabranch.constrain.location_errors import MAY
from anabranch.constrain.query import STRATEGIES, BoundConstrain, BoundCounted, mentions
from anabranch.constrain.stated_bounds import distance_bound
from anabranch.errors import Finding
from anabranch.language.types import Type
from anabranch.plan import Sampling, sampled_columns

#: The comparisons that bound their left side from above, and from below.
_ABOVE, _BELOW = ("<", "<=", "="), (">", ">=", "=")

LOOSE, TIGHT, NOINDEX = STRATEGIES

#: Bounds that the query states, by a pair of slots or moments.
StatedBounds = dict[tuple[int, int], Bound]


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of the event in a slot: its end, or its start."""

    slot: int
    begin: bool = False


@dataclass(frozen=True)
class ConstrainAnalysis:
    """The analysis of a CONSTRAIN query.

    Attributes
    ----------
    unary : tuple of Typed or None
        For each variable, the conditions on its event only, on the columns of its stream.
    joint : tuple of Typed
        The conditions on several events.
    later : dict
        The stated bounds on the time from one moment to another.
    apart : dict
        The stated bounds on the distance between two slots.
    """

    query: BoundConstrain
    unary: tuple[Typed | None, ...]
    joint: tuple[Typed, ...]
    later: StatedBounds = field(default_factory=dict)
    apart: StatedBounds = field(default_factory=dict)

    @cached_property
    def factors(self) -> Factors:
        """The conditions on true locations."""
        return factors_of(self.query)

    @property
    def tests_together(self) -> bool:
        """Whether the bounds on the distances of one location, which may be true alone, are tested together."""
        has_height = any(stream.has_height for stream in self.query.streams)
        return self.query.semantics == MAY and not has_height and bool(self.factors.stars)

    @cached_property
    def slots(self) -> list[BoundCounted]:
        """The variable of each slot."""
        return slots_of(self.query)

    @cached_property
    def negated(self) -> list[int]:
        """The slots of variables with NOT."""
        return [slot for slot, variable in enumerate(self.slots) if variable.is_negated]

    @cached_property
    def awaited(self) -> list[int]:
        """The slots of variables with NOT or AT LEAST: an answer waits for their later events."""
        return [slot for slot, variable in enumerate(self.slots) if variable.is_awaited]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The ordered pairs of slots; two variables with NOT are never compared."""
        slots = range(len(self.slots))
        return [(i, j) for i in slots for j in slots if i != j and not (i in self.negated and j in self.negated)]

    @cached_property
    def moments(self) -> list[Moment]:
        """The ends of all slots, then the starts of the slots with a duration."""
        return moments_of(self.query)

    @cached_property
    def times(self) -> Closed:
        """The tightest implied bounds on the time from one moment to another; the ends of the slots come first."""
        negated = [[n for n, moment in enumerate(self.moments) if moment.slot == slot] for slot in self.negated]
        return close_apart(len(self.moments), self.later, negated)

    @cached_property
    def distances(self) -> Closed:
        """The tightest implied bounds on distances, by the triangle inequality."""
        return close_apart(len(self.slots), self.apart, [[slot] for slot in self.negated])

    def name(self, slot: int) -> str:
        """The name of a slot: its variable, with ' for the second slot of a variable."""
        variable = self.slots[slot]
        return variable.label + ("'" if slot > 0 and self.slots[slot - 1] is variable else "")

    def moment_name(self, number: int) -> str:
        """The name of a moment."""
        moment = self.moments[number]
        return ("the start of " if moment.begin else "") + self.name(moment.slot)

    @property
    def span(self) -> float:
        """The longest time between two events of a solution."""
        return max((self.times.value[pair] for pair in self.pairs), default=0.0)

    @property
    def delay(self) -> float:
        """The longest time for which an answer waits, after its latest event, for events that could still change it.

        These are events of variables with NOT, and events that could be added to a set of AT LEAST.
        """
        return max([0.0, *(self.times.value[i, j] for i, j in self.pairs if j in self.awaited)])

    @property
    def extent(self) -> float:
        """The greatest distance between two events of a solution; infinite if it is not bounded."""
        return max((self.distances.value[pair] for pair in self.pairs), default=inf)

    @cached_property
    def equal_columns(self) -> tuple[tuple[tuple[str, ...], ...], tuple[bool, ...]]:
        """For each variable, the columns that are equal in all events of a solution, and which are compared as doubles.

        Both are empty if there are no such columns.
        """
        return _equal_columns(self.query, self.joint)

    @property
    def sampling(self) -> Sampling:
        """The events of a solution are equal in some columns, or near each other in time."""
        by_variable, _ = self.equal_columns
        streams = [stream.name.lower() for stream in self.query.streams]
        variables = zip(self.query.variables, by_variable, strict=False)
        pairs = [(variable.stream.name.lower(), names[0]) for variable, names in variables if names]
        columns = sampled_columns(streams, pairs)
        if columns is not None:
            return Sampling(columns)
        return Sampling(window=None if self.span == inf else self.span)

    def unbounded(self) -> tuple[str, str] | None:
        """The names of two slots whose difference in time is not bounded; None if there are none."""
        return next(((self.name(i), self.name(j)) for i, j in self.pairs if self.times.value[i, j] == inf), None)

    def contradiction(self) -> Finding | None:
        """Why no events can satisfy the bounds of the query; None if they can."""
        for closed, stated, what, name in (
            (self.times, self.later, "the time", self.moment_name),
            (self.distances, self.apart, "the distance", self.name),
        ):
            if closed.cycle:
                steps = zip(closed.cycle, closed.cycle[1:], strict=False)
                bounds = ", ".join(f"{what} from {name(i)} to {name(j)} is {stated[i, j]}" for i, j in steps)
                message = f"the bounds contradict each other: {bounds}"
                return Finding("contradiction", message, "relax one of these bounds", self.query.span)
        return self._too_near()

    def _too_near(self) -> Finding | None:
        """A pair of events with a lower bound on its distance that is above the upper bound."""
        for condition in self.joint:
            bound = distance_bound(condition)
            if bound is None or bound[0] not in _BELOW:
                continue
            op, one, other, value = bound
            for i, j in _pairs(self.query, one, other):
                most = self.distances.bound(i, j)
                # 0.7 + 0.1 is slightly less than 0.8.
                is_equal = isclose(value, most.value, rel_tol=ROUNDING)
                if (value > most.value and not is_equal) or (is_equal and (most.strict or op == ">")):
                    distance = f"the distance from {self.name(i)} to {self.name(j)}"
                    message = f"{distance} must be {op} {value:g}, but other bounds make it {most}"
                    return Finding("contradiction", message, "relax one of these bounds", condition.span)
        return None


def analyse(query: BoundConstrain) -> ConstrainAnalysis:
    """Analyse a bound query."""
    later: StatedBounds = {}
    apart: StatedBounds = {}
    for number, moment in enumerate(moments_of(query)):
        if moment.begin:
            later[moment.slot, number] = Bound(0.0)
    joint = [condition for condition in query.conditions if len(mentions(condition)) > 1]
    for condition in query.conditions:
        _add_times(query, condition, later)
    for condition in joint:
        _add_distances(query, condition, apart)
    unary = tuple(_unary(query, variable) for variable in query.variables)
    return ConstrainAnalysis(query, unary, tuple(joint), later, apart)


def strategy_of(analyses: Sequence[ConstrainAnalysis]) -> str:
    """How events are stored: as a query states, else in a spatial index if distances are bounded, else in lists."""
    stated = [analysis.query.strategy for analysis in analyses if analysis.query.strategy is not None]
    is_bounded = all(analysis.extent < inf for analysis in analyses)
    return stated[0] if stated else TIGHT if is_bounded else NOINDEX


def slots_of(query: BoundConstrain) -> list[BoundCounted]:
    """The variable of each slot."""
    return [variable for variable in query.variables for _ in range(2 if variable.is_set else 1)]


def moments_of(query: BoundConstrain) -> list[Moment]:
    """The ends of all slots, then the starts of the slots with a duration."""
    slots = slots_of(query)
    starts = [Moment(slot, True) for slot, variable in enumerate(slots) if variable.stream.has_duration]
    return [*map(Moment, range(len(slots))), *starts]


def is_constant(condition: Typed) -> bool:
    """Whether a condition has no columns."""
    return not mentions(condition)


def _unary(query: BoundConstrain, variable: BoundCounted) -> Typed | None:
    """The conditions on one variable only; a condition without columns applies to every variable."""
    own = [
        of_event(condition)
        for condition in query.conditions
        if mentions(condition) == {(variable.name, 1)} or is_constant(condition)
    ]
    return conjunction(tuple(own))


# ---------------------------------------------------------------- equal columns


def _equal_columns(
    query: BoundConstrain, joint: Sequence[Typed]
) -> tuple[tuple[tuple[str, ...], ...], tuple[bool, ...]]:
    """For each variable, its columns in the classes of equal columns that have a column of every variable.

    A column of a variable with NOT belongs to the class of a column that it is compared with. It does not connect two
    classes: the events of an answer need not be equal to an event that does not exist.
    """
    names = [variable.name for variable in query.variables]
    negated = {variable.name for variable in query.variables if variable.is_negated}
    pairs: list[set[tuple[str, str]]] = []
    absent: list[tuple[tuple[str, str], tuple[str, str]]] = []
    doubles: set[tuple[str, str]] = set()
    for equated in filter(None, map(equated_columns, joint)):
        left, right = equated
        if left.owner == right.owner and left.name != right.name:
            continue  # A column of one event equals another column of a second event: this makes no class.
        one, other = sorted(((column.owner or "", column.name) for column in equated), key=lambda c: c[0] in negated)
        pairs.append({one} if other[0] in negated else {one, other})
        absent += [(one, other)] if other[0] in negated else []
        if Type.DOUBLE in (left.type, right.type):
            doubles |= {one, other}
    chosen, as_doubles = [], []
    for positive_columns in merge_overlapping(pairs):
        equal_columns = positive_columns | {other for one, other in absent if one in positive_columns}
        columns = dict(sorted(equal_columns))
        if set(columns) == set(names):
            chosen.append([columns[name] for name in names])
            as_doubles.append(bool(equal_columns & doubles))
    return tuple(zip(*chosen, strict=True)) if chosen else tuple(() for _ in names), tuple(as_doubles)


# ---------------------------------------------------------------- bounds


def _slots(query: BoundConstrain, reference: Reference) -> list[int]:
    """The slots of the variable of a reference."""
    return [slot for slot, variable in enumerate(slots_of(query)) if variable.name == reference.owner]


def _pairs(query: BoundConstrain, one: Reference, other: Reference) -> list[tuple[int, int]]:
    """The pairs of slots to which a condition on two references applies; within one variable, in both orders."""
    return [(i, j) for i in _slots(query, one) for j in _slots(query, other) if i != j]


def _add_times(query: BoundConstrain, condition: Typed, later: StatedBounds) -> None:
    """Add the bounds on times that a condition states: `u.t - v.t <= 5`, `SPAN(u, v) < 3`, `u.t + 1 <= v.t`.

    `v.t - v.t_from <= 3` bounds the duration of an event.
    """
    streams = query.stream_of
    bound = time_bound(streams, condition)
    if bound is None:
        return
    op, one, other, value, is_absolute = bound
    strict = op in ("<", ">")
    moments = moments_of(query)
    is_same_event = (one.owner, one.mention) == (other.owner, other.mention)
    pairs = [(i, i) for i in _slots(query, one)] if is_same_event else _pairs(query, one, other)
    for i, j in pairs:
        start = moments.index(Moment(i, is_begin(streams, one)))
        end = moments.index(Moment(j, is_begin(streams, other)))
        if start == end:  # SPAN(v, v) of one event is 0
            continue
        if op in _ABOVE:  # t(one) - t(other) is at most the value
            later[end, start] = tightest(later, (end, start), Bound(value, strict))
            if is_absolute:
                later[start, end] = tightest(later, (start, end), Bound(value, strict))
        if op in _BELOW and not is_absolute:
            later[start, end] = tightest(later, (start, end), Bound(0.0 - value, strict))


def _add_distances(query: BoundConstrain, condition: Typed, apart: StatedBounds) -> None:
    """Add the bound on a distance that a condition states: `DISTANCE(u, v) < 5`."""
    bound = distance_bound(condition)
    if bound is None or bound[0] not in _ABOVE:
        return
    op, one, other, value = bound
    for i, j in _pairs(query, one, other):
        for pair in ((i, j), (j, i)):
            apart[pair] = tightest(apart, pair, Bound(value, op == "<"))
