"""Rows of a table as JSON texts, for messages."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa


def json_rows(table: pa.Table) -> list[str]:
    """One JSON object per row. Times are ISO 8601 in UTC, with microseconds only if there are any; NULL is null.

    >>> json_rows(pa.table({"t": pa.array([0], pa.timestamp("us", "UTC")), "p": [0.5]}))
    ['{"t":"1970-01-01T00:00:00.000Z","p":0.5}']
    """
    return [json_text(row) for row in table.to_pylist()]


def json_text(value: Any) -> str:
    """A value of a table as JSON."""
    try:
        return _dumped(value)
    except ValueError:
        return _dumped(finite(value))


def finite(value: Any) -> Any:
    """A value with NaN and infinities as text, as Spark writes them, because JSON has no such numbers.

    >>> finite({"x": [float("nan"), 1.0]})
    {'x': ['NaN', 1.0]}
    """
    if isinstance(value, float):
        return _NOT_FINITE.get(str(value), value)
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_text, allow_nan=False)


def _text(value: Any) -> Any:
    """Values that JSON lacks."""
    if isinstance(value, dt.datetime):
        utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return utc.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds") + "Z"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no JSON")
