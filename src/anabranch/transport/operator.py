"""One bucket of a job: one step, taken once in batch and once a micro-batch in streaming.

An operator serves one bucket. A runtime opens it (with the bytes it saved last, or None), steps it with packets and a
watermark, sends its answers on, and keeps the bytes it saves. Batch steps once, with the watermark past every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from anabranch.transport.checks import QUARANTINE

#: The status of answers that nothing can change any more, where a query gives others before.
FINAL = ("final", "validated", "matched", "expired")

#: What can become of a row.
ROW_COUNTS = ("read", "used", "duplicate", "late", "quarantined")

#: What a step tells of itself, besides its answers.
REPORTED = (*ROW_COUNTS, "kept", "reported")


@dataclass(slots=True)
class Counts:
    """What became of the rows of a run, read = used + duplicate + late + quarantined, and how many answers it gave.

    `kept` is the most events that were kept at one time for those to come, where a query keeps events. `reported` is
    how many of the rows that sensors measured they had to report, where a stream is predicted from positions.
    """

    read: int = 0
    used: int = 0
    duplicate: int = 0
    late: int = 0
    quarantined: int = 0
    answers: int = 0
    kept: int = 0
    reported: int = 0

    def __iadd__(self, other: Counts) -> Counts:
        for name in (*REPORTED, "answers"):  # what is kept in several places at one time adds up
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass(slots=True)
class Outcome:
    """What one step gave: answers (in the operator's own schema), rows set aside, and counts."""

    answers: pa.Table
    rejected: pa.Table = field(default_factory=QUARANTINE.empty_table)
    counts: Counts = field(default_factory=Counts)


class Operator(Protocol):
    """One bucket of one query."""

    def open(self, state: bytes | None) -> None:
        """Begin anew (None), or go on from saved bytes."""

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets (stream number, blob) and give every answer about instants before the watermark.

        Where the input has `ended`, that is all of them: the watermark is past every row.
        """

    def save(self) -> bytes:
        """The state, to be opened again."""
