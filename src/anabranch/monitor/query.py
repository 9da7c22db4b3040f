"""Bound MONITOR queries: names are resolved to catalog entries, and conditions are typed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.bound import BoundOperand, BoundQuery, Wanted, streams_of, wanted_in
from anabranch.binding.typed import Reference, Typed
from anabranch.catalog import Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """`plus - minus op bound`, or `ABS(plus - minus) op bound` if `absolute`; `minus` is None for a single value.

    The two may be columns of the same operand. `op` is one of `= <> < <= > >=`. A `bound` of None is NULL: no value
    satisfies it.
    """

    plus: Reference
    minus: Reference | None
    absolute: bool
    op: str
    bound: float | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def values(self) -> tuple[Reference, ...]:
        """The constrained values."""
        return (self.plus,) if self.minus is None else (self.plus, self.minus)


@dataclass(frozen=True, slots=True)
class BoundMonitor(BoundQuery):
    """A MONITOR query over one to four operands.

    `conditions` are the conjuncts of WHERE. Those without predicted values are also in `row_conditions`, the others are
    also `constraints`. `semantics` is EXPECTED, MAY or MUST. `every`, `max_delay` and `buffer` are None without their
    clause; `discard` is the policy of a full buffer, None without BUFFER.
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
    errors = zip(stream.values, stream.errors, strict=False)
    amounts = (bound.amount for value, bound in errors if value.name.lower() == column.lower())
    return next((math.inf if amount is None else float(amount) for amount in amounts), 0.0)
