"""Sends the rows of an archive when their time has come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from anabranch.replay.archive import Block

#: Rows that are sent together at most, except those of one instant.
MOST_ROWS = 10_000


class Target(Protocol):
    """Where rows are sent."""

    def send(self, rows: pa.Table) -> None:
        """Send rows; returns when they are stored."""

    def close(self) -> None:
        """Release the connection."""

    @property
    def sent(self) -> int:
        """How many rows are stored."""


def slices(blocks: Iterable[Block], every: float | None) -> Iterator[Block]:
    """Rows that are sent together: those of an interval of `every` seconds, or many rows if it is None.

    Rows of one instant are never separated: a stream without a WATERMARK would find the later ones late.
    """
    kept: Block | None = None
    first: float | None = None
    for block in blocks:
        if kept is not None:
            block = Block(np.concatenate([kept.times, block.times]), pa.concat_tables([kept.rows, block.rows]))
        first = float(block.times[0]) if first is None else first
        begin = 0
        for end in _ends(block, first, every):
            yield block.part(begin, end)
            begin = end
        kept = block.part(begin, len(block.times))
    if kept is not None and len(kept.times):
        yield kept


def _ends(block: Block, first: float, every: float | None) -> list[int]:
    """Where parts of a block end; the rest behind the last end may belong to rows that are not read yet."""
    instants = np.flatnonzero(np.diff(block.times)) + 1
    numbers = np.zeros(len(block.times)) if every is None else (block.times - first) // every
    ends: list[int] = []
    begin = 0
    for end in instants.tolist():
        if numbers[end] != numbers[end - 1] or end - begin >= MOST_ROWS:
            ends.append(end)
            begin = end
    return ends


@dataclass
class Player:
    """Plays rows at a speed: 60 means an hour in a minute, None as fast as possible.

    `clock` and `sleep` are replaced in tests.
    """

    target: Target
    speed: float | None
    clock: Callable[[], float] = field(default=time.monotonic)
    sleep: Callable[[float], None] = field(default=time.sleep)

    def play(self, parts: Iterable[Block]) -> None:
        """Send all rows; each part when the time of its last row has come."""
        began, first = self.clock(), None
        for part in parts:
            first = part.times[0] if first is None else first
            if self.speed is not None:
                due = began + float(part.times[-1] - first) / self.speed
                self.sleep(max(due - self.clock(), 0.0))
            self.target.send(part.rows)
