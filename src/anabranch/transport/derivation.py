"""Streams that are made from the rows of another: protocols that `inference` implements and operators use.

The rows of the source are routed, packed and held like any others. The rows that are made from them stay in the worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.times import TimeKind
from anabranch.transport.rows import Rows


class Derivation(Protocol):
    """How the rows of a stream are made from those of its source, one time step after the other (INFERRED FROM)."""

    @property
    def step(self) -> float:
        """The length of a step; see `times.steps_of`."""

    @property
    def lag(self) -> int:
        """How many steps after a step have rows that change those of the step."""

    def identity(self) -> dict[str, object]:
        """What tells this derivation from another, as JSON values; part of the identity of a checkpoint."""

    def for_people(self) -> Derivation:
        """The same with rows for people, where those for operators have no meaning alone."""

    def open(self, kind: TimeKind) -> Deriver:
        """A deriver for the keys of one bucket, given the type of their times."""


class Deriver(Protocol):
    """Makes the rows of a stream from those of its source, and keeps the state of each key."""

    @property
    def values(self) -> Dictionary:
        """The values of the derived rows; value 0 is *nothing*."""

    def advance(self, rows: Rows, keys: Dictionary, readings: Dictionary, watermark: int, ended: bool) -> Derived:
        """Take the source's rows of all steps before the watermark, and make the rows of these steps.

        The rows of the last steps wait for those of the lag, unless the input has `ended`.
        """

    def save(self) -> pa.Table:
        """The state of all keys."""

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""


@dataclass(frozen=True, slots=True)
class Derived:
    """Derived rows, and what happened to the source's rows.

    Attributes
    ----------
    rows : the derived rows; `key` is numbered as in the source, `value` and `prev` as in `Deriver.values`
    rejected : for each reason, which of the source's rows could not be used
    duplicate : how many of the source's rows were duplicates
    instants : the times of the steps of which rows were made, whether or not there are any
    """

    rows: Rows
    rejected: dict[str, Bools]
    duplicate: int
    instants: I64


class ReportingPolicy(Protocol):
    """When a sensor reports what it measures (PREDICTED FROM)."""

    def identity(self) -> dict[str, object]:
        """What tells this policy from another, as JSON values; part of the identity of a checkpoint."""

    def open(self, kind: TimeKind) -> SensorBank:
        """The sensors of one bucket."""


class SensorBank(Protocol):
    """The sensors of one bucket, one per key."""

    def report(self, key: I32, t: I64, values: F64) -> SensorReports:
        """Take measurements and decide which of them are reported."""

    def save(self) -> pa.Table:
        """The state of all sensors."""

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""


class SensorReports(Protocol):
    """The reports about some measurements."""

    @property
    def row(self) -> I64:
        """Which measurements are reported."""

    @property
    def values(self) -> F64:
        """(reports, values): the reported values, in metres where positions are projected."""

    @property
    def rates(self) -> F64:
        """(reports, values): the rate of change in each report."""

    @property
    def duplicates(self) -> int:
        """How many measurements had the key and the time of an earlier one."""
