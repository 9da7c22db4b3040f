"""The job of a RELATE query: operators assemble entities, Spark pairs them in blocks, the kernel decides the pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from anabranch.binding.typed import Typed
from anabranch.language.types import Type
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.deciding import decide
from anabranch.relate.operator import RelateOperator
from anabranch.relate.pairing import as_doubles
from anabranch.relate.spec import RelateSpec
from anabranch.transport.finishing import BlockSide, Finishing, Pairing, ResultColumn
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.routing import KeyPlacement


@dataclass(frozen=True)
class RelateJob(QueryJob[RelateSpec], KeyPlacement):
    """A RELATE query."""

    # ------------------------------------------------------------ routing

    def needed(self, stream: int) -> Typed | None:
        """The condition on a key that can be an operand."""
        return self.spec.analysis.needed(self.layouts[stream].name)

    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The key columns that assign entities to buckets.

        On live inputs, an entity and all its possible partners share a bucket, because how long it is kept depends on
        them.
        """
        return self._equated(stream, keys) if self.spec.live else list(keys.values())

    def _equated(self, stream: int, columns: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The key columns of a stream that WHERE equates with those of every partner."""
        equated = []
        sides = [side for side, number in enumerate(self.spec.streams) if number == stream]
        for pair in self.spec.analysis.equalities:
            # With a.x = b.y within one stream, an entity has different partners as `a` and as `b`.
            if len({pair[side].name for side in sides}) == 1:
                column = columns[pair[sides[0]].name]
                equated.append(as_doubles(column) if _compares_doubles(pair) else column)
        return equated

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return RelateOperator(self.spec)

    # ------------------------------------------------------------ pairs

    def rules(self, query: int) -> Finishing:
        """Spark brings entities together in blocks; the kernel computes the probability of each pair."""
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
