"""Probability over time in a terminal: a row of blocks for each group, the time below.

A column stands for a stretch of time and shows the highest probability in it. Where there is one group
alone, it gets a taller chart with a scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from anabranch.show.axis import day, ticks
from anabranch.show.series import Floats, Instant, Series, Timeline, highest, timeline
from anabranch.show.text import as_ascii, can_draw, short

WIDEST_LABEL = 20
TALL = 6
"""Lines of the chart of a single group."""

LIKELY, UNLIKELY, FRAME, TRUE = "bold cyan", "blue", "dim", "green"


@dataclass(frozen=True, slots=True)
class _Pens:
    """The characters to draw with."""

    levels: str
    side: str
    corner: str
    tick: str
    line: str
    threshold: str
    mark: str
    more: str


BLOCKS = _Pens(" ▁▂▃▄▅▆▇█", "│", "└", "┬", "─", "┄", "▲", "…")
ASCII = _Pens(" .:;=+*#@", "|", "+", "+", "-", "-", "^", "...")


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the chart stands, and how it is drawn: what all its groups share."""

    time: Timeline
    columns: int
    height: int
    margin: int
    threshold: float | None
    pens: _Pens

    def shows(self, times: Floats) -> NDArray[np.bool_]:
        """Which instants lie within the stretch of time that is drawn."""
        return (times >= self.time.start) & (times <= self.time.end)

    def columns_of(self, times: Floats) -> NDArray[np.int64]:
        """The column in which each instant falls."""
        length = self.time.end - self.time.start
        share = (times - self.time.start) / length if length > 0 else np.zeros_like(times)
        return np.clip((share * self.columns).astype(np.int64), 0, self.columns - 1)


def chart(
    answers: pa.Table,
    *,
    width: int = 80,
    by: Sequence[str] | None = None,
    span: tuple[Instant, Instant] | None = None,
    threshold: float | None = None,
    truth: pa.Table | None = None,
    limit: int = 20,
    ascii_only: bool = False,
) -> Text:
    """Draw the probability of each group over time.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping columns.
    width : int
        Characters on a line.
    by : sequence of str, optional
        The grouping columns, where they are not all the others.
    span : pair of instants, optional
        The stretch of time to show, where it is not that of the data.
    threshold : float, optional
        What reaches it stands out.
    truth : pa.Table, optional
        When it really happened (`t` and the grouping columns): marked below each group.
    limit : int
        How many groups are drawn: those with the highest peaks.
    ascii_only : bool
        For terminals without block characters.

    Returns
    -------
    Text
        To be printed by Rich, which leaves out colours where they are not wanted; `.plain` is the bare text.
    """
    time = timeline(answers, by=by, span=span, truth=truth)
    groups = highest(time.groups, limit)
    if not groups:
        return Text("no answers")
    frame = _frame(groups, time, width, threshold, ASCII if ascii_only else BLOCKS)
    marked = truth is not None
    lines = [line for group in groups for line in _group(group, frame, marked)]
    lines += _axis(frame)
    if len(groups) < len(time.groups):
        lines.append(Text(f"{frame.pens.more} and {len(time.groups) - len(groups):,} more"))
    legend = _legend(frame, marked)
    on_one_line = "; ".join(legend)
    lines.append(Text(on_one_line if len(on_one_line) <= width else "\n".join(legend), style=FRAME))
    return Text("\n").join(lines)


def print_chart(
    answers: pa.Table,
    console: Console | None = None,
    *,
    by: Sequence[str] | None = None,
    span: tuple[Instant, Instant] | None = None,
    threshold: float | None = None,
    truth: pa.Table | None = None,
    limit: int = 20,
) -> None:
    """Print `chart` as wide as the console, with the characters and colours that it has."""
    console = console or Console()
    drawn = chart(
        answers,
        width=console.width,
        by=by,
        span=span,
        threshold=threshold,
        truth=truth,
        limit=limit,
        ascii_only=not can_draw(console.encoding),
    )
    console.print(drawn, no_wrap=True, overflow="crop")


def _frame(groups: Sequence[Series], time: Timeline, width: int, threshold: float | None, pens: _Pens) -> _Frame:
    """Divide the width between the names at the left and the chart."""
    height = TALL if len(groups) == 1 else 1
    left = [_short(group.label, pens) for group in groups]
    if height > 1:
        left += ["1.0", f"{threshold:g}" if threshold is not None else ""]
    margin = max(map(len, left))
    return _Frame(time, max(width - margin - 1, 10), height, margin, threshold, pens)


