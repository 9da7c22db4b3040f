"""Bound SEQUENCE queries: names are resolved to catalog entries, and conditions are typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import ClassVar

from anabranch.binding.answers import INTERVAL, PROBABILITY, AnswerColumns, common_time, event_columns, field_columns
from anabranch.binding.bound import BoundOperand, BoundQuery, Wanted, relations_in, streams_of, wanted_in
from anabranch.binding.lineage import Origin, of_events
from anabranch.binding.typed import Typed, equal_references
from anabranch.catalog import Column, Model, Relation, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE
from anabranch.language.types import Type

#: A check of a parameter of a law, and its description in messages.
Check = tuple[Callable[[float], bool], str]
_POSITIVE: Check = (lambda value: value > 0, "above 0")
_NOT_NEGATIVE: Check = (lambda value: value >= 0, "0 or more")
_ANY: Check = (lambda value: True, "a number")

#: The parameters of each law: name, whether it is a duration, and the allowed values.
LAWS: dict[str, tuple[tuple[str, bool, Check], ...]] = {
    "EXPONENTIAL": (("mean", True, _POSITIVE),),
    "UNIFORM": (("lo", True, _NOT_NEGATIVE), ("hi", True, _POSITIVE)),
    "GAMMA": (("shape", False, _POSITIVE), ("scale", True, _POSITIVE)),
    "LOGNORMAL": (("mu", False, _ANY), ("sigma", False, _POSITIVE)),
    "NORMAL": (("mean", True, _ANY), ("sd", True, _POSITIVE)),
    "EMPIRICAL": (),
    "FITTED": (),
}

#: The laws read from a file.
FROM_FILE = ("EMPIRICAL", "FITTED")


@dataclass(frozen=True, slots=True)
class BoundDelay:
    """The law of a delay, with its parameters in the unit of the time column.

    `law` is EXPONENTIAL (mean), UNIFORM (lo, hi), GAMMA (shape, scale), LOGNORMAL (mu, sigma), NORMAL (mean, sd), or
    one that is read from `path`: EMPIRICAL becomes `atoms`, one per observed delay; FITTED becomes one of the others.
    """

    law: str
    parameters: tuple[float, ...] = ()
    path: str | None = None
    atoms: tuple[float, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GivenDelay:
    """The law of a delay in the gaps in which exactly these unread components happened, or did not happen.

    With `happened`, the delay is the whole gap: `DELAY z WITH y`. Otherwise it starts at the last component that
    happened: `DELAY z WITHOUT y`.
    """

    happened: bool
    components: frozenset[str]
    delay: BoundDelay


@dataclass(frozen=True, slots=True)
class BoundRates:
    """`MISS BY column FROM relation`: the loss probability of a reading depends on its reader, which `column` holds."""

    column: str
    relation: Relation
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BoundComponent(BoundOperand):
    """A component of a SEQUENCE.

    `miss` is the probability that its reading is lost; None if it depends on the reader (`BoundSequence.rates`).
    `occurs` is the probability that it happens at all, None without OCCURS. `given` are its laws WITH or WITHOUT some.
    A *run* (`y+`) is all events that fit between its neighbours, at least one; a *single* component is one event.
    """

    negative: bool = False
    miss: float | None = 0.0
    delay: BoundDelay | None = None
    occurs: float | None = None
    given: tuple[GivenDelay, ...] = ()
    run: bool = False

    @property
    def is_always_read(self) -> bool:
        """Whether every match has exactly one event of it."""
        return not (self.negative or self.run or self.may_miss)

    @property
    def text(self) -> str:
        """The component as it is written."""
        return f"{'!' if self.negative else ''}{self.label}{'+' if self.run else ''}"

    @property
    def may_miss(self) -> bool:
        """Whether the query allows that its reading is lost."""
        return self.miss is None or self.miss > 0


def beside_run(components: Sequence[BoundComponent], number: int) -> tuple[int, ...]:
    """The numbers of the components between a run and the nearest ones that are always read, or the ends."""

    def until_read(numbers: Iterable[int]) -> Iterator[int]:
        return takewhile(lambda other: not components[other].is_always_read, numbers)

    return (*until_read(range(number - 1, -1, -1)), *until_read(range(number + 1, len(components))))


@dataclass(frozen=True, slots=True)
class BoundSequence(BoundQuery):
    """A SEQUENCE query.

    `where` is as written; the analysis converts it to a normal form. `within` is None without WITHIN. With
    `ending_open`, the last components may be missing or negative. `emit` is a subset of
    {'best', 'next', 'expired', 'early'}.
    `scoring` is 'joint', the score of the paper, or 'posterior'.
    """

    kind: ClassVar[str] = "SEQUENCE"
    shares_pass: ClassVar[bool] = True

    name: str
    components: tuple[BoundComponent, ...]
    where: Typed | None = None
    within: float | None = None
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    ending_open: bool = False
    emit: frozenset[str] = frozenset()
    scoring: str = "joint"
    rates: BoundRates | None = None

    @property
    def has_occurs(self) -> bool:
        """Whether components may not happen at all, so that the lengths of gaps tell what happened in them."""
        return any(component.occurs is not None for component in self.components)

    @property
    def has_probabilities(self) -> bool:
        """Whether the events of a stream have probabilities."""
        return any(component.stream.model is Model.INDEPENDENT for component in self.components)

    @property
    def excludes_events(self) -> bool:
        """Whether a match can be excluded by an event: of a negative, or with POSTERIOR of a missing component."""
        by_loss = self.scoring == "posterior"
        return any(component.negative or (by_loss and component.may_miss) for component in self.components)

    @property
    def has_runs(self) -> bool:
        """Whether a component is a run, `y+`."""
        return any(component.run for component in self.components)

    @property
    def has_open_start(self) -> bool:
        """Whether both ends are open: the window of a match also has a part before its first event."""
        return self.ending_open and (self.components[0].negative or self.components[0].may_miss)

    @property
    def has_tables(self) -> bool:
        """Whether gaps are scored: their tables may need a file, or be too large."""
        return any(component.delay is not None for component in self.components)

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""
        return () if self.where is None else (self.where,)

    @property
    def answers(self) -> AnswerColumns:
        """The columns of its answers, without PER; an event that can be missing has no key."""
        time = common_time(self.streams)
        positive = [component for component in self.components if not component.negative]
        keys = [column for c in positive if c.is_always_read for column in field_columns(c, c.stream.keys)]
        others = [Column("t_start", time), PROBABILITY, *(INTERVAL if self.bounded else ())]
        for component in positive:
            if component.run:
                others.append(Column(f"{component.label}.count", Type.INTEGER))
            else:
                others += () if component.is_always_read else field_columns(component, component.stream.keys)
                others += event_columns(component, time)
        others += [Column("status", Type.STRING)] if {"expired", "early"} & self.emit else []
        return AnswerColumns(tuple(keys), Column("t", time), tuple(others))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on, in terms of its columns."""
        return tuple(
            of_events(component) if component.is_always_read else self._unread(component)
            for component in self.components
            if component.stream.model is Model.INDEPENDENT or component.may_miss or component.occurs is not None
        )

    def _unread(self, component: BoundComponent) -> Origin:
        """The rows of a component that may be missing, or must not happen: its key is known if it equals one read."""
        read = {other.name: other for other in self.components if other.is_always_read}
        keys = []
        for key in component.stream.keys:
            equal = equal_references(self.where, component.name, key.name.lower())
            owner, column = next(((o, c) for o, c in sorted(equal) if o in read), (None, ""))
            keys.append(None if owner is None else f"{read[owner].label}.{column}".lower())
        since = "t_start" if self.within is None else "t"
        return Origin(component.stream.name.lower(), tuple(keys), since, "t", self.within or 0.0)

    @property
    def operands_of_events(self) -> tuple[BoundComponent, ...]:
        """All components."""
        return self.components

    @property
    def combined_events(self) -> tuple[BoundComponent, ...]:
        """The components with one event in an answer, if no event of them that is not in it excludes the answer."""
        by_loss = self.scoring == "posterior"
        return tuple(c for c in self.components if not (c.negative or c.run or (by_loss and c.may_miss)))

    @property
    def unread(self) -> frozenset[str]:
        """The streams of components that may be missing, or may not happen."""
        uncertain = (c for c in self.components if c.may_miss or c.occurs is not None)
        return frozenset(component.stream.name.lower() for component in uncertain)

    @property
    def wanted_values(self) -> tuple[Wanted, ...]:
        """The values that positive components need."""
        positive = [component for component in self.components if not component.negative]
        return wanted_in(positive, self.conditions)

    @property
    def stream_of(self) -> dict[str, Stream]:
        """The stream of each component, by its name in conditions."""
        return {component.name: component.stream for component in self.components}

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""
        return streams_of(self.components)

    @property
    def declared_relations(self) -> tuple[Relation, ...]:
        """The relations that the query looks up: those of conditions, and that of MISS BY."""
        rates = () if self.rates is None else (self.rates.relation,)
        return (*relations_in(self.conditions), *rates)
