"""The watermark, and the rule for late, ready and held rows.

The watermark of a stream trails its newest row by the WATERMARK clause (its *lateness*). The watermark of a query is
the smallest one of its streams (`Clock`), so a stream without new rows holds it back. Not with MAX DELAY, which says
how long a row takes to arrive: then the watermark of each stream trails the newest row of any. Nor with IDLE AFTER:
then it trails the newest row of any by at most this long. Nor does a *bounded* stream, all rows of which arrive at
once, after they have arrived. The watermark of a stream of answers is what the query that gives them promises
(`relay.py`). An instant is complete when the watermark is strictly past it, so rows of one instant may arrive in
different micro-batches. Every bucket keeps a clock of its own. All clocks agree, because every packed batch sends its
newest time to every bucket. Rows with numeric times that jump too far ahead do not move a clock (`jumps.py`).

One rule follows, `Advance`, and every operator applies it. A row is

- *late* if the watermark had passed it before it arrived: it is quarantined;
- *ready* once the watermark has passed it: no more rows can come before it;
- *held* until then (`ReorderBuffer`).

A stream that is derived in time steps (INFERRED FROM) releases whole steps only: its rows are late or ready by the end
of their step.

RELATE holds nothing: entities are assembled from the rows so far, and answers are provisional until both entities have
ended. A row without a time is never late by itself, only once its entity has ended (`relate/store.py`). MONITOR holds
positions only: predictions are compared when they arrive, and answers are tentative until they end before the watermark
(`monitor/arrivals.py`, `monitor/operator.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from anabranch.arrays import BEGINNING, END, I32, I64, Bools
from anabranch.columns.times import TimeKind, earlier, step_times, steps_before, steps_of
from anabranch.transport.jumps import Jumps, Run
from anabranch.transport.layout import Layout

Streams = I32 | I64


class Progress(int):
    """The watermark of a query, and those of its streams.

    Attributes
    ----------
    before, now : the watermark of each stream before and after the micro-batch
    newest_before : the newest time of any row before the micro-batch
    end : the watermark if the input ended after the micro-batch: past every row
    """

    before: tuple[int, ...]
    now: tuple[int, ...]
    newest_before: int
    end: int

    def __new__(
        cls,
        watermark: int,
        before: tuple[int, ...],
        now: tuple[int, ...],
        newest_before: int = BEGINNING,
        end: int = BEGINNING,
    ) -> Self:
        """Return a watermark, which is an integer for those who need no more."""
        progress = super().__new__(cls, watermark)
        progress.before, progress.now, progress.newest_before, progress.end = before, now, newest_before, end
        return progress

    @classmethod
    def of_all(cls, watermark: int, n_streams: int) -> Self:
        """The first progress of a query, to the same watermark in all streams."""
        return cls(watermark, (BEGINNING,) * n_streams, (watermark,) * n_streams)

    def of_streams(self, streams: Sequence[int]) -> Progress:
        """The progress of a query that has only these streams."""
        before, now = (tuple(times[stream] for stream in streams) for times in (self.before, self.now))
        return Progress(self, before, now, self.newest_before, self.end)

    def to_end(self) -> Progress:
        """The next progress, if the input ends after the micro-batch."""
        return Progress(self.end, self.now, (self.end,) * len(self.now), self.newest_before, self.end)


class Clock:
    """The newest time of each stream, and the watermark that follows from it.

    Parameters
    ----------
    bounded : numbers of streams all rows of which arrive at once
    relayed : numbers of streams of answers. Their newest time is what the query that gives them promises: all rows
        before it have arrived. So no other clause moves their watermark
    """

    def __init__(
        self,
        layouts: Sequence[Layout],
        saved: bytes | None = None,
        bounded: Collection[int] = (),
        relayed: Collection[int] = (),
    ) -> None:
        self._layouts = [
            replace(layout, idle_after=None, max_ahead=None, common_clock=False) if number in relayed else layout
            for number, layout in enumerate(layouts)
        ]
        self._bounded, self._relayed = bounded, relayed
        n, is_limited = len(layouts), any(layout.max_jump is not None for layout in self._layouts)
        # The newest time of each stream, the state of `Jumps` where a stream has a limit, and which streams have ended
        # where some are relayed.
        numbers = [BEGINNING] * n if saved is None else np.frombuffer(saved, "<i8").tolist()
        parts = [numbers[start : start + n] for start in range(0, len(numbers), n)]
        self._newest = parts[0]
        ahead = parts[1] if is_limited and len(parts) > 1 else [0] * n
        self._jumps = Jumps(self._layouts, ahead) if is_limited else None
        self._ended = parts[-1] if relayed and len(parts) > 1 + is_limited else [0] * n

    def limits(self, runs: Sequence[Sequence[Run]]) -> tuple[int, ...]:
        """The latest time of a row of each stream in the next micro-batch that is not too far ahead."""
        if self._jumps is None:
            return (END,) * len(self._layouts)
        return self._jumps.limits(max(self._newest), runs)

    def have_ended(self, streams: Collection[int]) -> bool:
        """Whether all streams have ended, given those that end now. Without relayed streams, all end together.

        Then the next end begins anew, because a stream may be resumed after its end.
        """
        if not self._relayed:
            return bool(streams)
        self._ended = [int(known or number in streams) for number, known in enumerate(self._ended)]
        all_ended = all(self._ended)
        if all_ended:
            self._ended = [0] * len(self._ended)
        return all_ended

    def advance(self, newest: Sequence[int], ended: bool = False) -> Progress:
        """Take the newest time of each stream in a micro-batch (BEGINNING: no row) and return the watermark.

        If the input has `ended`, the watermark passes every row seen so far, including those of this micro-batch, and
        nothing else, so that the stream can be resumed.
        """
        before, newest_before = self._of_streams(), max(self._newest)
        self._newest = [max(known, now) for known, now in zip(self._newest, newest, strict=True)]
        watermarks = self._of_streams()
        last = self._last_row
        end = max(_end_of(last, layout) for layout in self._layouts) if last > BEGINNING else BEGINNING
        if ended:
            watermarks = (end,) * len(watermarks)
        return Progress(min(watermarks), before, watermarks, newest_before, end)

    @property
    def _last_row(self) -> int:
        """The time of the newest row, or the last instant that a promise is about."""
        promised = (known - 1 for number, known in enumerate(self._newest) if number in self._relayed)
        rows = (known for number, known in enumerate(self._newest) if number not in self._relayed)
        return max([BEGINNING, *rows, *(known for known in promised if known >= BEGINNING)])

    def _of_streams(self) -> tuple[int, ...]:
        """The watermark of each stream."""
        last = max(self._newest)
        watermarks = [
            earlier(last if layout.common_clock else known, layout.lateness, layout.time_kind)
            for known, layout in zip(self._newest, self._layouts, strict=True)
        ]
        for stream, layout in enumerate(self._layouts):
            if layout.idle_after is not None:
                watermarks[stream] = max(watermarks[stream], earlier(last, layout.idle_after, layout.time_kind))
        of_others = [watermark for stream, watermark in enumerate(watermarks) if stream not in self._bounded]
        for stream in self._bounded if of_others else ():
            if self._newest[stream] > BEGINNING:
                watermarks[stream] = max(watermarks[stream], min(of_others))
        return tuple(watermarks)

    def save(self) -> bytes:
        """The state of the clock."""
        ahead = [] if self._jumps is None else self._jumps.ahead
        ended = self._ended if self._relayed else []
        return np.array([*self._newest, *ahead, *ended], "<i8").tobytes()


def _end_of(newest: int, layout: Layout) -> int:
    """The time at which the instant of the newest row is complete, or its step where a stream is derived in steps."""
    if layout.derivation is None:
        return newest + 1
    step, kind = layout.derivation.step, layout.time_kind
    return int(step_times(steps_of(np.array([newest]), step, kind) + 1, step, kind)[0])


@dataclass(frozen=True, slots=True)
class Advance:
    """One move of the watermark of a bucket: which rows are late, and which are ready.

    Attributes
    ----------
    before, now : the watermark before the step, and after it
    limits : the same for each stream, where one is derived in steps: ends of steps instead of the watermark
    """

    before: int
    now: int
    limits: tuple[I64, I64] | None = None

    def is_late(self, times: I64, streams: Streams | None = None) -> Bools:
        """Which of the rows that arrive in this step are late."""
        return times < (self.before if self.limits is None else self.limits[0][streams])

    def is_ready(self, times: I64, streams: Streams | None = None) -> Bools:
        """Which rows need not be held any longer."""
        return times < (self.now if self.limits is None else self.limits[1][streams])


class Watermark:
    """The watermark of one bucket; it never goes back."""

    def __init__(self, layouts: Sequence[Layout], at: int = BEGINNING) -> None:
        self._layouts = layouts
        self._steps = [
            (layout.derivation.step, layout.time_kind) for layout in layouts if layout.derivation is not None
        ]
        self.at = at

    def advance(self, to: int) -> Advance:
        """Move to a new watermark."""
        before, to = self.at, int(to)
        if not self._steps:
            self.at = max(self.at, to)
            return Advance(before, self.at)
        limits_before = self._limits()
        self.at = max(self.at, self._whole_steps(to))
        return Advance(before, self.at, (limits_before, self._limits()))

    def _whole_steps(self, to: int) -> int:
        """The watermark, or the start of a step that it has not passed completely."""
        if to == BEGINNING:
            return to
        here = np.array([to])
        return min([to, *(int(step_times(steps_of(here, *step), *step)[0]) for step in self._steps)])

    def _limits(self) -> I64:
        return np.array([self._limit_of(layout) for layout in self._layouts])

    def _limit_of(self, layout: Layout) -> int:
        """The time before which no more rows of a stream are expected."""
        if layout.derivation is None or self.at == BEGINNING:
            return self.at
        step, kind = layout.derivation.step, layout.time_kind
        (limit,) = step_times(np.array([steps_before(self.at, step, kind)]), step, kind)
        # 7 * 0.1 is slightly more than 0.7, and a row at 0.7 belongs to the step that begins there.
        return int(limit) - 8 if kind is TimeKind.DOUBLE else int(limit)


class TimedRows(Protocol):
    """Rows with event times, as a `ReorderBuffer` holds them."""

    @property
    def stream(self) -> Streams:
        """The number of the stream of each row."""

    @property
    def event_time(self) -> I64:
        """The code of the event time of each row."""

    def where(self, chosen: Bools) -> Self:
        """The rows at which a mask is true."""


R = TypeVar("R", bound=TimedRows)


class ReorderBuffer(Generic[R]):
    """Holds rows until the watermark has passed them.

    Parameters
    ----------
    empty : no rows
    concat : rows of several parts as one
    """

    def __init__(self, empty: R, concat: Callable[[Sequence[R]], R]) -> None:
        self._empty, self._concat = empty, concat
        self.held = empty

    def receive(self, arrived: R, advance: Advance) -> tuple[R, R]:
        """Take rows that have arrived; returns the rows that are ready and those that are late."""
        is_late = advance.is_late(arrived.event_time, arrived.stream)
        late = self._empty
        if is_late.any():
            late, arrived = arrived.where(is_late), arrived.where(~is_late)
        rows = self._concat([self.held, arrived])
        is_ready = advance.is_ready(rows.event_time, rows.stream)
        if is_ready.all():
            self.held = self._empty
            return rows, late
        self.held = rows.where(~is_ready)
        return rows.where(is_ready), late
