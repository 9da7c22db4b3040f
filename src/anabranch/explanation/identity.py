"""Finds an answer among others: answers of files have other types than those of a run, but the same values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from anabranch.errors import AnabranchError

#: The columns of answers that are times.
_TIMES = ("t", "t_start", "t_from", "t_to", "valid_from", "valid_to")


class AnswerRow(dict[str, Any]):
    """An answer, or an event in it. A column that it lacks is an error of the caller."""

    def __missing__(self, name: str) -> Any:
        raise AnabranchError(f"the answer has no column {name}; pass a whole row of the answers")


def same(one: Any, other: Any) -> bool:
    """Whether two values of answers are equal: numbers nearly, times as instants, structs and lists by their parts.

    Of a struct, the fields that `other` has are compared.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(name in one and same(one[name], other[name]) for name in other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if one is None or other is None:
        return one is other
    left, right = _number(one), _number(other)
    if left is not None and right is not None:
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return _text(one) == _text(other)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    """A value as text; timestamps are in UTC, whether they have a zone or not."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return str(value)
    if isinstance(value, datetime):
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return aware.isoformat()
    return (
        datetime(value.year, value.month, value.day, tzinfo=UTC).isoformat() if isinstance(value, date) else str(value)
    )


def find(rows: Iterable[Mapping[str, Any]], identity: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows that have these values."""
    return [row for row in rows if all(same(row.get(name), value) for name, value in identity.items())]


def plain_answer(answer: Any) -> AnswerRow:
    """An answer as a dict: a row of Spark or pandas, or a mapping. Times get a zone."""
    if hasattr(answer, "asDict"):
        # Spark gives times without a zone, in that of this process.
        return AnswerRow({name: _in_utc(value, None) for name, value in answer.asDict(recursive=True).items()})
    if hasattr(answer, "to_dict"):
        answer = answer.to_dict()
    if not isinstance(answer, Mapping):
        raise AnabranchError(f"an answer is a row or a dict, not {type(answer).__name__}")
    return AnswerRow({name: _in_utc(_parsed(name, value), UTC) for name, value in answer.items()})


def _parsed(name: str, value: Any) -> Any:
    """A value of a file: times of JSON lines are text."""
    if name not in _TIMES or not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise AnabranchError(f"the column {name} of an answer is a time, not '{value}'") from None


def _in_utc(value: Any, zone: tzinfo | None) -> Any:
    """A value whose times are in UTC; those without a zone are in `zone`, or in that of this process."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=zone) if value.tzinfo is None and zone is not None else value).astimezone(UTC)
    if isinstance(value, Mapping):
        return AnswerRow({name: _in_utc(part, zone) for name, part in value.items()})
    if isinstance(value, list | tuple) or hasattr(value, "tolist") and hasattr(value, "shape") and value.shape:
        return [_in_utc(part, zone) for part in value]
    # A number of NumPy, as in rows of pandas.
    return value.item() if hasattr(value, "item") else value
