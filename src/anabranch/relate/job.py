"""RELATE: a bucket puts entities together, Spark pairs them, and the kernel decides the pairs of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.binding.typed import Typed
from anabranch.columns.dictionary import flat
from anabranch.language.types import Type
from anabranch.relate.analysis import RelateAnalysis, analyse
from anabranch.relate.deciding import decide
from anabranch.relate.operator import RelateOperator
from anabranch.relate.pairing import Side, as_doubles, in_blocks
from anabranch.relate.query import BoundRelate
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.routing import KeyPlacement

#: What is known of an entity, besides its key.
_ENTITY = [
    pa.field("stream", pa.int32()),
    pa.field("earliest", pa.int64()),
    pa.field("latest", pa.int64()),
    pa.field("changed", pa.bool_()),
    pa.field("over", pa.bool_()),
    pa.field("there", pa.bool_()),  # FALSE where it turned out to be none: then `entity` is what it was held for
    pa.field("entity", pa.binary()),
    pa.field("before", pa.binary()),  # as it was known until it changed; NULL where it was not known, or did not
]


@dataclass(frozen=True)
class RelateJob(QueryJob, KeyPlacement):
    """A RELATE query as the workers need it."""

    analysis: RelateAnalysis

    @property
    def answer_schema(self) -> pa.Schema:
        """One row an entity: the key columns of every stream, and what is known of the entity."""
        keys = [
            pa.field(name, kind)
            for number, layout in enumerate(self.layouts)
            for name, kind in zip(self.key_names(number).values(), layout.key_types, strict=True)
        ]
        return pa.schema([*keys, *_ENTITY])

    @property
    def result_schema(self) -> pa.Schema:
        """The query's own columns."""
        fields = []
        for side in self.analysis.query.operands:
            layout = self.layouts[self.stream_number(side.stream.name)]
            fields.append(pa.field(side.label, pa.struct(list(zip(layout.keys, layout.key_types, strict=True)))))
        fields.append(pa.field("probability", pa.float64()))
        if self.analysis.query.complement:
            fields.append(pa.field("complement", pa.float64()))
        if self.live:
            fields.append(pa.field("status", pa.string()))
        return pa.schema(fields)

    def key_names(self, stream: int) -> dict[str, str]:
        """What the key columns of a stream are called among the entities, by their lower-case names."""
        keys = self.layouts[stream].keys
        return {name.lower(): f"key_{stream}_{place}" for place, name in enumerate(keys)}

    # ------------------------------------------------------------ placement

    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to be an operand."""
        return self.analysis.needed(self.layouts[stream].name)

    def spread(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The key columns by which entities are spread over buckets.

        What is kept of a live stream depends on all entities that could be partners, so they share a bucket.
        """
        return self._equated(stream, keys) if self.live else list(keys.values())

    def _equated(self, stream: int, columns: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The key columns of a stream that WHERE equates with those of any partner."""
        spread = []
        numbers = [self.stream_number(side.stream.name) for side in self.analysis.query.operands]
        sides = [place for place, number in enumerate(numbers) if number == stream]
        for pair in self.analysis.equalities:
            # Where a.x = b.y within one stream, an entity has other partners as a than as b.
            if len({pair[place].name for place in sides}) == 1:
                column = columns[pair[sides[0]].name]
                doubles = any(side.type is Type.DOUBLE for side in pair)
                spread.append(as_doubles(column) if doubles else column)
        return spread

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return RelateOperator(self)

    # ------------------------------------------------------------ pairs

    def finish(self, entities: DataFrame) -> DataFrame:
        """Let the entities meet, and give the probability of each pair."""
        streams = [self.stream_number(side.stream.name) for side in self.analysis.query.operands]
        placed = in_blocks(entities, self.analysis, [self.key_names(stream) for stream in streams], streams)
        answers = from_arrow_schema(self.result_schema)
        # Not a partial: Spark looks for type hints, and stumbles over those of one.
        return placed.groupBy("block").applyInArrow(lambda members: decide(self, members), answers)

    def finish_table(self, entities: pa.Table) -> None:
        """Pairs are what RELATE works at: Spark spreads them."""

    def side(self, number: int, members: pa.Table) -> tuple[Side, pa.Table]:
        """One operand's entities among the members of a block."""
        mine = members.filter(pc.equal(members["side"], number)).combine_chunks()
        names = self.key_names(self.stream_number(self.analysis.query.operands[number].stream.name))
        keys = {name: flat(mine[column]) for name, column in names.items()}
        earliest, latest = (mine[name].to_numpy() for name in ("earliest", "latest"))
        return Side(keys, earliest, latest, flat(mine["changed"]).to_numpy(zero_copy_only=False)), mine


def make_job(queries: Sequence[BoundRelate], context: JobContext) -> RelateJob:
    """A query made ready for the workers."""
    (query,) = queries
    return RelateJob(context, analyse(query))
