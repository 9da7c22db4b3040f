"""The result of a check."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Status(Enum):
    """Whether something works."""

    OK = "ok"
    SLOW = "slow"
    FAILS = "FAILS"


class Result(NamedTuple):
    """What a check has found; `advice` says what to do about it, if anything."""

    status: Status
    text: str
    advice: str = ""


def ok(text: str) -> Result:
    """A result without a problem."""
    return Result(Status.OK, text)


def slow(text: str, advice: str) -> Result:
    """Something that works, but costs time or memory."""
    return Result(Status.SLOW, text, advice)


def fails(text: str, advice: str) -> Result:
    """Something that makes commands fail."""
    return Result(Status.FAILS, text, advice)
