"""What a CONSTRAIN query asks: of single events, of pairs, and of more; and what follows for all pairs.

A variable that stands for several interchangeable events has two *places* here, which is enough: what holds for two of
its events holds for any two. Any other variable has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from anabranch.binding.typed import (
    Constant,
    Operation,
    Reference,
    Typed,
    conjunction,
    walk,
    with_references,
)
from anabranch.catalog import Stream
from anabranch.constrain.bounds import Bound, Closed, close, tightest
from anabranch.constrain.query import STRATEGIES, BoundConstrain, BoundCounted
from anabranch.errors import Finding
from anabranch.language.types import Type

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}

#: Comparisons that bound their left side from above, and from below.
_ABOVE, _BELOW = ("<", "<=", "="), (">", ">=", "=")

LOOSE, TIGHT, NOINDEX = STRATEGIES

Given = dict[tuple[int, int], Bound]


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of a place: when its event ended, or when it began."""

    place: int
    begin: bool = False


@dataclass(frozen=True)
class ConstrainAnalysis:
    """A CONSTRAIN query taken apart.

    Attributes
    ----------
    unary : for each variable what is asked of its event alone, on the columns of its stream
    joint : what is asked of several events together
    later : given bounds on the time from one moment to another
    apart : given bounds on the distance between two places
    """

    query: BoundConstrain
    unary: tuple[Typed | None, ...]
    joint: tuple[Typed, ...]
    later: Given = field(default_factory=dict)
    apart: Given = field(default_factory=dict)

    @cached_property
    def places(self) -> list[BoundCounted]:
        """The variable of each place."""
        return places_of(self.query)

    @cached_property
    def moments(self) -> list[Moment]:
        """The times of all places: first when each ended, then when those began that have a beginning."""
        return moments_of(self.query)

    @cached_property
    def times(self) -> Closed:
        """The closed bounds on the time from one moment to another; the moments of the places' ends are the first."""
        return close(len(self.moments), self.later)

    @cached_property
    def distances(self) -> Closed:
        """The closed bounds on distances: from a to c it is no further than from a to b and on to c."""
        return close(len(self.places), self.apart)

    def name(self, place: int) -> str:
        """What a place is called: a variable, with a mark for another event of the same."""
        variable = self.places[place]
        return variable.label + ("'" if place > 0 and self.places[place - 1] is variable else "")

    def moment_name(self, number: int) -> str:
        """What a moment is called."""
        moment = self.moments[number]
        began = "the beginning of " if moment.begin else ""
        return began + self.name(moment.place)

    @property
    def span(self) -> float:
        """The most time that can pass between two events of a solution."""
        n = len(self.places)
        return max((float(self.times.value[i, j]) for i in range(n) for j in range(n) if i != j), default=0.0)

    @property
    def extent(self) -> float:
        """The furthest that two events of a solution can be apart; infinite where nothing says so."""
        n = len(self.places)
        return max((float(self.distances.value[i, j]) for i in range(n) for j in range(n) if i != j), default=inf)

    @cached_property
    def equal_columns(self) -> tuple[tuple[tuple[str, ...], ...], tuple[bool, ...]]:
        """For each variable the columns that are equal in all events of a solution, and which are compared as doubles.

        Both are empty where there are none.
        """
        return _equal_columns(self.query, self.joint)

    def unbounded(self) -> tuple[str, str] | None:
        """Two places between which any time may pass."""
        for i in range(len(self.places)):
            for j in range(len(self.places)):
                if self.times.value[i, j] == inf:
                    return (self.name(i), self.name(j))
        return None

    def contradiction(self) -> Finding | None:
        """Why no events can satisfy the query, if its bounds say so."""
        for closed, given, what, name in (
            (self.times, self.later, "the time from", self.moment_name),
            (self.distances, self.apart, "the way from", self.name),
        ):
            if closed.cycle:
                steps = zip(closed.cycle, closed.cycle[1:], strict=False)
                told = ", ".join(f"{what} {name(i)} to {name(j)} is {given[i, j]}" for i, j in steps)
                hint = "no events can be like that: loosen one of these bounds"
                return Finding("contradiction", f"the bounds contradict each other: {told}", hint, self.query.span)
        return self._too_near()

    def _too_near(self) -> Finding | None:
        """Events that must be further apart than they can be."""
        for condition in self.joint:
            found = distance_bound(condition)
            if found is None or found[0] not in _BELOW:
                continue
            op, one, other, value = found
            for i, j in _pairs(self.query, one, other):
                most = self.distances.bound(i, j)
                if value > most.value or (value == most.value and (most.strict or op == ">")):
                    message = f"{self.name(i)} and {self.name(j)} must be {op} {value:g} apart, and can only be {most}"
                    return Finding("contradiction", message, "loosen one of these bounds", condition.span)
        return None