def _short(label: str, pens: _Pens) -> str:
    if pens is not ASCII:
        return short(label, WIDEST_LABEL)
    label = as_ascii(label)
    return label if len(label) <= WIDEST_LABEL else label[: WIDEST_LABEL - len(pens.more)] + pens.more


def _group(group: Series, frame: _Frame, marked: bool) -> list[Text]:
    """The lines of one group: its bars, and below them when it was true."""
    values = np.zeros(frame.columns)
    shown = frame.shows(group.times)
    np.maximum.at(values, frame.columns_of(group.times[shown]), group.probabilities[shown])
    lines = []
    for row in reversed(range(frame.height)):
        left = _short(group.label, frame.pens) if frame.height == 1 else _scale_label(row, frame)
        line = Text(left.ljust(frame.margin)).append(frame.pens.side, style=FRAME)
        for value in values:
            line.append(*_block(float(value), row, frame))
        lines.append(line)
    if marked:
        marks = np.full(frame.columns, " ")
        marks[frame.columns_of(group.true_times[frame.shows(group.true_times)])] = frame.pens.mark
        line = Text(" " * frame.margin).append(frame.pens.side, style=FRAME)
        lines.append(line.append("".join(marks).rstrip(), style=TRUE))
    return lines


def _block(value: float, row: int, frame: _Frame) -> tuple[str, str]:
    """The character of one column at one row, and its style; any probability above 0 leaves a trace."""
    threshold, height, pens = frame.threshold, frame.height, frame.pens
    likely = threshold is None or value >= threshold
    eighths = max(round(min(value, 1.0) * 8 * height), 1) if value > 0 else 0
    if height == 1 and threshold is not None and value > 0:
        # Without colours the height alone tells the two apart.
        boundary = _boundary(threshold)
        eighths = max(eighths, boundary) if likely else min(eighths, boundary - 1)
    eighths -= 8 * row
    if eighths > 0:
        return pens.levels[min(eighths, 8)], LIKELY if likely else UNLIKELY
    return (pens.threshold, FRAME) if row == _threshold_row(frame) else (" ", "")


def _boundary(threshold: float) -> int:
    """The lowest of the eight blocks that stands for what reaches the threshold."""
    return min(max(round(threshold * 8), 2), 8)


def _threshold_row(frame: _Frame) -> int | None:
    """The row of a tall chart that the threshold's line runs through."""
    if frame.threshold is None or frame.height == 1:
        return None
    return min(int(frame.threshold * frame.height), frame.height - 1)


def _scale_label(row: int, frame: _Frame) -> str:
    if row == _threshold_row(frame):
        return f"{frame.threshold:g}"
    return {0: "0.0", frame.height - 1: "1.0"}.get(row, "")


def _axis(frame: _Frame) -> list[Text]:
    """The line below the chart, with ticks, and what they stand for."""
    time, columns, pens = frame.time, frame.columns, frame.pens
    line, below = [pens.line] * columns, [" "] * columns
    room = max(columns // (12 if time.clock else 8), 2)
    free = 0
    for value, label in ticks(time.start, time.end, at_most=room, clock=time.clock):
        column = int(frame.columns_of(np.array([value]))[0])
        begin = max(min(column - len(label) // 2, columns - len(label)), 0)
        if begin >= free:
            line[column] = pens.tick
            below[begin : begin + len(label)] = label
            free = begin + len(label) + 1
    indent = " " * frame.margin
    texts = [indent + pens.corner + "".join(line), f"{indent} {''.join(below).rstrip()}"]
    if time.clock:
        texts.append(f"{indent} {day(time.start)}")
    return [Text(text, style=FRAME) for text in texts]


def _legend(frame: _Frame, marked: bool) -> list[str]:
    pens, threshold = frame.pens, frame.threshold
    parts = [f"{pens.levels[1]}{pens.levels[4]}{pens.levels[8]} probability 0 to 1"]
    if threshold is not None:
        sign = f"{pens.levels[_boundary(threshold)]} and higher" if frame.height == 1 else pens.threshold
        parts.append(f"{sign}: at least {threshold:g}")
    if marked:
        parts.append(f"{pens.mark} it really happened")
    return parts
