"""The rows of Avro messages: the types of a schema, and its records by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.clients.extras import optional_module
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.errors import DataError
from anabranch.files.messages import Decoded
from anabranch.language.types import Type

#: Why a message is quarantined.
NOT_AVRO = "the message does not fit the Avro schema"
OTHER_SCHEMA = "the message was not written with the schema of this id"

_TYPES = {
    "string": Type.STRING, "enum": Type.STRING, "int": Type.INTEGER, "long": Type.INTEGER, "float": Type.DOUBLE,
    "double": Type.DOUBLE, "boolean": Type.BOOLEAN, "bytes": Type.BINARY, "fixed": Type.BINARY,
}  # fmt: skip
_LOGICAL_TYPES = {
    "date": Type.DATE, "decimal": Type.DOUBLE, "local-timestamp-micros": Type.TIMESTAMP,
    "local-timestamp-millis": Type.TIMESTAMP, "timestamp-micros": Type.TIMESTAMP, "timestamp-millis": Type.TIMESTAMP,
    "uuid": Type.STRING,
}  # fmt: skip

#: Schema registries write this byte and the id of the schema, in four bytes, before each value.
_MAGIC, _HEADER_BYTES = b"\x00", 5


def avro_types(schema: str) -> dict[str, Type]:
    """The columns of a schema in order; fields of nested types are left out. Raises `DataError`.

    >>> avro_types('{"type": "record", "name": "r", "fields": [{"name": "t", "type": ["null", "long"]}]}')
    {'t': <Type.INTEGER: 'INTEGER'>}
    """
    try:
        fields = json.loads(schema)["fields"]
        types = {field["name"]: _type_of(field["type"]) for field in fields}
    except (ValueError, LookupError, TypeError) as error:
        raise DataError("the Avro schema is not a record in JSON") from error
    return {name: kind for name, kind in types.items() if kind is not None}


def _type_of(written: Any) -> Type | None:
    """The type of a field; None if it has no plain values."""
    if isinstance(written, list):
        others = [part for part in written if part != "null"]
        return _type_of(others[0]) if len(others) == 1 else None
    if isinstance(written, Mapping):
        logical = _LOGICAL_TYPES.get(written.get("logicalType", ""))
        return logical or _type_of(written["type"])
    return _TYPES.get(written)


@dataclass(frozen=True, slots=True)
class AvroValues:
    """Values that are records of one Avro schema (a `ValueFormat`).

    `schema_id` is the id of the schema in the header that a registry has written; None if values have no header.
    """

    schema: str
    types: Mapping[str, Type]
    schema_id: int | None = None

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The rows of values, one for each."""
        header = b"" if self.schema_id is None else _MAGIC + self.schema_id.to_bytes(_HEADER_BYTES - 1, "big")
        records: list[dict[str, Any]] = []
        numbers: list[int] = []
        faults: dict[int, str] = {}
        for number, value in enumerate(values):
            if not value.startswith(header):
                faults[number] = OTHER_SCHEMA
                continue
            record = _record(self.schema, value[len(header) :])
            if record is None:
                faults[number] = NOT_AVRO
                continue
            records.append(record)
            numbers.append(number)
        columns = [
            pa.array([_plain(record[name], kind) for record in records], ARROW_TYPES[kind])
            for name, kind in self.types.items()
        ]
        return Decoded(pa.table(columns, names=list(self.types)), np.array(numbers, np.int64), faults)


def _record(schema: str, value: bytes) -> dict[str, Any] | None:
    """The fields of a record; None if the bytes are not exactly one record of the schema."""
    read, parsed = _fastavro(schema)
    stream = io.BytesIO(value)
    try:
        record = read(stream, parsed)
    except Exception:  # fastavro raises whatever its decoders of wrong bytes raise
        return None
    return record if isinstance(record, dict) and stream.tell() == len(value) else None


@lru_cache(maxsize=8)
def _fastavro(schema: str) -> tuple[Any, Any]:
    fastavro = optional_module("fastavro")
    return fastavro.schemaless_reader, fastavro.parse_schema(json.loads(schema))


def read_schema(path: str) -> str:
    """The schema in a file; raises `DataError` if it cannot be used."""
    try:
        schema = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise DataError(f"the Avro schema {path} cannot be read: {reason}") from error
    check_schema(schema)
    return schema


def check_schema(schema: str) -> None:
    """Raise `DataError` if fastavro is missing, or does not take a schema."""
    try:
        _fastavro(schema)
    except DataError:
        raise
    except Exception as error:  # a schema can be wrong in many ways
        raise DataError(f"the Avro schema cannot be used: {str(error).splitlines()[0]}") from error


def _plain(value: Any, kind: Type) -> Any:
    """A value of a record as Arrow takes it."""
    if value is None:
        return None
    if kind is Type.DOUBLE:
        return float(value)
    if kind is Type.STRING:
        return str(value)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