def analyse(query: BoundConstrain) -> ConstrainAnalysis:
    """Take a query apart."""
    later: Given = {}
    apart: Given = {}
    for number, moment in enumerate(moments_of(query)):
        if moment.begin:
            later[moment.place, number] = Bound(0.0)
    joint = [condition for condition in query.conditions if len(mentions(condition)) > 1]
    for condition in joint:
        _add_times(query, condition, later)
        _add_distances(query, condition, apart)
    return ConstrainAnalysis(query, tuple(_unary(query, each) for each in query.variables), tuple(joint), later, apart)


def strategy_of(analyses: Sequence[ConstrainAnalysis]) -> str:
    """How events are kept, where no query says: by an index where distances are bounded, else in lists."""
    named = [each.query.strategy for each in analyses if each.query.strategy is not None]
    bounded = all(each.extent < inf for each in analyses)
    return named[0] if named else TIGHT if bounded else NOINDEX


def mentions(condition: Typed) -> set[tuple[str, int]]:
    """The events that a condition speaks of: a variable, and which of two mentions of it."""
    found = (node for node in walk(condition) if isinstance(node, Reference))
    return {(node.owner or "", node.mention) for node in found}


def places_of(query: BoundConstrain) -> list[BoundCounted]:
    """The variable of each place."""
    return [variable for variable in query.variables for _ in range(min(variable.count, 2))]


def moments_of(query: BoundConstrain) -> list[Moment]:
    """The times of all places: first when each ended, then when those began that have a beginning."""
    places = places_of(query)
    begins = [Moment(place, True) for place, variable in enumerate(places) if variable.stream.start is not None]
    return [*map(Moment, range(len(places))), *begins]


def is_constant(condition: Typed) -> bool:
    """Whether a condition speaks of no event."""
    return not mentions(condition)


def _unary(query: BoundConstrain, variable: BoundCounted) -> Typed | None:
    """What is asked of one variable alone; what is asked of nothing at all is asked of every variable."""
    own = [
        of_event(condition)
        for condition in query.conditions
        if mentions(condition) == {(variable.name, 1)} or is_constant(condition)
    ]
    return conjunction(tuple(own))


def of_event(tree: Typed) -> Typed:
    """A condition or value of one event, on the columns of its stream."""
    return with_references(tree, lambda reference: replace(reference, owner=None, mention=1))


# ---------------------------------------------------------------- equal values


def _equal_columns(
    query: BoundConstrain, joint: Sequence[Typed]
) -> tuple[tuple[tuple[str, ...], ...], tuple[bool, ...]]:
    """For each variable its columns of those classes of equal columns that have one of every variable."""
    names = [variable.name for variable in query.variables]
    classes: list[set[tuple[str, str]]] = []
    doubles: set[tuple[str, str]] = set()
    for keys, compared_as_doubles in filter(None, map(_equality, joint)):
        doubles |= keys if compared_as_doubles else set()
        touching = [each for each in classes if each & keys]
        classes = [each for each in classes if not each & keys] + [keys.union(*touching)]
    chosen, as_doubles = [], []
    for each in classes:
        columns = dict(sorted(each))
        if set(columns) == set(names):
            chosen.append([columns[name] for name in names])
            as_doubles.append(bool(each & doubles))
    return tuple(zip(*chosen, strict=True)) if chosen else tuple(() for _ in names), tuple(as_doubles)


def _equality(condition: Typed) -> tuple[set[tuple[str, str]], bool] | None:
    """The two columns, each with its variable, that a condition equates, and whether they are compared as doubles."""
    if not isinstance(condition, Operation) or condition.op != "=":
        return None
    left, right = condition.arguments
    if not isinstance(left, Reference) or not isinstance(right, Reference):
        return None
    if left.owner == right.owner and left.name != right.name:
        # Of two events of one variable, the one's first column equals the other's second: that is no class.
        return None
    keys = {(side.owner or "", side.name) for side in (left, right)}
    return keys, Type.DOUBLE in (left.type, right.type)


# ---------------------------------------------------------------- bounds


def _places(query: BoundConstrain, reference: Reference) -> list[int]:
    """The places that a reference stands for: every event of its variable, or the first or second of a pair."""
    return [place for place, variable in enumerate(places_of(query)) if variable.name == reference.owner]


def _pairs(query: BoundConstrain, one: Reference, other: Reference) -> list[tuple[int, int]]:
    """The pairs of places that a condition on two references holds for; within one variable, in both orders."""
    return [(i, j) for i in _places(query, one) for j in _places(query, other) if i != j]


def _add_times(query: BoundConstrain, condition: Typed, later: Given) -> None:
    """Note the bounds on times that a condition states: `u.t - v.t <= 5`, `SPAN(u, v) < 3`, `u.t + 1 <= v.t`."""
    found = time_bound(query, condition)
    if found is None:
        return
    op, one, other, value, both_ways = found
    strict = op in ("<", ">")
    moments = moments_of(query)
    for i, j in _pairs(query, one, other):
        start = moments.index(Moment(i, is_begin(query, one)))
        end = moments.index(Moment(j, is_begin(query, other)))
        if op in _ABOVE:  # t(one) - t(other) is at most the value
            later[end, start] = tightest(later, (end, start), Bound(value, strict))
            if both_ways:
                later[start, end] = tightest(later, (start, end), Bound(value, strict))
        if op in _BELOW and not both_ways:
            later[start, end] = tightest(later, (start, end), Bound(-value, strict))


