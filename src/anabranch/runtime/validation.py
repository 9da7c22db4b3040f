"""The input of a stream is checked against its model on Spark, without running a query (`check --data`, `rows`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.arrays import Bools
from anabranch.binding.typed import Reference
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.relate.validation import invalid_entities
from anabranch.runtime.inputs import Input
from anabranch.runtime.packets import quarantine_unreadable
from anabranch.runtime.readiness import make_ready
from anabranch.transport.checks import OVERFULL, QUARANTINE, check_rows, overfull_rows, plain_rows, quarantine
from anabranch.transport.layout import Layout
from anabranch.transport.preparing import prepare_rows


def validate_input(source: Input, layout: Layout) -> DataFrame:
    """The rows of an input that its stream's model does not allow, with the reason."""
    frame, names, corrupt = source.columns_of(layout)
    make_ready(frame.sparkSession)
    stage = partial(_validate_partition, layout, names, corrupt, source.relation_rows())
    columns = [_source_of(name, layout) for name in layout.keys]
    keys = [frame[names[name]] for name in columns if name is not None]
    # The computed keys of rows that are not prepared yet are not known: one partition has them all.
    parts = frame.repartition(*keys) if len(keys) == len(columns) else frame.coalesce(1)
    return parts.mapInArrow(stage, from_arrow_schema(QUARANTINE))


def _source_of(column: str, layout: Layout) -> str | None:
    """The column of the source that a column of the stream is equal to; None if it is computed or joined."""
    if layout.preparation is None:
        return column
    tree = dict(layout.preparation.columns)[column]
    sources = {name.lower(): name for name in layout.source_columns}
    return sources.get(tree.name) if isinstance(tree, Reference) and tree.owner is None else None


def _validate_partition(
    layout: Layout,
    names: dict[str, str],
    corrupt: str | None,
    relations: Mapping[str, pa.Table],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    received = list(batches)
    if received:
        table = pa.Table.from_batches(received)
        unreadable = QUARANTINE.empty_table()
        if corrupt is not None:
            table, unreadable = quarantine_unreadable(table, layout.name, corrupt)
        table = table.select(list(names.values())).rename_columns(list(names))
        if layout.preparation is not None:
            prepared = prepare_rows(table, layout.name, layout.preparation, relations)
            table, unreadable = prepared.rows, pa.concat_tables([unreadable, prepared.rejected])
        yield from pa.concat_tables([unreadable, validate(table, layout)]).to_batches()


def valid_rows(source: Input, layout: Layout) -> DataFrame:
    """The rows of an input that its stream's model allows, row by row, in the types of the stream."""
    frame, names, corrupt = source.columns_of(layout)
    make_ready(frame.sparkSession)
    types = {column.name.lower(): ARROW_TYPES[column.type] for column in source.typed_entry().columns}
    schema = pa.schema([(name, types[name.lower()]) for name in layout.columns])
    stage = partial(_valid_batches, layout, names, corrupt, source.relation_rows(), schema)
    return frame.mapInArrow(stage, from_arrow_schema(schema))


def _valid_batches(
    layout: Layout,
    names: dict[str, str],
    corrupt: str | None,
    relations: Mapping[str, pa.Table],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if corrupt is not None:
            table, _ = quarantine_unreadable(table, layout.name, corrupt)
        table = table.select(list(names.values())).rename_columns(list(names))
        if layout.preparation is not None:
            table = prepare_rows(table, layout.name, layout.preparation, relations).rows
        valid, _ = check_rows(table, layout)
        yield from valid.select(schema.names).cast(schema).to_batches()


def validate(table: pa.Table, layout: Layout) -> pa.Table:
    """The rows that cannot be used, as a QUARANTINE table; `table` has all rows of a key."""
    valid, rejected = check_rows(table.select(layout.columns), layout)
    parts = [rejected]
    if valid.num_rows:
        parts += [
            quarantine(layout.name, reason, plain_rows(valid.filter(pa.array(invalid))))
            for reason, invalid in _invalid_together(valid, layout)
        ]
    return pa.concat_tables(parts)


def _invalid_together(table: pa.Table, layout: Layout) -> Iterator[tuple[str, Bools]]:
    """Rows that are valid by themselves, but not together with the other rows of their key."""
    if layout.distribution is not None:
        yield OVERFULL, overfull_rows(table, layout, layout.distribution)
    if layout.interval is not None:
        yield from invalid_entities(table, layout)
