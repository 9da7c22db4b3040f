"""The jobs of PATTERN: keys are routed by their chain; the answers of chains are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.binding.typed import Typed
from anabranch.columns.times import encode_times
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.archive import ArchiveOperator
from anabranch.pattern.archive_spans import SpanOperator
from anabranch.pattern.bounded import BoundedOperator, BoundedSpec
from anabranch.pattern.combined import CascadeOperator, CombinedOperator, CombinedSpec, ProductOperator
from anabranch.pattern.combined_archive import CombinedArchive
from anabranch.pattern.combined_general import CombinedGeneral
from anabranch.pattern.combining import CombinedAnalysis
from anabranch.pattern.early import STATUS, EarlyOperator
from anabranch.pattern.general import GeneralOperator
from anabranch.pattern.grouped import GroupedOperator
from anabranch.pattern.last_values import LastValuesOperator
from anabranch.pattern.operator import PatternOperator
from anabranch.pattern.spec import GroupSpec, PatternSpec
from anabranch.transport.finishing import AnyOf, Finishing, ResultColumn, SumOf
from anabranch.transport.frontier import Frontier
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.per import KeyColumn, PerRule
from anabranch.transport.routing import KeyPlacement, Packets
from anabranch.transport.state import write_tables


@dataclass(frozen=True)
class PatternJob(QueryJob[PatternSpec], KeyPlacement):
    """A PATTERN query, over an archive or on live inputs."""

    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The chain of each key."""
        columns, positions = list(keys.values()), self.spec.analysis.chain_positions[stream]
        types = self.spec.chain_types
        return [columns[positions[index]].cast(types[index]) for index in self.spec.routed_by]

    def together(self, stream: int) -> tuple[str, ...]:
        """The key columns that are the chain; none if every bucket needs the instants of all rows."""
        if self.spec.needs_instants:
            return ()
        positions = self.spec.analysis.chain_positions[stream]
        return tuple(self.layouts[stream].keys[positions[index]].lower() for index in self.spec.routed_by)

    def needed(self, stream: int) -> Typed | None:
        """The condition on a key whose rows are read."""
        return None if self.spec.needs_instants else self.useful(stream)

    def useful(self, stream: int) -> Typed | None:
        """The condition on a key that can be part of an answer."""
        return self.spec.analysis.needed(stream)

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of valid rows, with the instants of all rows where every bucket needs them."""
        packets, ignored = super().pack(stream, rows, n_buckets)
        layout = self.layouts[stream]
        if not self.spec.needs_instants or layout.derivation is not None or not rows.num_rows:
            return packets, ignored
        times = np.unique(encode_times(rows[layout.time], layout.time_kind))
        instants = write_tables({"instants": pa.table({"t": times})})
        blobs = dict(packets)
        return [(bucket, blobs.get(bucket, b"") + instants) for bucket in range(n_buckets)], ignored

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers; with EMIT EARLY, also whether an answer is final."""
        schema = self.spec.answer_schema
        return schema.append(STATUS) if self.spec.is_early else schema

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return EarlyOperator(self._operator, self.spec.live) if self.spec.is_early else self._operator()

    def _operator(self) -> Operator:
        """The operator of one bucket, which gives final answers only."""
        spec = self.spec
        if isinstance(spec, BoundedSpec):
            return BoundedOperator(spec)
        if isinstance(spec, CombinedSpec):
            if spec.analysis.by_automaton if spec.live else spec.analysis.exactly:
                return CombinedOperator(spec)
            return CombinedGeneral(spec) if spec.live else CombinedArchive(spec)
        if isinstance(spec, GroupSpec):
            if spec.live:
                return GeneralOperator(spec)
            return ArchiveOperator(spec) if spec.spans is None else SpanOperator(spec, spec.spans)
        if isinstance(spec.analysis, CombinedAnalysis):
            cascade = spec.analysis.cascade
            if cascade is not None:
                return CascadeOperator(spec, spec.analysis, cascade)
            return ProductOperator(spec, spec.analysis)
        if spec.analysis.last_values or spec.analysis.query.within is not None:
            return LastValuesOperator(spec)
        return GroupedOperator(spec) if spec.analysis.bound else PatternOperator(spec)

    def rules(self, query: int) -> Finishing:
        """The result columns; without GROUP BY, the probability that some chain is true."""
        spec = self.spec
        if isinstance(spec, GroupSpec):
            return Finishing(per=self._per_keys())
        head = tuple(field.name for field in spec.head)
        numbers = ("probability",) if spec.spans is None else tuple(field.name for field in spec.span_columns)
        bounds = (ResultColumn(name, "probability") for name in ("lower", "upper"))
        columns = (*(ResultColumn(name, name) for name in (*head, *numbers)), *bounds)
        any_of, sum_of = None, None
        if spec.spans is None and not spec.direct:
            status = (STATUS.name,) if spec.is_early else ()
            any_of = AnyOf((*head, *status), spec.analysis.query.least_probability)
        elif isinstance(spec.spans, PerWindow) and not spec.direct:
            sum_of = SumOf(head, spec.spans.at_least, spec.least)
        columns = (*columns, ResultColumn("method", constant="exact"))
        if spec.is_early:
            columns = (*columns, ResultColumn(STATUS.name, STATUS.name))
        return Finishing(any_of=any_of, sum_of=sum_of, columns=columns, per=self._per_keys())

    def _per_keys(self) -> PerRule | None:
        """How answers become rows of PER KEYS; operators make those of windows and episodes."""
        spec = self.spec
        per = spec.analysis.query.per
        if not isinstance(per, PerKeys):
            return None
        keys = tuple(KeyColumn(name, ()) for name, _ in spec.analysis.group_by)
        return PerRule.of(per, keys, ("t", "t"), self.frontier())

    def frontier(self, query: int = 0) -> Frontier:
        """The rows of inferred streams are made when their steps, and those of LAG, are complete."""
        derivations = (layout.derivation for layout in self.layouts)
        # One step more: a watermark may be inside a step, and another stream may have longer steps.
        waits = [(each.lag + 2) * each.step for each in derivations if each is not None]
        return replace(super().frontier(query), delay=max(waits, default=0.0))


def make_job(analyses: Sequence[PatternAnalysis], context: JobContext) -> PatternJob:
    """The job of a query: an automaton answers it where it always can, and on live inputs where its state is small."""
    (analysis,) = analyses
    if analysis.query.bounded is not None:
        return PatternJob(BoundedSpec(context, analysis))
    if isinstance(analysis, CombinedAnalysis):
        counts = isinstance(analysis.query.per, PerWindow | PerEpisode)
        return PatternJob((PatternSpec if counts or analysis.cascade else CombinedSpec)(context, analysis))
    if context.live and not analysis.by_automaton:
        return PatternJob(GroupSpec(context, analysis.for_streams()))
    by_weights = analysis.by_weights and analysis.query.method != "SAMPLING"
    return PatternJob((PatternSpec if context.live or by_weights else GroupSpec)(context, analysis))