def time_bound(query: BoundConstrain, condition: Typed) -> tuple[str, Reference, Reference, float, bool] | None:
    """`op`, the two times, the value, and whether it bounds the absolute difference.

    A sum of times and numbers counts, on either side: `u.t + 5 <= v.t` is `u.t - v.t <= -5`.
    """
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    absolute = _absolute(query, left)
    if absolute is not None and isinstance(right, Constant) and isinstance(right.value, int | float):
        return op, *absolute, float(right.value), True
    total = _sum_of_times(query, left), _sum_of_times(query, right)
    if total[0] is None or total[1] is None:
        return None
    signs = dict(total[0][0])
    for reference, sign in total[1][0].items():
        signs[reference] = signs.get(reference, 0) - sign
    plus = [reference for reference, sign in signs.items() if sign == 1]
    minus = [reference for reference, sign in signs.items() if sign == -1]
    if len(plus) != 1 or len(minus) != 1 or any(abs(sign) > 1 for sign in signs.values()):
        return None
    return op, plus[0], minus[0], total[1][1] - total[0][1], False


def _absolute(query: BoundConstrain, tree: Typed) -> tuple[Reference, Reference] | None:
    """The two times whose absolute difference a tree is."""
    if not isinstance(tree, Operation):
        return None
    if tree.op == "span":
        one, other = tree.arguments
        return (one, other) if isinstance(one, Reference) and isinstance(other, Reference) else None
    inner = tree.arguments[0]
    if tree.op == "abs" and isinstance(inner, Operation) and inner.op == "-":
        one, other = inner.arguments
        if (
            isinstance(one, Reference)
            and isinstance(other, Reference)
            and is_time(query, one)
            and is_time(query, other)
        ):
            return one, other
    return None


def _sum_of_times(query: BoundConstrain, tree: Typed) -> tuple[dict[Reference, int], float] | None:
    """A tree as times, each with its sign, and a number; None where it is anything else."""
    if isinstance(tree, Reference):
        return ({tree: 1}, 0.0) if is_time(query, tree) else None
    if isinstance(tree, Constant):
        number = tree.value if tree.type in (Type.INTEGER, Type.DOUBLE) else None
        return ({}, float(number)) if isinstance(number, int | float) else None
    if not isinstance(tree, Operation) or tree.op not in ("+", "-"):
        return None
    first, second = (_sum_of_times(query, part) for part in tree.arguments)
    if first is None or second is None:
        return None
    sign = 1 if tree.op == "+" else -1
    signs = dict(first[0])
    for reference, own in second[0].items():
        signs[reference] = signs.get(reference, 0) + sign * own
    return signs, first[1] + sign * second[1]


def is_time(query: BoundConstrain, reference: Reference) -> bool:
    """Whether a reference is to a time of an event: when it ended, or when it began."""
    stream = _stream_of(query, reference)
    names = [stream.time.name, *([] if stream.start is None else [stream.start.name])]
    return reference.name in (name.lower() for name in names)


def is_begin(query: BoundConstrain, reference: Reference) -> bool:
    """Whether a reference to a time is to the beginning of an event."""
    start = _stream_of(query, reference).start
    return start is not None and reference.name == start.name.lower()


def _stream_of(query: BoundConstrain, reference: Reference) -> Stream:
    return next(variable.stream for variable in query.variables if variable.name == reference.owner)


def _add_distances(query: BoundConstrain, condition: Typed, apart: Given) -> None:
    """Note the bound on a distance that a condition states: `DISTANCE(u, v) < 5`."""
    found = distance_bound(condition)
    if found is None or found[0] not in _ABOVE:
        return
    op, one, other, value = found
    for i, j in _pairs(query, one, other):
        for pair in ((i, j), (j, i)):
            apart[pair] = tightest(apart, pair, Bound(value, op == "<"))


def distance_bound(condition: Typed) -> tuple[str, Reference, Reference, float] | None:
    """`op`, two events at points, and the value that their distance is compared with."""
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    if isinstance(left, Operation) and left.op == "distance" and isinstance(right, Constant):
        one, other = left.arguments
        if isinstance(one, Reference) and isinstance(other, Reference) and one.name == other.name == "*":
            return (op, one, other, float(right.value)) if isinstance(right.value, int | float) else None
    return None


def comparison(condition: Typed) -> tuple[str, Typed, Typed] | None:
    """A comparison with a constant, if any, on its right."""
    if not isinstance(condition, Operation) or condition.op not in MIRRORED:
        return None
    left, right = condition.arguments
    return (MIRRORED[condition.op], right, left) if isinstance(left, Constant) else (condition.op, left, right)
