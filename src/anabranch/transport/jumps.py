"""Jumps of numeric times (MAX AHEAD): one row from the far future must not make all later rows late.

Numbers cannot be compared with the clock of a machine. Instead, a row is *ahead* if its time is more than MAX AHEAD
after the newest row that was accepted before it. The rows of a micro-batch are judged together, so neither their order
nor how workers divide them matters:

- The new rows of a stream form *runs*: neighbouring times of a run are at most MAX AHEAD apart. A run is accepted if
  its oldest row is at most MAX AHEAD after the newest accepted row of any stream of the query, those of this
  micro-batch included.
- While no row has been accepted, the run with the most rows is, and then those that are not ahead of it.
- After a pause of the source, all rows are ahead. So each stream counts its rows: one more for each that is ahead, one
  less for each that is not, and not below 0. At PATIENCE, the run with the most rows ahead is accepted in the same way.

Every packet says to which run of its sender its rows belong, and every bucket knows all runs. So all buckets agree, and
a packet is accepted or rejected as a whole. The counts are saved with the clock, so a replayed micro-batch is judged
as it was before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import BEGINNING, END, I64
from anabranch.columns.times import later
from anabranch.transport.layout import Layout

#: After so many more rows that are ahead than not, rows that are ahead are accepted.
PATIENCE = 100


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """The oldest and the newest time of some rows of a stream, and how many rows have a time."""

    oldest: int = BEGINNING
    newest: int = BEGINNING
    rows: int = 0


#: Runs with the numbers of their streams.
StreamRuns = list[tuple[int, Run]]


def rows_by_run(times: I64, layout: Layout) -> list[I64]:
    """The indexes of the rows of each run; rows without a time come first."""
    order = np.argsort(times, kind="stable")
    codes = times[order]
    known = int(np.searchsorted(codes, BEGINNING, side="right"))
    jumps = codes[known + 1 :] > later(codes[known:-1], layout.max_jump or 0.0, layout.time_kind)
    starts = [known, *(known + 1 + np.flatnonzero(jumps)).tolist()]
    return [part for part in np.split(order, starts) if len(part)]


def limit_of(newest: int, layout: Layout) -> int:
    """The latest time of a row that is not ahead, if `newest` is the newest accepted time."""
    if layout.max_jump is None:
        return END
    if newest == BEGINNING:
        return BEGINNING
    return int(later(np.array([newest]), layout.max_jump, layout.time_kind)[0])


def united(runs: Iterable[Run], layout: Layout) -> list[Run]:
    """The runs of all rows of a stream, from those of parts of its rows."""
    joined: list[Run] = []
    for run in sorted(runs):
        last = joined[-1] if joined else None
        if last is not None and last.newest > BEGINNING and run.oldest <= limit_of(last.newest, layout):
            joined[-1] = Run(last.oldest, max(last.newest, run.newest), last.rows + run.rows)
        else:
            joined.append(run)
    return joined


def reached(newest: int, runs: StreamRuns, layouts: Sequence[Layout]) -> int:
    """The newest accepted time after some runs, if it was `newest` before them."""
    while True:
        before = newest
        for stream, run in runs:
            if run.oldest <= limit_of(newest, layouts[stream]):
                newest = max(newest, run.newest)
        if newest == before:
            return newest


def most_frequent(runs: StreamRuns, layouts: Sequence[Layout]) -> int:
    """The newest time of the most rows without a jump between them, also of several streams; of the first such rows."""
    best = here = Run()
    for stream, run in runs:
        if here.rows and run.oldest <= limit_of(here.newest, layouts[stream]):
            here = Run(here.oldest, max(here.newest, run.newest), here.rows + run.rows)
        else:
            here = run
        best = here if here.rows > best.rows else best
    return best.newest


class Jumps:
    """Decides which rows of a query are ahead.

    Attributes
    ----------
    ahead : for each stream, how many more rows were ahead than not
    """

    def __init__(self, layouts: Sequence[Layout], ahead: Sequence[int]) -> None:
        self._layouts = layouts
        self.ahead = list(ahead)

    def limits(self, newest: int, by_stream: Sequence[Iterable[Run]]) -> tuple[int, ...]:
        """The latest time of a row of each stream that is not ahead, given the runs of a micro-batch.

        `newest` is the newest accepted time before the micro-batch.
        """
        runs = sorted(
            ((stream, run) for stream, layout in enumerate(self._layouts) for run in united(by_stream[stream], layout)),
            key=lambda numbered: (numbered[1], numbered[0]),
        )
        newest = reached(newest, runs, self._layouts)
        if newest == BEGINNING:
            newest = reached(most_frequent(runs, self._layouts), runs, self._layouts)
        ahead = self._count(runs, self._limits(newest))
        if ahead:
            newest = reached(most_frequent(ahead, self._layouts), runs, self._layouts)
            self.ahead = [0] * len(self._layouts)
        return self._limits(newest)

    def _limits(self, newest: int) -> tuple[int, ...]:
        return tuple(limit_of(newest, layout) for layout in self._layouts)

    def _count(self, runs: StreamRuns, limits: Sequence[int]) -> StreamRuns:
        """Count the rows that are ahead; returns the runs that are ahead of streams that have many of them."""
        surplus = [0] * len(self._layouts)
        for stream, run in runs:
            surplus[stream] += run.rows if run.oldest > limits[stream] else -run.rows
        self.ahead = [max(0, count + more) for count, more in zip(self.ahead, surplus, strict=True)]
        return [
            (stream, run)
            for stream, run in runs
            if self.ahead[stream] >= PATIENCE and run.oldest > limits[stream]
        ]  # fmt: skip
