"""The conditions on the true locations of a solution, as factors: the conditions on the same locations are one factor.

True locations are independent. So factors without a common location are independent, and the probability of a solution
is their product. Other factors must be considered together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from math import inf

from anabranch.binding.typed import Constant, Reference, Typed
from anabranch.constrain.bounds import Bound
from anabranch.constrain.location_errors import TrueArea, TrueCondition, true_condition
from anabranch.constrain.query import BoundConstrain, mentions

#: The confidence of the intervals of sampled probabilities, and the number of worlds: no interval is wider than 0.02.
CONFIDENCE = 0.99
N_WORLDS = 16_704

#: An event of a solution: its variable, and its index among the events of the variable.
Event = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Near:
    """Bounds on the distance of an event to another one, or to a fixed point (a text)."""

    one: Event
    other: Event | str
    least: Bound = Bound(-inf)
    most: Bound = Bound(inf)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events whose locations are compared."""
        return (self.one,) if isinstance(self.other, str) else (self.one, self.other)

    def seen_from(self, event: Event) -> Near:
        """The same bounds, with this event as the first one."""
        if self.one == event or isinstance(self.other, str):
            return self
        return replace(self, one=self.other, other=self.one)

    def bounded(self, bound: Bound, is_upper: bool) -> Near:
        """These bounds and another one."""
        if is_upper:
            return replace(self, most=min(self.most, bound, key=lambda known: (known.value, not known.strict)))
        return replace(self, least=max(self.least, bound, key=lambda known: (known.value, known.strict)))


@dataclass(frozen=True, slots=True)
class Inside:
    """An event in an area, or on its edge: the area is a text, or a column of an event."""

    one: Event
    area: str | tuple[Event, str]
    touches: bool

    @property
    def events(self) -> tuple[Event, ...]:
        """The event whose location is compared."""
        return (self.one,)


Factor = Near | Inside


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors of a query.

    Attributes
    ----------
    alone : factors that share no location with an error with another one
    joint : the others
    stars : each event whose location is in several factors, with those of them that bound its distances
    """

    alone: tuple[Factor, ...] = ()
    joint: tuple[Factor, ...] = ()
    stars: Mapping[Event, tuple[Near, ...]] = field(default_factory=dict)

    @property
    def shared(self) -> str | None:
        """The name of a variable whose location is in several factors; None if there is none."""
        return next((owner for owner, _ in self.stars), None)

    @property
    def are_stars(self) -> bool:
        """Whether the joint factors of each event are all those that depend on it: all can be true if those can."""
        in_stars = Counter(near for star in self.stars.values() for near in star)
        return all(in_stars[factor] == 1 for factor in self.joint if isinstance(factor, Near)) and not any(
            isinstance(factor, Inside) for factor in self.joint
        )


def factors_of(query: BoundConstrain) -> Factors:
    """The factors of a query, without conditions on variables with NOT or AT LEAST."""
    indices = {variable.name: range(variable.count) for variable in query.variables if not variable.is_awaited}
    factors: dict[object, Factor] = {}
    for condition in query.located:
        true = true_condition(condition)
        if true is not None and {owner for owner, _ in mentions(condition)} <= set(indices):
            for events in assignments(indices, condition):
                _add(factors, true, events)
    uncertain = {variable.name for variable in query.variables if variable.stream.location_error is not None}
    uses = Counter(event for factor in factors.values() for event in factor.events if event[0] in uncertain)
    alone: list[Factor] = []
    joint: list[Factor] = []
    for factor in factors.values():
        (joint if any(uses[event] > 1 for event in factor.events) else alone).append(factor)
    stars = {
        event: tuple(factor for factor in joint if isinstance(factor, Near) and event in factor.events)
        for event, count in uses.items()
        if count > 1
    }
    return Factors(tuple(alone), tuple(joint), stars)


def assignments(columns: Mapping[str, Sequence[int]], condition: Typed) -> Iterator[dict[tuple[str, int], int]]:
    """Every assignment of different columns of the variables to the events that a condition mentions."""
    mentioned = sorted(mentions(condition))
    owners = dict.fromkeys(owner for owner, _ in mentioned)
    choices = []
    for owner in owners:
        of_owner = [mention for mention in mentioned if mention[0] == owner]
        chosen_columns = permutations(columns[owner], len(of_owner))
        choices.append([list(zip(of_owner, chosen, strict=True)) for chosen in chosen_columns])
    for choice in product(*choices):
        yield dict(pair for part in choice for pair in part)


def _add(factors: dict[object, Factor], true: TrueCondition, indices: Mapping[tuple[str, int], int]) -> None:
    """Add a condition, for one assignment of events, to the factor of its locations."""

    def event(reference: Reference) -> Event:
        owner = reference.owner or ""
        return owner, indices[owner, reference.mention]

    if isinstance(true, TrueArea):
        area = (event(true.area), true.area.name) if isinstance(true.area, Reference) else _text(true.area)
        inside = Inside(event(true.event), area, true.touches)
        factors[inside] = inside
        return
    located = [event(part) for part in true.distance.arguments if isinstance(part, Reference)]
    texts = [_text(part) for part in true.distance.arguments if isinstance(part, Constant)]
    one, other = min(located), texts[0] if texts else max(located)
    near = factors.get((one, other), Near(one, other))
    if isinstance(near, Near):
        factors[one, other] = near.bounded(Bound(float(true.bound), true.op in ("<", ">")), true.is_upper)


def _text(constant: Typed) -> str:
    """The text of a geometry."""
    return str(constant.value) if isinstance(constant, Constant) else ""
