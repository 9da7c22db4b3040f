"""Probability over time in a terminal: a row of blocks for each group, above a time axis.

A column of characters covers a time range and shows the highest probability in it. A single group has a taller chart
with a scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.text import Text

from anabranch.arrays import F64, I64, Bools
from anabranch.drawing.axis import day, ticks
from anabranch.evaluation.series import Instant, Series, Timeline, highest, timeline
from anabranch.text import as_ascii, can_draw, short

WIDEST_LABEL = 20
TALL = 6
"""Lines in the chart of a single group."""

LIKELY, UNLIKELY, FRAME, TRUE = "bold cyan", "blue", "dim", "green"


@dataclass(frozen=True, slots=True)
class _Symbols:
    """The characters of a chart."""

    levels: str
    side: str
    corner: str
    tick: str
    line: str
    threshold: str
    mark: str
    more: str


BLOCKS = _Symbols(" ▁▂▃▄▅▆▇█", "│", "└", "┬", "─", "┄", "▲", "…")
ASCII = _Symbols(" .:;=+*#@", "|", "+", "+", "-", "-", "^", "...")


@dataclass(frozen=True, slots=True)
class _Frame:
    """The position and the style of a chart, which all its groups share."""

    time: Timeline
    columns: int
    height: int
    margin: int
    threshold: float | None
    symbols: _Symbols

    def shows(self, times: F64) -> Bools:
        """Return which times are in the time range of the chart."""
        return (times >= self.time.start) & (times <= self.time.end)

    def columns_of(self, times: F64) -> I64:
        """Return the column of each time."""
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
        The grouping columns; by default all that are not about time and probability.
    span : pair of instants, optional
        The time range to show; by default that of the data.
    threshold : float, optional
        Probabilities that reach it are highlighted.
    truth : pa.Table, optional
        The true events (`t` and the grouping columns), marked below each group.
    limit : int
        The maximum number of groups; those with the highest peaks are drawn.
    ascii_only : bool
        For terminals without block characters.

    Returns
    -------
    Text
        For Rich, which prints colours if the console has them; `.plain` is the text without styles.
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
        lines.append(Text(f"{frame.symbols.more} and {len(time.groups) - len(groups):,} more"))
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
    """Print `chart` in the width of the console, with the characters and colours that it has."""
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


def _frame(groups: Sequence[Series], time: Timeline, width: int, threshold: float | None, symbols: _Symbols) -> _Frame:
    """Divide the width between the names, at the left, and the chart."""
    height = TALL if len(groups) == 1 else 1
    labels = [_short(group.label, symbols) for group in groups]
    if height > 1:
        labels += ["1.0", f"{threshold:g}" if threshold is not None else ""]
    margin = max(map(len, labels))
    return _Frame(time, max(width - margin - 1, 10), height, margin, threshold, symbols)


def _short(label: str, symbols: _Symbols) -> str:
    if symbols is not ASCII:
        return short(label, WIDEST_LABEL)
    label = as_ascii(label)
    return label if len(label) <= WIDEST_LABEL else label[: WIDEST_LABEL - len(symbols.more)] + symbols.more


def _group(group: Series, frame: _Frame, marked: bool) -> list[Text]:
    """Return the lines of one group: its bars and, below them, the marks of the true events."""
    values = np.zeros(frame.columns)
    shown = frame.shows(group.times)
    np.maximum.at(values, frame.columns_of(group.times[shown]), group.probabilities[shown])
    lines = []
    for row in reversed(range(frame.height)):
        left = _short(group.label, frame.symbols) if frame.height == 1 else _scale_label(row, frame)
        line = Text(left.ljust(frame.margin)).append(frame.symbols.side, style=FRAME)
        for value in values:
            line.append(*_block(float(value), row, frame))
        lines.append(line)
    if marked:
        marks = np.full(frame.columns, " ")
        marks[frame.columns_of(group.true_times[frame.shows(group.true_times)])] = frame.symbols.mark
        line = Text(" " * frame.margin).append(frame.symbols.side, style=FRAME)
        lines.append(line.append("".join(marks).rstrip(), style=TRUE))
    return lines


def _block(value: float, row: int, frame: _Frame) -> tuple[str, str]:
    """Return the character of one column in one row, and its style; every probability above 0 is visible."""
    threshold, height, symbols = frame.threshold, frame.height, frame.symbols
    likely = threshold is None or value >= threshold
    eighths = max(round(min(value, 1.0) * 8 * height), 1) if value > 0 else 0
    if height == 1 and threshold is not None and value > 0:
        # Without colours, only the height shows what reaches the threshold.
        boundary = _boundary(threshold)
        eighths = max(eighths, boundary) if likely else min(eighths, boundary - 1)
    eighths -= 8 * row
    if eighths > 0:
        return symbols.levels[min(eighths, 8)], LIKELY if likely else UNLIKELY
    return (symbols.threshold, FRAME) if row == _threshold_row(frame) else (" ", "")


def _boundary(threshold: float) -> int:
    """Return the lowest of the eight blocks that is used for probabilities that reach the threshold."""
    return min(max(round(threshold * 8), 2), 8)


def _threshold_row(frame: _Frame) -> int | None:
    """Return the row of a tall chart that has the line of the threshold."""
    if frame.threshold is None or frame.height == 1:
        return None
    return min(int(frame.threshold * frame.height), frame.height - 1)


def _scale_label(row: int, frame: _Frame) -> str:
    if row == _threshold_row(frame):
        return f"{frame.threshold:g}"
    return {0: "0.0", frame.height - 1: "1.0"}.get(row, "")


def _axis(frame: _Frame) -> list[Text]:
    """Return the time axis: a line with ticks, the labels of the ticks, and the day."""
    time, columns, symbols = frame.time, frame.columns, frame.symbols
    line, below = [symbols.line] * columns, [" "] * columns
    at_most = max(columns // (12 if time.clock else 8), 2)
    first_free = 0
    for value, label in ticks(time.start, time.end, at_most=at_most, clock=time.clock):
        column = int(frame.columns_of(np.array([value]))[0])
        begin = max(min(column - len(label) // 2, columns - len(label)), 0)
        if begin >= first_free:
            line[column] = symbols.tick
            below[begin : begin + len(label)] = label
            first_free = begin + len(label) + 1
    indent = " " * frame.margin
    texts = [indent + symbols.corner + "".join(line), f"{indent} {''.join(below).rstrip()}"]
    if time.clock:
        texts.append(f"{indent} {day(time.start)}")
    return [Text(text, style=FRAME) for text in texts]


def _legend(frame: _Frame, marked: bool) -> list[str]:
    symbols, threshold = frame.symbols, frame.threshold
    parts = [f"{symbols.levels[1]}{symbols.levels[4]}{symbols.levels[8]} probability 0 to 1"]
    if threshold is not None:
        sign = f"{symbols.levels[_boundary(threshold)]} and higher" if frame.height == 1 else symbols.threshold
        parts.append(f"{sign}: at least {threshold:g}")
    if marked:
        parts.append(f"{symbols.mark} it really happened")
    return parts
