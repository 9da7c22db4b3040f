"""The columns of small files of JSON lines, without a job of Spark.

They have the names, the order and the types that Spark infers. Files with anything but flat objects are left to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import types as spark_types

from anabranch.runtime.sources.small_files import small_texts

_NUMBERS = (spark_types.LongType(), spark_types.DoubleType())

#: The types of values. Spark infers no type from NULL or an empty text.
_KINDS: dict[type, spark_types.DataType] = {
    bool: spark_types.BooleanType(),
    int: spark_types.LongType(),
    float: spark_types.DoubleType(),
    str: spark_types.StringType(),
}


class _Fields(list[tuple[str, object]]):
    """The fields of an object, in order."""


def plain_json_schema(paths: Sequence[str]) -> spark_types.StructType | None:
    """The columns of uncompressed local files, as Spark names and infers them; None if Spark must read them."""
    texts = small_texts(paths, (".json", ".jsonl", ".ndjson"))
    if texts is None:
        return None
    columns: dict[str, set[spark_types.DataType]] = {}
    try:
        for text in texts:
            for line in text.removesuffix("\n").split("\n"):
                _add_kinds(line, columns)
        names = sorted(columns, key=lambda name: name.encode("utf-16-be"))  # the order of strings in Java
    except (ValueError, RecursionError):
        return None
    if len({name.lower() for name in names}) < len(names):
        return None
    return spark_types.StructType([spark_types.StructField(name, _kind(columns[name])) for name in names])


def _add_kinds(line: str, columns: dict[str, set[spark_types.DataType]]) -> None:
    """Add the types of the values of a line; ValueError if the line is not a flat object with different names."""
    fields = json.loads(line, object_pairs_hook=_Fields, parse_constant=_refuse)
    if "\r" in line or not isinstance(fields, _Fields) or len(dict(fields)) < len(fields):
        raise ValueError(line)
    for name, value in fields:
        kinds = columns.setdefault(name, set())
        if value not in (None, ""):
            kinds.add(_kind_of_value(value))


def _kind_of_value(value: object) -> spark_types.DataType:
    kind = _KINDS.get(type(value))
    if kind is None or (type(value) is int and not -(2**63) <= value < 2**63):
        raise ValueError(value)
    return kind


def _refuse(constant: str) -> None:
    """Spark has its own rules for NaN and infinities."""
    raise ValueError(constant)


def _kind(found: set[spark_types.DataType]) -> spark_types.DataType:
    """The type of a column with values of these types."""
    if found and found <= set(_NUMBERS):
        return max(found, key=_NUMBERS.index)
    return found.pop() if len(found) == 1 else spark_types.StringType()
