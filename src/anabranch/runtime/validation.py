"""A stream's input checked on Spark, key by key, without any query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.catalog import Model
from anabranch.relate.validation import validate
from anabranch.runtime.inputs import Input
from anabranch.runtime.packets import set_unreadable_aside
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.packing import Layout


def validate_input(source: Input, model: Model, layout: Layout) -> DataFrame:
    """The rows of an input that its stream's model does not allow, with the reason."""
    frame, names, corrupt = source.columns_of(layout)
    keys = [frame[f"`{names[name]}`"] for name in layout.keys]
    stage = partial(_validate, layout, model, names, corrupt)
    return frame.repartition(*keys).mapInArrow(stage, from_arrow_schema(QUARANTINE))


def _validate(
    layout: Layout, model: Model, names: dict[str, str], corrupt: str | None, batches
) -> Iterator[pa.RecordBatch]:
    held = list(batches)
    if held:
        table = pa.Table.from_batches(held)
        unreadable = QUARANTINE.empty_table()
        if corrupt is not None:
            table, unreadable = set_unreadable_aside(table, layout.name, corrupt)
        table = table.select(list(names.values())).rename_columns(list(names))
        yield from pa.concat_tables([unreadable, validate(table, layout, model)]).to_batches()
