"""Converts regions to answer rows: structs of key and time, instants as times, boundaries as lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.times import TimeKind, decode_times
from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.predictions import Predictions, exact_times
from anabranch.monitor.query import AXES
from anabranch.monitor.regions import Regions
from anabranch.transport.layout import Layout

#: The statuses of an answer.
TENTATIVE, INVALIDATED, VALIDATED, PARTIAL = "tentative", "invalidated", "validated", "partial"


def instant_type(kind: TimeKind) -> pa.DataType:
    """The type of an instant of an answer; it may lie between two integers."""
    return kind.arrow_type if kind is TimeKind.TIMESTAMP else pa.float64()


def schema_of(analysis: MonitorAnalysis, layouts: Sequence[Layout], streams: Sequence[int]) -> pa.Schema:
    """The columns of the operators' answers."""
    kind = instant_type(layouts[0].time_kind)
    instants = pa.struct([(name, kind) for name in AXES[: len(streams)]])
    fields = [
        pa.field(operand.label, _event_type(layouts[stream]))
        for operand, stream in zip(analysis.operands, streams, strict=True)
    ]
    fields += [pa.field(name, kind) for name in ("valid_from", "valid_to", "certain_from", "certain_to")]
    fields += [pa.field("boundary", pa.list_(instants))] if len(streams) > 1 else []
    fields += [pa.field("sample", instants), pa.field("probability", pa.float64()), pa.field("status", pa.string())]
    return pa.schema(fields)


def _event_type(layout: Layout) -> pa.StructType:
    keys = list(zip(layout.keys, layout.key_types, strict=True))
    return pa.struct([*keys, (layout.time, layout.time_kind.arrow_type)])


def table_of(
    regions: Regions, held: Predictions, status: str, schema: pa.Schema, layouts: Sequence[Layout],
    streams: Sequence[int], keys: Sequence[Dictionary],
) -> pa.Table:  # fmt: skip
    """The regions as answer rows."""
    kind = layouts[0].time_kind
    columns: list[pa.Array] = []
    for operand, stream in enumerate(streams):
        rows = regions.members[:, operand]
        arrays = [*keys[stream].take(held.key[rows]), decode_times(held.code[rows], kind)]
        columns.append(pa.StructArray.from_arrays(arrays, fields=list(schema.field(operand).type)))
    origin = exact_times(held.code, kind)[regions.members[:, 0]]
    columns += [_instants(origin, regions.interval[:, side], kind) for side in range(2)]
    columns += [_instants(origin, regions.certain[:, side], kind) for side in range(2)]
    dims = len(streams)
    if dims > 1:
        counts = np.diff(regions.starts)
        corners = _points(np.repeat(origin, counts), regions.corners, dims, kind)
        boundary = schema.field("boundary").type
        columns.append(pa.ListArray.from_arrays(pa.array(regions.starts.astype(np.int32)), corners, type=boundary))
    columns.append(_points(origin, regions.sample, dims, kind))
    columns += [pa.array(regions.probability), pa.repeat(pa.scalar(status), len(regions))]
    return pa.table(columns, schema=schema)


def _points(origin: npt.NDArray[np.generic], points: F64, dims: int, kind: TimeKind) -> pa.StructArray:
    """Points as structs; if all operands are compared at the same instant, it is repeated for each operand."""
    columns = [_instants(origin, points[:, min(axis, points.shape[1] - 1)], kind) for axis in range(dims)]
    return pa.StructArray.from_arrays(columns, fields=[pa.field(name, instant_type(kind)) for name in AXES[:dims]])


def _instants(origin: npt.NDArray[np.generic], offset: F64, kind: TimeKind) -> pa.Array:
    """Instants from their distances to an origin; NULL for NaN."""
    unknown = np.isnan(offset)
    if kind is TimeKind.TIMESTAMP:
        instants = decode_times(_shifted(origin.astype(np.int64), np.where(unknown, 0.0, offset)), kind)
    else:
        instants = pa.array(origin.astype(np.float64) + offset)
    return pc.if_else(pa.array(~unknown), instants, pa.scalar(None, instants.type)) if unknown.any() else instants


def _shifted(origin: I64, offset: F64) -> I64:
    return origin + np.rint(offset * 1e6).astype(np.int64)
