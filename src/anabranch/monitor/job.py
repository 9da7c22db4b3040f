"""The job of a MONITOR query: every combination of predictions meets in one bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.binding.typed import Typed, conjunction, conjuncts, disjunction, references
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import flat
from anabranch.columns.times import TimeKind, encode_times
from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.nearest_operator import NearestOperator
from anabranch.monitor.operator import MonitorOperator
from anabranch.monitor.placement import packets
from anabranch.monitor.spec import MonitorSpec
from anabranch.transport.finishing import Finishing, ResultColumn
from anabranch.transport.frontier import Frontier
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.layout import require_prediction
from anabranch.transport.operator import Operator
from anabranch.transport.parts import parts_of_buckets, parts_of_keys
from anabranch.transport.per import KeyColumn, PerRule
from anabranch.transport.routing import Packets, distinct_keys

#: An answer is validated when its end is this much before the watermark, or less: see `monitor/operator.py`.
_MARGIN = 1e-6


@dataclass(frozen=True)
class MonitorJob(QueryJob[MonitorSpec]):
    """A MONITOR query."""

    # ------------------------------------------------------------ routing

    def needed(self, stream: int) -> Typed | None:
        """The condition on a key that can be an operand; None if every key can."""
        keys = {name.lower() for name in self.layouts[stream].keys}
        conditions = []
        for operand, operand_stream in enumerate(self.spec.streams):
            if operand_stream == stream:
                own_conditions = conjuncts(self.spec.analysis.own_conditions(operand))
                conditions.append(
                    conjunction(
                        tuple(part for part in own_conditions if {name for _, name in references(part)} <= keys)
                    )
                )
        return disjunction(conditions)

    def buckets(self, n_buckets: int) -> list[tuple[int, ...]]:
        """For each bucket that is used, its parts."""
        if self.spec.is_buffered:  # the buffer is in one bucket
            return [(0,)]
        if self.spec.is_broadcast:
            return [(part,) for part in range(n_buckets)]
        return parts_of_buckets(n_buckets, 1 if self.spec.analysis.equated else len(self.spec.analysis.operands))

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of valid rows, and the number of rows that are not sent because no answer can use them."""
        if not rows.num_rows:
            return [], 0
        layout = self.layouts[stream]
        codes, keys = distinct_keys(rows, layout)
        names = [name.lower() for name in layout.keys]
        columns = dict(zip(names, map(flat, keys.columns), strict=False))
        buckets = self.buckets(n_buckets)
        equated = self.spec.analysis.equated
        part_columns = (
            list(columns.values()) if equated is None else [columns[equated[self.spec.streams.index(stream)]]]
        )
        key_parts = parts_of_keys(part_columns, keys.num_rows, 1 + max(max(parts) for parts in buckets))
        key_parts[~holds(self.needed(stream), columns, self.relations, keys.num_rows)] = -1
        numbers: dict[str, npt.NDArray[np.generic]] = {"t": encode_times(rows[layout.time], layout.time_kind)}
        prediction = require_prediction(layout)
        for name in (*layout.values, *prediction.rates, *prediction.error_columns):
            numbers[f"#{name}"] = rows[name].cast(pa.float64()).to_numpy()
        for name in prediction.acceleration_columns:
            numbers[f"#{name}"] = pc.fill_null(rows[name].cast(pa.float64()), 0.0).to_numpy()
        sent = packets(numbers, codes, keys, key_parts, buckets, self.spec.is_broadcast)
        return sent, int((key_parts[codes] < 0).sum())

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return MonitorOperator(self.spec) if self.spec.analysis.query.nearest is None else NearestOperator(self.spec)

    def rules(self, query: int) -> Finishing:
        """The columns of the operators; the answers of an archive are all final, so the status is dropped."""
        names = (name for name in self.answer_schema.names if self.spec.live or name != "status")
        return Finishing(columns=tuple(ResultColumn(name, name) for name in names), per=self._per_rule())

    def _per_rule(self) -> PerRule | None:
        """How answers become rows of several; None without PER."""
        per = self.spec.analysis.query.per
        if per is None:
            return None
        keys = tuple(
            KeyColumn(operand.label, self.layouts[stream].keys)
            for operand, stream in zip(self.spec.analysis.operands, self.spec.streams, strict=True)
            if self.layouts[stream].keys
        )
        return PerRule.of(per, keys, ("valid_from", "valid_to"), self.frontier())

    def frontier(self, query: int = 0) -> Frontier:
        """An answer that is not validated ends at the watermark or after it.

        It is no longer than a prediction applies. With WITHIN, a later prediction may be compared with earlier instants
        of the first operand.
        """
        clock = self.spec.time_kind
        kind = clock if clock is TimeKind.TIMESTAMP else TimeKind.DOUBLE
        longest = max(require_prediction(layout).period for layout in self.layouts) + self.spec.analysis.window
        return Frontier(kind, clock, longest + _MARGIN * max(1.0, longest))


def make_job(analyses: Sequence[MonitorAnalysis], context: JobContext) -> MonitorJob:
    """The job of a query. The lateness of a stream is its WATERMARK or MAX DELAY, whichever is longer.

    MAX DELAY is how long a report takes to arrive, so a stream that is silent for longer has no report on its way.
    """
    (analysis,) = analyses
    delay = analysis.query.max_delay
    layouts = tuple(
        replace(layout, lateness=max(layout.lateness, delay or 0.0), common_clock=delay is not None)
        for layout in context.layouts
    )
    return MonitorJob(MonitorSpec(replace(context, layouts=layouts), analysis))
