"""Bound CONSTRAIN queries: names are resolved to catalog entries, and conditions are typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.answers import INTERVAL, PROBABILITY, AnswerColumns, common_time, event_columns, field_columns
from anabranch.binding.bound import BoundOperand, BoundQuery, Wanted, streams_of, wanted_in
from anabranch.binding.lineage import Origin, any_rows, of_events
from anabranch.binding.typed import Reference, Typed, walk
from anabranch.catalog import Column, Model, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE

STRATEGIES = ("LOOSE", "TIGHT", "NOINDEX")

#: The options of EMIT.
EMITTED = ("EARLY",)


@dataclass(frozen=True, slots=True)
class BoundCounted(BoundOperand):
    """A variable of a CONSTRAIN, and the number of its events in an answer.

    With a `count` above 1 it stands for that many interchangeable events. `NOT u` has none: no event satisfies its
    conditions together with the events of the answer. `AT LEAST 5 v` grows: it stands for a maximal set of `count` or
    more interchangeable events.
    """

    count: int = 1
    grows: bool = False

    @property
    def is_negated(self) -> bool:
        """Whether this is `NOT u`."""
        return self.count == 0

    @property
    def is_awaited(self) -> bool:
        """Whether an answer waits for later events of this variable, which could change it."""
        return self.grows or self.is_negated

    @property
    def is_set(self) -> bool:
        """Whether this stands for a set of interchangeable events, which is an array in answers."""
        return self.grows or self.count > 1


@dataclass(frozen=True, slots=True)
class BoundConstrain(BoundQuery):
    """A CONSTRAIN query; `conditions` are the conjuncts of WHERE.

    A condition that names a counted variable once applies to each of its events; one that names it twice has references
    with `mention` 1 and 2, and applies to every pair. `strategy` is LOOSE, TIGHT, NOINDEX, or None without STRATEGY.
    With `is_early`, a stream reports an answer when its last event arrives, not when the watermark has passed it. With
    `semantics`, streams have locations with an error: the conditions are those on the readings, and `located` has the
    conditions on true locations that they replace.
    """

    kind: ClassVar[str] = "CONSTRAIN"
    shares_pass: ClassVar[bool] = True

    name: str
    variables: tuple[BoundCounted, ...]
    conditions: tuple[Typed, ...] = ()
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    strategy: str | None = None
    is_early: bool = False
    semantics: str | None = None
    located: tuple[Typed, ...] = ()

    @property
    def answers(self) -> AnswerColumns:
        """The columns of its answers, without PER; a set of events is an array, which has no plain columns."""
        time = common_time(self.streams)
        single = [variable for variable in self.present if not variable.is_set]
        keys = tuple(column for variable in single for column in field_columns(variable, variable.stream.keys))
        others = (column for variable in single for column in event_columns(variable, time))
        interval = INTERVAL if self.is_expected or self.bounded else ()
        return AnswerColumns(keys, Column("t", time), (*others, PROBABILITY, *interval))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on: events that may not have happened, or with true locations."""
        uncertain = (v for v in self.variables if v.stream.model is Model.INDEPENDENT or v.stream.location_error)
        return tuple(any_rows(v.stream) if v.is_set or v.is_negated else of_events(v) for v in uncertain)

    @property
    def operands_of_events(self) -> tuple[BoundCounted, ...]:
        """All variables."""
        return self.variables

    @property
    def combined_events(self) -> tuple[BoundCounted, ...]:
        """The variables with one event in an answer."""
        return tuple(variable for variable in self.present if not variable.is_set)

    @property
    def unread(self) -> frozenset[str]:
        """The streams whose true locations are uncertain."""
        return frozenset(stream.name.lower() for stream in self.streams if stream.location_error is not None)

    @property
    def wanted_values(self) -> tuple[Wanted, ...]:
        """The values that conditions need."""
        return wanted_in(self.variables, self.conditions)

    @property
    def is_certain(self) -> bool:
        """Whether every event has probability 1."""
        return all(stream.model is Model.CERTAIN for stream in self.streams)

    @property
    def is_expected(self) -> bool:
        """Whether answers have a probability that depends on true locations."""
        return self.semantics == "EXPECTED"

    @property
    def is_on_sphere(self) -> bool:
        """Whether distances are great circles: events are on the globe, and have no height."""
        return any(stream.declaration.geodesic and not stream.has_height for stream in self.streams)

    @property
    def present(self) -> tuple[BoundCounted, ...]:
        """The variables with events in answers: those without NOT."""
        return tuple(variable for variable in self.variables if not variable.is_negated)

    @property
    def growing(self) -> BoundCounted | None:
        """The variable with AT LEAST; None if there is none."""
        return next((variable for variable in self.variables if variable.grows), None)

    @property
    def stream_of(self) -> dict[str, Stream]:
        """The stream of each variable, by its name in conditions."""
        return {variable.name: variable.stream for variable in self.variables}

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""
        return streams_of(self.variables)


def counts_in(variables: Sequence[BoundCounted], width: int) -> list[int]:
    """The number of events of each variable in solutions of `width` events; AT LEAST has the remaining ones."""
    remaining = width - sum(variable.count for variable in variables if not variable.grows)
    return [remaining if variable.grows else variable.count for variable in variables]


def mentions(condition: Typed) -> set[tuple[str, int]]:
    """The events in a condition: each a variable, and 1 or 2 for its first or second mention."""
    return {(node.owner or "", node.mention) for node in walk(condition) if isinstance(node, Reference)}
