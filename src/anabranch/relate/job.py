"""The job of a RELATE query: operators assemble entities, and decide the pairs of those that share a bucket.

Entities share a bucket with all their possible partners if WHERE equates columns of both. Otherwise, those of live
inputs are sent to several buckets, so that every two share one; Spark brings those of an archive together in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from anabranch.binding.typed import Typed
from anabranch.language.types import Type
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.deciding import decide
from anabranch.relate.operator import PairOperator, RelateOperator
from anabranch.relate.pairing import as_doubles
from anabranch.relate.placement import parts_for, to_buckets
from anabranch.relate.spec import RelateSpec
from anabranch.transport.finishing import BlockSide, Finishing, Pairing, ResultColumn
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.routing import KeyPlacement, Packets


@dataclass(frozen=True)
class RelateJob(QueryJob[RelateSpec], KeyPlacement):
    """A RELATE query."""

    # ------------------------------------------------------------ routing

    def needed(self, stream: int) -> Typed | None:
        """The condition on a key that can be an operand."""
        return self.spec.analysis.needed(self.layouts[stream].name)

    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The key columns that assign entities to buckets: those that are equal for every pair, or else all of them."""
        if not self.spec.routed_by:
            return list(keys.values())
        side = self.spec.streams.index(stream)
        columns = [(keys[pair[side].name], _compares_doubles(pair)) for pair in self.spec.routed_by]
        return [as_doubles(column) if is_double else column for column, is_double in columns]

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of valid rows, and the number of rows that are not sent because no answer can use them.

        How long an entity of a live input is kept depends on its possible partners, so they must share its buckets.
        """
        if not self.spec.has_parts:
            return super().pack(stream, rows, n_buckets)
        buckets = parts_for(n_buckets)
        by_part, ignored = super().pack(stream, rows, buckets[0].of)
        return to_buckets(by_part, buckets), ignored

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers: pairs, or entities."""
        return self.spec.result_schema if self.spec.shares_buckets else self.spec.answer_schema

    def together(self, stream: int) -> tuple[str, ...]:
        """The columns that are equal in all entities of a pair, or else the key columns of an entity."""
        if self.spec.live:
            return ()
        side = self.spec.streams.index(stream)
        names = [pair[side].name for pair in self.spec.routed_by] or self.layouts[stream].keys
        return tuple(name.lower() for name in names)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return PairOperator(self.spec) if self.spec.shares_buckets else RelateOperator(self.spec)

    # ------------------------------------------------------------ pairs

    def rules(self, query: int) -> Finishing:
        """Entities that do not share a bucket are brought together in blocks, where the pairs are decided."""
        if self.spec.shares_buckets:
            return Finishing(columns=self._columns_per_keys())
        first, second = (self._block_side(side, stream) for side, stream in enumerate(self.spec.streams))
        equal = bool(self.spec.analysis.equalities)
        pairing = Pairing((first, second), equal, partial(decide, self.spec), self.spec.result_schema)
        return Finishing(pairing=pairing, columns=self._columns_per_keys())

    def _columns_per_keys(self) -> tuple[ResultColumn, ...] | None:
        """The columns of PER KEYS, None without it. A pair has one answer, so the answer is the row."""
        query = self.spec.analysis.query
        if query.per is None:
            return None
        return (
            *(ResultColumn(operand.label, operand.label) for operand in query.operands),
            ResultColumn("count", constant=1),
            ResultColumn("probability", "probability"),
            ResultColumn("expected", "probability"),
            *([ResultColumn("status", "status")] if self.spec.live else []),
        )

    def _block_side(self, side: int, stream: int) -> BlockSide:
        names, equalities = self.spec.key_names(stream), self.spec.analysis.equalities
        if not equalities:
            return BlockSide(stream, tuple(names.values()), (False,) * len(names))
        columns = tuple(names[pair[side].name] for pair in equalities)
        return BlockSide(stream, columns, tuple(_compares_doubles(pair) for pair in equalities))


def _compares_doubles(pair: tuple[Typed, Typed]) -> bool:
    return any(side.type is Type.DOUBLE for side in pair)


def make_job(analyses: Sequence[RelateAnalysis], context: JobContext) -> RelateJob:
    """The job of a query."""
    (analysis,) = analyses
    return RelateJob(RelateSpec(context, analysis))
