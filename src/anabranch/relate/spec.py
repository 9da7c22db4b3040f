"""The specification of a RELATE job: what its operators and the pairing of its entities need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from anabranch.binding.typed import Reference
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.query import END
from anabranch.transport.job import Specification

#: The columns of an entity, besides its key.
_ENTITY = [
    pa.field("stream", pa.int32()),
    pa.field("earliest", pa.int64()),
    pa.field("latest", pa.int64()),
    pa.field("changed", pa.bool_()),
    pa.field("ended", pa.bool_()),
    pa.field("valid", pa.bool_()),  # FALSE if its rows proved invalid: `entity` is then the last valid version
    pa.field("entity", pa.binary()),  # the windows of its events, see `Windows.to_blobs`
    pa.field("previous", pa.binary()),  # the version before the last change; NULL if there is none
]


@dataclass(frozen=True)
class RelateSpec(Specification):
    """A RELATE query."""

    analysis: RelateAnalysis

    @property
    def streams(self) -> tuple[int, int]:
        """The number of the stream of each operand."""
        first, second = (self.stream_number(operand.stream.name) for operand in self.analysis.query.operands)
        return first, second

    @cached_property
    def routed_by(self) -> tuple[tuple[Reference, Reference], ...]:
        """The columns of the first and of the second operand, equal for every pair, by which entities are routed.

        With a.x = b.y within one stream, an entity has different partners as `a` and as `b`, so these are left out.
        """
        same_stream = self.analysis.same_stream
        return tuple(
            (first, second)
            for first, second in self.analysis.equalities
            if not same_stream or first.name == second.name
        )

    @property
    def has_parts(self) -> bool:
        """Whether an entity is sent to several buckets, so that every two share one (`placement.py`)."""
        return self.live and not self.routed_by

    @property
    def shares_buckets(self) -> bool:
        """Whether every two entities that can be a pair share a bucket."""
        return self.live or bool(self.routed_by)

    @cached_property
    def answer_schema(self) -> pa.Schema:
        """One row per entity: the key columns of every stream, and the columns of the entity."""
        keys = [
            pa.field(name, kind)
            for number, layout in enumerate(self.layouts)
            for name, kind in zip(self.key_names(number).values(), layout.key_types, strict=True)
        ]
        attributes = [
            pa.field(name, self.attribute_type(number))
            for number in range(len(self.layouts))
            if self.attributes(number)
            for name in self.attribute_names(number)
        ]
        return pa.schema([*keys, *_ENTITY, *attributes])

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of the result, one row per pair of entities."""
        fields = []
        for operand, stream in zip(self.analysis.query.operands, self.streams, strict=True):
            layout = self.layouts[stream]
            columns = list(zip(layout.keys, layout.key_types, strict=True))
            columns += [(END, self.time_kind.arrow_type)] if self.has_ends else []
            fields.append(pa.field(operand.label, pa.struct(columns)))
        fields.append(pa.field("probability", pa.float64()))
        if self.analysis.query.complement:
            fields.append(pa.field("complement", pa.float64()))
        if self.analysis.query.count:
            fields += [pa.field("expected", pa.float64()), pa.field("distribution", pa.list_(pa.float64()))]
        if self.live:
            fields.append(pa.field("status", pa.string()))
        return pa.schema(fields)

    @property
    def has_ends(self) -> bool:
        """Whether the operands of an answer have their ends."""
        return self.context.ends and self.analysis.query.has_ends

    def has_laws(self, stream: int) -> bool:
        """Whether the segments or gaps of a stream have a distribution."""
        return any(self.layouts[stream].segment_laws)

    def attributes(self, stream: int) -> tuple[int, ...]:
        """The indexes of the VALUE columns of a stream that conditions use."""
        return self._attributes[stream]

    @cached_property
    def _attributes(self) -> tuple[tuple[int, ...], ...]:
        indexes = []
        for layout in self.layouts:
            names = [name.lower() for name in layout.values]
            indexes.append(tuple(names.index(name) for name in self.analysis.attributes(layout.name)))
        return tuple(indexes)

    def attribute_type(self, stream: int) -> pa.DataType:
        """The type of the attributes of an entity: one struct for each segment, NULL if they are unknown."""
        layout = self.layouts[stream]
        fields = [(layout.values[index].lower(), layout.value_types[index]) for index in self.attributes(stream)]
        return pa.list_(pa.struct(fields))

    def attribute_names(self, stream: int) -> tuple[str, str]:
        """The columns of the entities with the attributes of their current and of their previous version."""
        return f"attributes_{stream}", f"previous_attributes_{stream}"

    def key_names(self, stream: int) -> dict[str, str]:
        """The columns of the entities that hold the key columns of a stream, by lower-case name of the key column."""
        keys = self.layouts[stream].keys
        return {name.lower(): f"key_{stream}_{index}" for index, name in enumerate(keys)}
