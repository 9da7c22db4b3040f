"""Layouts and tables for the tests of transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from anabranch.arrays import END
from anabranch.columns.times import TimeKind
from anabranch.inference.reporting import Reporting
from anabranch.transport.layout import DistributionColumns, IntervalColumns, Layout, PredictionColumns
from anabranch.transport.routing import KeyPlacement

#: A watermark past every time that a test uses.
PAST_ALL_ROWS = END - 1

MARKOV = Layout(
    name="at",
    keys=("person",),
    values=("place", "floor"),
    time="t",
    time_kind=TimeKind.INTEGER,
    distribution=DistributionColumns("p", ("prev_place", "prev_floor")),
    key_types=(pa.string(),),
    value_types=(pa.string(), pa.int64()),
)

INDEPENDENT = Layout(
    name="seen",
    keys=("tag", "antenna"),
    values=("place",),
    time="t",
    time_kind=TimeKind.DOUBLE,
    distribution=DistributionColumns("p"),
    key_types=(pa.float64(), pa.int64()),
    value_types=(pa.string(),),
)

CERTAIN = Layout(
    name="door",
    keys=("door",),
    values=(),
    time="t",
    time_kind=TimeKind.INTEGER,
    key_types=(pa.int64(),),
    value_types=(),
)

PREDICTED = Layout(
    name="cars",
    keys=("car",),
    values=("x", "y"),
    time="t",
    time_kind=TimeKind.DOUBLE,
    key_types=(pa.string(),),
    value_types=(pa.float64(), pa.int64()),
    prediction=PredictionColumns(("spread", 5.0), (None, 2.0), 30.0, ("x_rate", "y_rate")),
)

POSITIONS = replace(
    PREDICTED,
    name="positions",
    prediction=PredictionColumns((25.0, 5.0), (None, 2.0), 30.0, reporting=Reporting((25.0, 5.0), period=30.0)),
)

INTERVALS = Layout(
    name="iv",
    keys=("k",),
    values=(),
    time="t",
    time_kind=TimeKind.INTEGER,
    key_types=(pa.string(),),
    value_types=(),
    interval=IntervalColumns("seq", "n", "what", ("lo", "hi")),
)


def types_of(layout: Layout) -> dict[str, pa.DataType]:
    """The type of each column of a layout."""
    types = dict(zip(layout.keys, layout.key_types, strict=True))
    types |= zip(layout.values, layout.value_types, strict=True)
    types |= zip(layout.previous, layout.value_types, strict=False)
    types[layout.time] = layout.time_kind.arrow_type
    if layout.prediction:
        prediction = layout.prediction
        numbers = (*prediction.rates, *prediction.acceleration_columns, *prediction.error_columns)
        types |= dict.fromkeys(numbers, pa.float64())
    if layout.distribution:
        types[layout.distribution.probability] = pa.float64()
    if layout.interval:
        times = dict.fromkeys(layout.interval.window or (), layout.time_kind.arrow_type)
        types |= dict.fromkeys(layout.interval.columns, pa.int64()) | times
        types |= {layout.interval.role: pa.string()} if layout.interval.role else {}
        for law, column in layout.interval.laws_by_row.values():
            types[column] = pa.string() if law.classes else pa.float64()
    if layout.start:
        types[layout.start] = layout.time_kind.arrow_type
    if layout.space:
        types = dict.fromkeys(layout.space.columns, layout.space.shape_type or pa.float64()) | types
    return types


def table_of(layout: Layout, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table of a source; a column that a row does not have is NULL."""
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types_of(layout).items()})


class ByKey(KeyPlacement):
    """Assigns a key to a bucket by the hash of all its columns."""

    layouts: Sequence[Layout] = ()
    relations: Mapping[str, pa.Table] = {}

    def __init__(self, *layouts: Layout) -> None:
        self.layouts = layouts

    def needed(self, stream: int) -> None:
        return None

    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        return list(keys.values())
