"""Converts times and durations to numbers: times to microseconds UTC, durations to seconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from anabranch.language import nodes
from anabranch.language.names import SECONDS_OF

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def amount_of(duration: nodes.Duration) -> int | float:
    """The duration in the unit of the time column; a duration with a unit is in seconds.

    Decimals are multiplied as they are written: 0.7 * 86400 is slightly less than 60480.
    """
    if duration.unit is None:
        return duration.amount
    seconds = SECONDS_OF[duration.unit]
    if isinstance(duration.amount, int):
        return duration.amount * seconds
    return float(Decimal(repr(duration.amount)) * Decimal(repr(seconds)))


def instant_of(node: nodes.Expr) -> int | float | None:
    """The instant that a node (such as an end of HORIZON) denotes, or None if it denotes no instant.

    A number is in the unit of the time column; a text becomes microseconds.
    """
    if isinstance(node, nodes.Duration):
        return amount_of(node)
    value = node.value if isinstance(node, nodes.Literal) else None
    if isinstance(value, str):
        return parse_timestamp(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def parse_timestamp(text: str) -> int | None:
    """Microseconds since 1970 UTC of an ISO 8601 text (UTC if it has no zone), or None for any other text.

    Examples
    --------
    >>> parse_timestamp("1970-01-01 00:00:01")
    1000000
    >>> parse_timestamp("tomorrow") is None
    True
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def parse_date(text: str) -> int | None:
    """Days since 1970-01-01 of an ISO 8601 date, or None for any other text."""
    try:
        return (date.fromisoformat(text.strip()) - _EPOCH.date()).days
    except ValueError:
        return None
