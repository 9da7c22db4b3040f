"""Matches the columns of a source with those that a stream or relation needs.

Names are compared without case, as Spark does. Missing columns and unusable types are findings at the declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from anabranch.catalog import Column, Relation, Stream
from anabranch.errors import Finding, WorkbookError
from anabranch.language.findings import shown
from anabranch.language.types import Type

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

#: The column in which Spark's readers put the text of a row that they could not parse.
CORRUPT = "_corrupt_record"


def types_of(schema: spark_types.StructType) -> dict[str, Type]:
    """The types of a source's columns, by lower-case name; columns of unsupported types are left out."""
    known = ((field.name.lower(), _TYPES.get(type(field.dataType))) for field in schema.fields)
    return {name: kind for name, kind in known if kind is not None}


def with_fields(frame: DataFrame) -> DataFrame:
    """The frame with a column for each field of its structs, `a.car` for the field car of a."""
    fields = [
        frame[f"`{column.name}`"].getField(field.name).alias(f"{column.name}.{field.name}")
        for column in frame.schema.fields
        if isinstance(column.dataType, spark_types.StructType)
        for field in column.dataType.fields
    ]
    return frame.select("*", *fields) if fields else frame


def match_columns(
    entry: Stream | Relation, needed: Sequence[Column], schema: spark_types.StructType, where: str
) -> dict[str, str]:
    """The source's spelling of each needed column, by the spelling of the declaration."""
    spelled = {field.name.lower(): field for field in schema.fields}
    findings = []
    for column in needed:
        field = spelled.get(column.name.lower())
        if field is None:
            hint = _hint(column.name, [name for name in schema.names if name != CORRUPT])
            findings.append(_finding(entry, "unknown-column", f"{where} has no column {column.name}", hint))
        elif type(field.dataType) not in _TYPES:
            message = f"column {field.name} of {where} is {field.dataType.simpleString()}"
            findings.append(_finding(entry, "column-type", message, _plain_hint(field, schema.names)))
    if findings:
        raise WorkbookError(findings)
    return {column.name: spelled[column.name.lower()].name for column in needed}


def _plain_hint(field: spark_types.StructField, names: Sequence[str]) -> str:
    """How to fix a column that has no plain values: name one of its fields, if the source has them as columns."""
    fields = [name for name in names if name.startswith(f"{field.name}.")]
    return f"name a field of it: {', '.join(fields)}" if fields else "use a column of plain values"


def _hint(wanted: str, names: list[str]) -> str:
    """How to fix a missing column: another name, another separator if the header became one name, or an encoding."""
    if any("\0" in name for name in names):
        return "the file seems to be in UTF-16; write OPTIONS (encoding = 'UTF-16') after the path"
    separator = next((sep for sep in (";", "\t", "|") if len(names) == 1 and sep in names[0]), None)
    if separator is not None:
        return f"its header is {shown(names[0])}; write OPTIONS (sep = '{separator}') after the path"
    near = get_close_matches(wanted.lower(), [name.lower() for name in names], n=1)
    if near:
        return f"did you mean {next(name for name in names if name.lower() == near[0])}?"
    return f"it has {', '.join(names)}"


def _finding(entry: Stream | Relation, code: str, message: str, hint: str) -> Finding:
    return Finding(code, message, hint, entry.declaration.span)
