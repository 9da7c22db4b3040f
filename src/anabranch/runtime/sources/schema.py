"""From the columns a source has to the columns a stream or relation needs.

Names are compared without case, as Spark does. What is missing or of a type that cannot serve is said with the
place of the declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark_types

from anabranch.catalog import Column, Model, Relation, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.times import TimeKind, instant_code
from anabranch.errors import Finding, WorkbookError
from anabranch.language.temporal import amount_of, instant_of
from anabranch.language.types import Type
from anabranch.transport.packing import IntervalColumns, Layout, SpaceColumns

_TYPES: dict[type, Type] = {
    spark_types.StringType: Type.STRING,
    spark_types.VarcharType: Type.STRING,
    spark_types.CharType: Type.STRING,
    spark_types.ByteType: Type.INTEGER,
    spark_types.ShortType: Type.INTEGER,
    spark_types.IntegerType: Type.INTEGER,
    spark_types.LongType: Type.INTEGER,
    spark_types.FloatType: Type.DOUBLE,
    spark_types.DoubleType: Type.DOUBLE,
    spark_types.DecimalType: Type.DOUBLE,
    spark_types.BooleanType: Type.BOOLEAN,
    spark_types.TimestampType: Type.TIMESTAMP,
    spark_types.TimestampNTZType: Type.TIMESTAMP,
    spark_types.DateType: Type.DATE,
    spark_types.BinaryType: Type.BINARY,
    spark_types.NullType: Type.STRING,
}

SPARK_TYPES: dict[Type, spark_types.DataType] = {
    Type.STRING: spark_types.StringType(),
    Type.INTEGER: spark_types.LongType(),
    Type.DOUBLE: spark_types.DoubleType(),
    Type.BOOLEAN: spark_types.BooleanType(),
    Type.TIMESTAMP: spark_types.TimestampType(),
    Type.DATE: spark_types.DateType(),
    Type.BINARY: spark_types.BinaryType(),
}

_TIME_KINDS = {
    Type.INTEGER: TimeKind.INTEGER,
    Type.DOUBLE: TimeKind.DOUBLE,
    Type.TIMESTAMP: TimeKind.TIMESTAMP,
}


#: The column in which Spark's readers leave the text of a row they could not read.
CORRUPT = "_corrupt_record"


def types_of(schema: spark_types.StructType) -> dict[str, Type]:
    """The types of a source's columns, by lower-case name; columns of other types are left out."""
    known = ((field.name.lower(), _TYPES.get(type(field.dataType))) for field in schema.fields)
    return {name: kind for name, kind in known if kind is not None}


def match_columns(
    entry: Stream | Relation, needed: Sequence[Column], schema: spark_types.StructType, where: str
) -> dict[str, str]:
    """The source's own spelling of each needed column, by the spelling of the declaration."""
    spelled = {field.name.lower(): field for field in schema.fields}
    findings = []
    for column in needed:
        field = spelled.get(column.name.lower())
        if field is None:
            near = get_close_matches(column.name.lower(), list(spelled), n=1)
            mend = (
                f"did you mean {spelled[near[0]].name}?"
                if near
                else f"it has {', '.join(name for name in schema.names if name != CORRUPT)}"
            )
            findings.append(_finding(entry, "unknown-column", f"{where} has no column {column.name}", mend))
        elif type(field.dataType) not in _TYPES:
            kind = field.dataType.simpleString()
            findings.append(
                _finding(
                    entry, "column-type", f"column {field.name} of {where} is {kind}", "use a column of plain values"
                )
            )
    if findings:
        raise WorkbookError(findings)
    return {column.name: spelled[column.name.lower()].name for column in needed}


def layouts_for(streams: Sequence[Stream]) -> tuple[Layout, ...]:
    """The layouts of a query's streams (their types known), with one kind of time for all."""
    kinds = {}
    for stream in streams:
        if stream.time.type not in _TIME_KINDS:
            raise WorkbookError(
                [
                    _finding(
                        stream,
                        "time-type",
                        f"the time column {stream.time.name} of {stream.name} is {stream.time.type.value}",
                        "a time is an integer, a double or a TIMESTAMP; state it, as in TIME t TIMESTAMP",
                    )
                ]
            )
        kinds[stream.name] = _TIME_KINDS[stream.time.type]
    if len(set(kinds.values())) > 1 and TimeKind.TIMESTAMP in kinds.values():
        told = ", ".join(f"{name} has {kind.value}" for name, kind in kinds.items())
        raise WorkbookError(
            [
                _finding(
                    streams[0], "time-type", f"the streams of one query differ in their times ({told})", "convert one"
                )
            ]
        )
    kind = TimeKind.DOUBLE if len(set(kinds.values())) > 1 else next(iter(kinds.values()))
    return tuple(_layout(stream, kind) for stream in streams)


def _layout(stream: Stream, kind: TimeKind) -> Layout:
    uncertain = stream.model in (Model.INDEPENDENT, Model.MARKOV)
    return Layout(
        name=stream.name,
        keys=tuple(column.name for column in stream.keys),
        values=tuple(column.name for column in stream.values),
        previous=tuple(column.name for column in stream.previous),
        time=stream.time.name,
        time_kind=kind,
        probability=stream.probability if uncertain else None,
        key_types=tuple(_arrow(column) for column in stream.keys),
        value_types=tuple(_arrow(column) for column in stream.values),
        lateness=stream.lateness,
        interval=_interval(stream, kind) if stream.model is Model.INTERVALS else None,
        space=_space(stream),
        start=None if stream.start is None else stream.start.name,
        **(prediction_of(stream) if stream.model is Model.PREDICTED else {}),
    )


def prediction_of(stream: Stream) -> dict[str, Any]:
    """What the layout of a PREDICTED stream has besides."""
    period = stream.declaration.period
    return {
        "rates": tuple(f"{column.name}_rate" for column in stream.values),
        "errors": tuple(float(error.amount or 0) if error.source is None else error.source for error in stream.errors),
        "normals": tuple(None if error.normal is None else float(error.normal) for error in stream.errors),
        "period": None if period is None else float(amount_of(period)),
    }


def _space(stream: Stream) -> SpaceColumns | None:
    declaration = stream.declaration
    if declaration.space is None:
        return None
    return SpaceColumns(declaration.space, declaration.geodesic, None if stream.shape is None else _arrow(stream.shape))


def _interval(stream: Stream, kind: TimeKind) -> IntervalColumns:
    clauses = stream.declaration
    horizon = None
    if clauses.horizon is not None:
        low, high = (instant_of(end) for end in clauses.horizon)
        if low is None or high is None or (kind is TimeKind.INTEGER and (low % 1 or high % 1)):
            hint = "write whole numbers, or state TIME t DOUBLE"
            raise WorkbookError([_finding(stream, "out-of-range", "HORIZON must have the type of the times", hint)])
        horizon = (instant_code(low, kind), instant_code(high, kind))
    return IntervalColumns(clauses.order or "seq", clauses.length, clauses.role, clauses.window, horizon)


def _arrow(column: Column) -> pa.DataType:
    return ARROW_TYPES[column.type]


def _finding(entry: Stream | Relation, code: str, message: str, hint: str) -> Finding:
    return Finding(code, message, hint, entry.declaration.span)
