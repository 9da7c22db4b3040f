"""How far event time has come: the watermark of a query over several streams.

A stream's watermark trails its newest row by the lateness its declaration allows; the query's watermark is the least of
them. An instant is over when the watermark is strictly past it, so rows of one instant may come in different
micro-batches. Every bucket keeps a clock of its own, and all show the same time, because every packed batch tells its
newest row to every bucket.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.columns.times import BEGINNING, earlier, step_times, steps_of
from anabranch.transport.packing import Layout


class Clock:
    """The newest time of each stream, and the watermark that follows."""

    def __init__(self, layouts: Sequence[Layout], saved: bytes | None = None) -> None:
        self._layouts = layouts
        self._newest = [BEGINNING] * len(layouts)
        if saved is not None:
            self._newest = np.frombuffer(saved, "<i8").tolist()

    def advance(self, newest: Sequence[int], ended: bool = False) -> int:
        """Take the newest time of each stream in a micro-batch (BEGINNING: no row) and give the watermark.

        Where the input has `ended` the watermark passes every row seen so far, those of this micro-batch among
        them, and nothing else, so that the stream may be taken up again.
        """
        self._newest = [max(known, now) for known, now in zip(self._newest, newest, strict=True)]
        if ended:
            last = max(self._newest)
            return max(_end_of(last, layout) for layout in self._layouts) if last > BEGINNING else BEGINNING
        return min(
            earlier(known, layout.lateness, layout.time_kind)
            for known, layout in zip(self._newest, self._layouts, strict=True)
        )

    def save(self) -> bytes:
        """The clock's state."""
        return np.array(self._newest, "<i8").tobytes()


def _end_of(newest: int, layout: Layout) -> int:
    """The time at which the instant of the newest row is over, or its step, where a stream goes by steps."""
    if layout.derive is None:
        return newest + 1
    step, kind = layout.derive.step, layout.time_kind
    return int(step_times(steps_of(np.array([newest]), step, kind) + 1, step, kind)[0])
