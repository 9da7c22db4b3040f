"""Hypothesis strategies for streaming: the rows of a case as micro-batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]
Rows = dict[str, list[Row]]
Draw = Callable[[st.SearchStrategy[Any]], Any]


def time_of(row: Row) -> Any:
    """The event time of a row whose TIME column is `t`."""
    return row["t"]


@st.composite
def splits(draw: Draw, rows: Rows, most_batches: int = 5, clock: Callable[[Row], Any] = time_of) -> list[Rows]:
    """The rows as micro-batches in order of time, stream by stream.

    A cut may be inside an instant, a batch may be empty, and one stream may be ahead of another. None of this makes a
    row late, whatever the watermark.
    """
    batches = draw(st.integers(1, most_batches))
    parts: list[Rows] = [{} for _ in range(batches)]
    for name, stream_rows in rows.items():
        ordered = sorted(stream_rows, key=clock)
        cut = st.integers(0, len(ordered))
        cuts = sorted(draw(st.lists(cut, min_size=batches - 1, max_size=batches - 1)))
        for part, start, end in zip(parts, [0, *cuts], [*cuts, len(ordered)], strict=True):
            part[name] = ordered[start:end]
    return parts


@st.composite
def disordered_splits(
    draw: Draw,
    rows: Rows,
    delay: int | float,
    most_batches: int = 5,
    clock: Callable[[Row], Any] = time_of,
    common_clock: bool = False,
) -> list[Rows]:
    """The rows as micro-batches in an order of arrival in which no row is late.

    The rule: after a batch, the watermark of a stream is its largest time so far minus `delay`; a stream without rows
    has none. The watermark of the query is the least of its streams'; with `common_clock` it is the greatest. A row is
    late if its time is strictly below the watermark that earlier batches have reached; rows of one batch are never
    late. So a batch has the next rows of the drawn order, and every row that would be late after it.
    """
    arrivals = [(name, row) for name, stream_rows in rows.items() for row in stream_rows]
    jitter = draw(st.lists(st.integers(0, 8), min_size=len(arrivals), max_size=len(arrivals)))
    order = sorted(range(len(arrivals)), key=lambda i: clock(arrivals[i][1]) + jitter[i])
    waiting = [arrivals[i] for i in order]
    batches: list[Rows] = []
    newest: dict[str, Any] = dict.fromkeys(rows, -math.inf)
    while waiting and len(batches) < most_batches - 1:
        size = draw(st.integers(0, len(waiting)))
        batch, waiting = waiting[:size], waiting[size:]
        for name, row in batch:
            newest[name] = max(newest[name], clock(row))
        watermark = (max if common_clock else min)(newest.values()) - delay
        batch += [(name, row) for name, row in waiting if clock(row) < watermark]
        waiting = [(name, row) for name, row in waiting if clock(row) >= watermark]
        batches.append(_by_stream(rows, batch))
    return [*batches, _by_stream(rows, waiting)]


def _by_stream(rows: Rows, arrivals: Sequence[tuple[str, Row]]) -> Rows:
    return {name: [row for stream, row in arrivals if stream == name] for name in rows}
