"""Derived streams as tables: the rows that a query over an inferred or predicted stream works with.

The job is run over an archive like that of a query; its answers are the rows of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.binding.typed import Typed
from anabranch.columns.times import decode_times
from anabranch.transport.checks import LATE, QUARANTINE, quarantine
from anabranch.transport.derivation import Deriver, SensorBank
from anabranch.transport.finishing import Finishing
from anabranch.transport.inbox import Inbox
from anabranch.transport.job import QueryJob, Specification
from anabranch.transport.layout import Layout
from anabranch.transport.operator import Counts, Operator, Outcome
from anabranch.transport.routing import KeyPlacement
from anabranch.transport.rows import Rows


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The columns of the rows of a derived stream.

    Attributes
    ----------
    keys, values, time : as the stream declares them
    previous : the value at the previous instant; empty unless the stream is MARKOV
    probability : None where the stream is CERTAIN or PREDICTED
    rates : the rates of change of the values; empty unless the stream is PREDICTED
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    time: str
    previous: tuple[str, ...] = ()
    probability: str | None = None
    rates: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowsSpec(Specification):
    """A derived stream: its layout is that of the rows it is made from."""

    columns: RowColumns

    @property
    def layout(self) -> Layout:
        """The layout of the rows that are read."""
        return self.layouts[0]

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the rows: keys, values, previous values, rates, the time and the probability."""
        columns = self.columns
        keys = zip(columns.keys, self.layout.key_types, strict=True)
        derivation = self.layout.derivation
        names = (*columns.values, *columns.previous)
        if derivation is None:
            values = [(name, pa.float64()) for name in (*names, *columns.rates)]
        else:
            location, *stage = derivation.open(self.time_kind).values.types
            # In a MARKOV stream, a location may have several states, which differ in their stage.
            stages = [(name, kind) for kind in stage for name in ("stage", "prev_stage")]
            values = [*((name, location) for name in names), *stages]
        probability = [] if columns.probability is None else [(columns.probability, pa.float64())]
        return pa.schema([*keys, *values, (columns.time, self.time_kind.arrow_type), *probability])


@dataclass(frozen=True)
class RowsJob(QueryJob[RowsSpec], KeyPlacement):
    """The rows of a derived stream."""

    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The whole key: each is derived alone."""
        return list(keys.values())

    def needed(self, stream: int) -> Typed | None:
        """Every key is needed."""
        return None

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return RowsOperator(self.spec)

    def rules(self, query: int) -> Finishing:
        """The operators' rows are the result."""
        return Finishing()


class RowsOperator:
    """Derives the rows of one bucket; it is stepped once, over an archive."""

    def __init__(self, spec: RowsSpec) -> None:
        self._spec = spec
        self._inbox = Inbox(spec.layouts)

    def open(self, state: bytes | None) -> None:
        """Start empty; rows of an archive have no state."""
        if state is not None:
            raise ValueError("the rows of a stream are not kept")

    def save(self) -> bytes:
        """Nothing: there is one step."""
        return b""

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take the packets of all rows and return what is derived from them."""
        rows, late = self._inbox.receive(packets, watermark)
        layout = self._spec.layout
        if layout.derivation is not None:
            outcome = self._infer(rows, layout.derivation.for_people().open(layout.time_kind), ended)
        else:
            reporting = None if layout.prediction is None else layout.prediction.reporting
            if reporting is None:
                raise LookupError(f"{layout.name} is not derived")
            outcome = self._report(rows, reporting.open(layout.time_kind))
        outcome.counts.late = len(late)
        outcome.rejected = pa.concat_tables([outcome.rejected, self._quarantine(LATE, late)])
        return outcome

    def _infer(self, readings: Rows, deriver: Deriver, ended: bool) -> Outcome:
        inbox = self._inbox
        derived = deriver.advance(readings, inbox.keys[0], inbox.values[0], inbox.watermark, ended)
        rows, columns = derived.rows, self._spec.columns
        values = deriver.values.take(rows.value)
        previous = deriver.values.take(rows.prev) if columns.previous else []
        # Locations first, then the stages of states that have one.
        inferred = [*values[:1], *previous[:1], *values[1:], *previous[1:]]
        probability = [] if columns.probability is None else [pa.array(rows.p)]
        table = self._table(rows, inferred, probability)
        rejected = [self._quarantine(reason, readings.where(which)) for reason, which in derived.rejected.items()]
        n_rejected = sum(part.num_rows for part in rejected)
        used = len(readings) - derived.duplicate - n_rejected
        counts = Counts(used=used, duplicate=derived.duplicate, quarantined=n_rejected)
        return Outcome(table, pa.concat_tables([QUARANTINE.empty_table(), *rejected]), counts)

    def _report(self, positions: Rows, sensors: SensorBank) -> Outcome:
        measured = self._inbox.values[0].take(positions.value)
        values = np.stack([column.cast(pa.float64()).to_numpy() for column in measured], axis=1)
        reports = sensors.report(positions.key, positions.t, np.ascontiguousarray(values))
        chosen: Bools = np.zeros(len(positions), np.bool_)
        chosen[reports.row] = True
        order = np.argsort(reports.row)
        numbers = [pa.array(column) for matrix in (reports.values, reports.rates) for column in matrix[order].T]
        table = self._table(positions.where(chosen), numbers, [])
        counts = Counts(
            used=len(positions) - reports.duplicates, duplicate=reports.duplicates, reported=len(reports.row)
        )
        return Outcome(table, counts=counts)

    def _table(self, rows: Rows, values: Sequence[pa.Array], probability: Sequence[pa.Array]) -> pa.Table:
        keys = self._inbox.keys[0].take(rows.key)
        times = decode_times(rows.t, self._spec.time_kind)
        return pa.table([*keys, *values, times, *probability], schema=self._spec.answer_schema)

    def _quarantine(self, reason: str, rows: Rows) -> pa.Table:
        described = [self._inbox.describe(rows, index) for index in range(len(rows))]
        return quarantine(self._spec.layout.name, reason, described)
