"""Layouts of streams, from their declarations and the types of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from anabranch.arrays import BEGINNING, END
from anabranch.binding.reading import Reading
from anabranch.catalog import Column, Model, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.local_times import WrittenTimes
from anabranch.columns.times import TimeKind, instant_code
from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.language import nodes
from anabranch.language.temporal import amount_of, instant_of
from anabranch.language.types import Type
from anabranch.language.unparse import unparse
from anabranch.relate.files import read_laws
from anabranch.transport.layout import (
    DistributionColumns,
    IntervalColumns,
    Layout,
    PredictionColumns,
    SegmentTimes,
    SpaceColumns,
)
from anabranch.transport.preparation import Preparation, RelationJoin

_TIME_KINDS = {
    Type.INTEGER: TimeKind.INTEGER,
    Type.DOUBLE: TimeKind.DOUBLE,
    Type.TIMESTAMP: TimeKind.TIMESTAMP,
}


def layouts_for(streams: Sequence[Stream], folders: Sequence[str] | None = None) -> tuple[Layout, ...]:
    """The layouts of a query's streams (their types known), with one kind of time for all.

    Paths in the declaration of a stream are relative to its folder, by default to the current one.
    """
    kinds = {}
    for stream in streams:
        if stream.time.type not in _TIME_KINDS:
            message = f"the time column {stream.time.name} of {stream.name} is {stream.time.type.value}"
            hint = "a time is an INTEGER, a DOUBLE, a TIMESTAMP or a DATE; declare its type, as in TIME t TIMESTAMP"
            raise WorkbookError([_finding(stream, "time-type", message, hint)])
        kinds[stream.name] = _TIME_KINDS[stream.time.type]
    # The binder has checked that numbers and timestamps are not mixed.
    kind = TimeKind.DOUBLE if len(set(kinds.values())) > 1 else next(iter(kinds.values()))
    folders = folders or ["."] * len(streams)
    return tuple(_layout(stream, kind, folder) for stream, folder in zip(streams, folders, strict=True))


def _layout(stream: Stream, kind: TimeKind, folder: str) -> Layout:
    uncertain = stream.model in (Model.INDEPENDENT, Model.MARKOV)
    return Layout(
        name=stream.name,
        keys=tuple(column.name for column in stream.keys),
        key_types=tuple(_arrow(column) for column in stream.keys),
        values=tuple(column.name for column in stream.values),
        value_types=tuple(_arrow(column) for column in stream.values),
        time=stream.time.name,
        time_kind=kind,
        start=None if stream.start is None else stream.start.name,
        lateness=stream.lateness,
        idle_after=stream.idle_after,
        max_ahead=stream.max_ahead,
        distribution=_distribution(stream) if uncertain else None,
        interval=interval_of(stream, kind, folder) if stream.model is Model.INTERVALS else None,
        prediction=prediction_of(stream) if stream.model is Model.PREDICTED else None,
        space=_space(stream),
    )


def preparation_of(stream: Stream, reading: Reading) -> Preparation:
    """How the rows of a stream are made from those of its source, for the workers."""
    node = stream.declaration
    return Preparation(
        sources=tuple(column.name for column in reading.needed),
        columns=tuple(reading.columns.items()),
        joins=tuple(RelationJoin(join.relation.name.lower(), join.keys, join.left) for join in reading.joins),
        where=reading.where,
        written=reading.written,
        times=WrittenTimes(node.time_format, node.zone),
        declaration=unparse(replace(node, source=None, or_replace=False)),
    )


def _distribution(stream: Stream) -> DistributionColumns:
    return DistributionColumns(stream.probability, tuple(column.name for column in stream.previous))


def prediction_of(stream: Stream) -> PredictionColumns:
    """The part of a PREDICTED stream whose source has predictions."""
    period = stream.declaration.period
    return PredictionColumns(
        errors=tuple(float(error.amount or 0) if error.source is None else error.source for error in stream.errors),
        normals=tuple(None if error.normal is None else float(error.normal) for error in stream.errors),
        period=0.0 if period is None else float(amount_of(period)),
        rates=tuple(f"{column.name}_rate" for column in stream.values),
        accelerations=_accelerations(stream),
    )


def _accelerations(stream: Stream) -> tuple[str | None, ...]:
    """The column of the acceleration of each value; empty if the source has none."""
    found = {column.name for column in stream.accelerations}
    names = (column.name for column in stream.optional_columns)
    return tuple(name if name in found else None for name in names) if found else ()


def _space(stream: Stream) -> SpaceColumns | None:
    declaration = stream.declaration
    if declaration.space is None:
        return None
    return SpaceColumns(declaration.space, declaration.geodesic, None if stream.shape is None else _arrow(stream.shape))


def interval_of(stream: Stream, kind: TimeKind, folder: str) -> IntervalColumns:
    """The part of an INTERVALS stream."""
    clauses = stream.declaration
    horizon = None
    if clauses.horizon is not None:
        low, high = (_horizon_code(stream, end, kind) for end in clauses.horizon)
        horizon = (BEGINNING if low is None else low, END if high is None else high)
    laws = {clause.lower(): _segment_times(clause, law, kind, folder) for clause, law in stream.segment_laws}
    unnumbered = "" if clauses.start is not None else "seq"
    return IntervalColumns(
        clauses.order or unnumbered, clauses.length, clauses.role, clauses.window, horizon,
        laws.get("duration"), laws.get("gap"), stream.horizon_columns,
    )  # fmt: skip


def _horizon_code(stream: Stream, end: nodes.Expr, kind: TimeKind) -> int | None:
    """The code of an end of HORIZON; None if it is a column."""
    if isinstance(end, nodes.Variable):
        return None
    instant = instant_of(end)
    if instant is None or (kind is TimeKind.INTEGER and instant % 1):
        hint = "write whole numbers, or state TIME t DOUBLE"
        raise WorkbookError([_finding(stream, "out-of-range", "HORIZON must have the type of the times", hint)])
    return instant_code(instant, kind)


def _segment_times(clause: str, law: nodes.SegmentLaw, kind: TimeKind, folder: str) -> SegmentTimes:
    if law.path is not None:
        try:
            classes = read_laws(Path(folder, law.path), clause, kind.per_unit, law.by is not None)
        except DataError as error:
            raise WorkbookError([Finding("law-file", str(error), "fix the file, or use another", law.span)]) from error
        _, phases, mean = classes[0]
        return SegmentTimes(column=law.by, classes=classes) if law.by else SegmentTimes(phases, mean)
    if isinstance(law.mean, nodes.ColumnName):
        return SegmentTimes(law.phases, column=law.mean.name)
    return SegmentTimes(law.phases, float(amount_of(law.mean)) * kind.per_unit)


def _arrow(column: Column) -> pa.DataType:
    return ARROW_TYPES[column.type]


def _finding(stream: Stream, code: str, message: str, hint: str) -> Finding:
    return Finding(code, message, hint, stream.declaration.span)
