"""Operators: the code of one bucket, stepped once in batch and once per micro-batch in streaming.

A runtime opens an operator (with the bytes it saved last, or None), steps it with packets and a watermark, passes its
answers on, and keeps the bytes that it saves. Batch steps once, with the watermark past every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from anabranch import markup
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.watermark import Progress

#: What can happen to a row.
ROW_COUNTS = ("read", "used", "duplicate", "late", "quarantined", "excluded")

#: What a step counts, besides its answers.
COUNTED = (*ROW_COUNTS, "kept", "reported")


@dataclass(slots=True)
class Counts:
    """What happened to the rows of a run, and the number of answers.

    read = used + duplicate + late + quarantined + excluded; WHERE and JOIN of a stream exclude rows.
    `kept` is the largest number of events that were kept at one time, for kinds that keep events. `reported` is the
    number of measurements that sensors had to report, for streams that are predicted from positions.
    """

    read: int = 0
    used: int = 0
    duplicate: int = 0
    late: int = 0
    quarantined: int = 0
    answers: int = 0
    kept: int = 0
    reported: int = 0
    excluded: int = 0

    def _shown(self) -> list[tuple[str, int]]:
        """The counts that are not 0, and always those of rows read and used, and of answers."""
        names = (*COUNTED, "answers")
        counts = ((name, getattr(self, name)) for name in names)
        return [(name, count) for name, count in counts if count or name in ("read", "used", "answers")]

    def __repr__(self) -> str:
        return f"Counts({', '.join(f'{name}={count}' for name, count in self._shown())})"

    def _repr_html_(self) -> str:
        names, counts = zip(*((name, f"{count:,}") for name, count in self._shown()), strict=True)
        return markup.output("", markup.table(names, [counts], numeric=range(len(names))))

    def __iadd__(self, other: Counts) -> Counts:
        for name in (*COUNTED, "answers"):  # buckets keep events at the same time, so `kept` adds up
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass(slots=True)
class Outcome:
    """The result of one step: answers in the schema of the specification, quarantined rows, and counts."""

    answers: pa.Table
    rejected: pa.Table = field(default_factory=QUARANTINE.empty_table)
    counts: Counts = field(default_factory=Counts)


class Operator(Protocol):
    """The operator of one bucket."""

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Take packets (stream number, blob) and return all answers about instants before the watermark.

        If the input has `ended`, these are all answers: the watermark is past every row.
        """

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
