"""Bound MONITOR queries: names are resolved to catalog entries, and conditions are typed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.answers import PROBABILITY, AnswerColumns, common_time, field_columns
from anabranch.binding.bound import BoundOperand, BoundQuery, Wanted, streams_of, wanted_in
from anabranch.binding.lineage import Origin, of_entity
from anabranch.binding.typed import Reference, Typed
from anabranch.catalog import Column, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE, ErrorBound
from anabranch.language.types import Type
from anabranch.monitor.polygons import Ring

#: The fields of an instant of several operands.
AXES = ("ta", "tb", "tc", "td")


@dataclass(frozen=True, slots=True)
class Combination:
    """A sum of values of one operand, each times a factor: `a.x + 2 * a.y`. Most are one value, with the factor 1."""

    terms: tuple[tuple[Reference, float], ...]

    @property
    def owner(self) -> str:
        """The operand."""
        return self.terms[0][0].owner or ""

    @property
    def columns(self) -> tuple[tuple[str, float], ...]:
        """The columns and their factors."""
        return tuple((reference.name, factor) for reference, factor in self.terms)


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """`plus - minus op bound`, or `ABS(plus - minus) op bound` if `absolute`; `minus` is None without a second one.

    The two may be of the same operand. `op` is one of `= <> < <= > >=`. A `bound` of None is NULL: no value satisfies
    it. `window` is how far apart the instants of two operands may be, or None if that is the WITHIN of the query.
    """

    plus: Combination
    minus: Combination | None
    absolute: bool
    op: str
    bound: float | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    window: float | None = None

    @property
    def values(self) -> tuple[Reference, ...]:
        """The constrained values."""
        combinations = (self.plus,) if self.minus is None else (self.plus, self.minus)
        return tuple(reference for combination in combinations for reference, _ in combination.terms)


@dataclass(frozen=True, slots=True)
class BoundArea:
    """`DISTANCE(a, b) op bound`, `DISTANCE(a, 'POINT(1 2)') op bound`, or `[NOT] WITHIN(a, 'POLYGON(...)')`.

    `one` and `other` are the x and the y of the two locations; `other` is None if the second is `point`. `op` is one of
    `< <= > >=`, or WITHIN or OUTSIDE for a polygon, which has `rings`. A `bound` of None is NULL: no location satisfies
    it. `window` is as in a constraint. On the globe, `origin` is that of the projection of the location, `point` is in
    degrees, and `bound` is along a great circle.
    """

    one: tuple[Reference, Reference]
    other: tuple[Reference, Reference] | None
    point: tuple[float, float]
    op: str
    bound: float | None
    rings: tuple[Ring, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    window: float | None = None
    origin: tuple[float, float] | None = None

    @property
    def values(self) -> tuple[Reference, ...]:
        """The constrained values."""
        return (*self.one, *(self.other or ()))


@dataclass(frozen=True, slots=True)
class Junction:
    """Conditions joined by `op`, which is "and" or "or": constraints, conditions on rows, and further junctions."""

    op: str
    parts: tuple[BoundConstraint | Junction | Typed, ...]

    @property
    def constraints(self) -> tuple[BoundConstraint, ...]:
        """All constraints, also of further junctions."""
        result: list[BoundConstraint] = []
        for part in self.parts:
            result += part.constraints if isinstance(part, Junction) else ()
            result += [part] if isinstance(part, BoundConstraint) else ()
        return tuple(result)


@dataclass(frozen=True, slots=True)
class BoundMonitor(BoundQuery):
    """A MONITOR query over one to four operands.

    `conditions` are the conjuncts of WHERE. Those without predicted values are also in `row_conditions`, those on
    locations are also `areas`, and the others are also `constraints`, or `junctions` if they have OR. `semantics` is
    EXPECTED, MAY or MUST. `every`, `max_delay` and `buffer` are None without their clause; `discard` is the policy of a
    full buffer, None without BUFFER. `nearest` is how many of the second operand are kept for each prediction of the
    first, None for all.
    """

    kind: ClassVar[str] = "MONITOR"

    name: str
    operands: tuple[BoundOperand, ...]
    conditions: tuple[Typed, ...] = ()
    within: float = 0.0
    semantics: str = "EXPECTED"
    every: float | None = None
    max_delay: float | None = None
    buffer: int | None = None
    discard: str | None = None
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    constraints: tuple[BoundConstraint, ...] = ()
    row_conditions: tuple[Typed, ...] = ()
    areas: tuple[BoundArea, ...] = ()
    junctions: tuple[Junction, ...] = ()
    nearest: int | None = None

    @property
    def answers(self) -> AnswerColumns:
        """The columns of its answers, without PER."""
        clock = common_time(self.streams)
        instant = clock if clock in (Type.TIMESTAMP, Type.UNKNOWN) else Type.DOUBLE
        keys = tuple(column for operand in self.operands for column in field_columns(operand, operand.stream.keys))
        issued = (Column(f"{operand.label}.{operand.stream.time.name}", clock) for operand in self.operands)
        names = ("valid_to", "certain_from", "certain_to", *(f"sample.{axis}" for axis in AXES[: len(self.operands)]))
        times = (*issued, *(Column(name, instant) for name in names))
        return AnswerColumns(keys, Column("valid_from", instant), (*times, PROBABILITY))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on.

        Nothing is known about how the errors of different predictions of a key depend on each other.
        """
        return tuple(of_entity(operand) for operand in self.operands)

    @property
    def wanted_values(self) -> tuple[Wanted, ...]:
        """The values that conditions need."""
        return wanted_in(self.operands, self.conditions)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""
        return streams_of(self.operands)


def error_of(stream: Stream, column: str) -> float:
    """The ERROR of a value column of a PREDICTED stream: infinite if each row has its own, 0 for other columns."""
    bound = bound_of(stream, column)
    return 0.0 if bound is None else math.inf if bound.amount is None else float(bound.amount)


def bound_of(stream: Stream, column: str) -> ErrorBound | None:
    """The ERROR of a value column as it is declared; None for other columns."""
    errors = zip(stream.values, stream.errors, strict=False)
    return next((bound for value, bound in errors if value.name.lower() == column.lower()), None)
