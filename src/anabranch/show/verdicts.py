"""Answers held against the truth: what was found, what was missed, what never was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.show.series import Floats, Series, timeline
from anabranch.show.text import as_ascii, can_draw, probability_text, safe, short

FOUND, MISSED, FALSE = "found", "missed", "false"
WITHIN = 30.0
"""How far an answer may be from the truth it tells, in the unit of the times (seconds for timestamps)."""

NAMED_AT_MOST = 4
"""Instants that a cell lists before it only counts."""


def verdicts(
    answers: pa.Table,
    truth: pa.Table,
    *,
    at_least: float = 0.5,
    within: float = WITHIN,
    by: Sequence[str] | None = None,
) -> pa.Table:
    """Judge answers by what really happened.

    An event is found where an answer of its group reaches `at_least` within `within` of it, else it is
    missed; its probability is the highest of the answers that are nearer to it than to any other event, NULL
    where there are none.
    Answers that reach `at_least` and are near no event are false; those close together are one.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping columns.
    truth : pa.Table
        What really happened: `t` and the grouping columns, by the same names.
    at_least : float
        The probability from which on an answer is believed.
    within : float
        In the unit of the times; seconds where they are timestamps.
    by : sequence of str, optional
        The grouping columns, where they are not all the others.

    Returns
    -------
    pa.Table
        `group`, `t`, `verdict` ('found', 'missed' or 'false') and `probability`, by group and time.
    """
    time = timeline(answers, by=by, truth=truth)
    rows = [
        {"group": group.label, "t": t, "verdict": verdict, "probability": probability}
        for group in time.groups
        for t, verdict, probability in sorted(_judged(group, at_least, within), key=lambda event: event[:2])
    ]
    columns = {name: [row[name] for row in rows] for name in ("group", "t", "verdict", "probability")}
    kind = answers.schema.field("t").type
    if time.clock:
        micros = np.round(np.array(columns["t"], dtype=np.float64) * 1e6).astype(np.int64)
        columns["t"] = pa.array(micros).cast(pa.timestamp("us", kind.tz))
    schema = {"group": pa.string(), "verdict": pa.string(), "probability": pa.float64()}
    return pa.table({name: pa.array(values, schema.get(name)) for name, values in columns.items()})


def verdict_table(judged: pa.Table, *, group: str = "", ascii_only: bool = False) -> Table:
    """Lay the outcome of `verdicts` out: a line a group, and by time what was missed and what was false.

    Parameters
    ----------
    judged : pa.Table
        The outcome of `verdicts`.
    group : str
        What a group is, such as 'person'.
    ascii_only : bool
        For terminals without block characters.
    """
    of: dict[str, list[dict[str, Any]]] = {
        verdict: [row for row in judged.to_pylist() if row["verdict"] == verdict] for verdict in (FOUND, MISSED, FALSE)
    }
    table = Table(box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD, show_footer=True)
    table.add_column(Text(safe(group, ascii_only=ascii_only)), footer="all")
    table.add_column("really", justify="right", footer=str(len(of[FOUND]) + len(of[MISSED])))
    table.add_column(FOUND, justify="right", footer=str(len(of[FOUND])))
    table.add_column(MISSED, footer=str(len(of[MISSED])), no_wrap=True)
    table.add_column(FALSE, footer=str(len(of[FALSE])), no_wrap=True)
    for label in sorted(set(judged["group"].to_pylist())):
        found, missed, false = ([row for row in of[name] if row["group"] == label] for name in (FOUND, MISSED, FALSE))
        counts = [str(len(found) + len(missed)), str(len(found))]
        cells = [short(label), *counts, _named(missed), _named(false)]
        table.add_row(*(Text(as_ascii(text) if ascii_only else text) for text in cells))
    return table


def print_verdicts(
    answers: pa.Table,
    truth: pa.Table,
    console: Console | None = None,
    *,
    at_least: float = 0.5,
    within: float = WITHIN,
    group: str = "",
) -> None:
    """Judge answers, and print the outcome as the console can show it."""
    console = console or Console()
    judged = verdicts(answers, truth, at_least=at_least, within=within)
    console.print(verdict_table(judged, group=group, ascii_only=not can_draw(console.encoding)))


def _judged(group: Series, at_least: float, within: float) -> Iterator[tuple[float, str, float | None]]:
    """Each event of one group with its verdict and probability, then the false ones."""
    nearest = _nearest(group.times, group.true_times, within)
    for event, t in enumerate(group.true_times):
        near = group.probabilities[nearest == event]
        highest = float(near.max()) if near.size else None
        yield float(t), MISSED if highest is None or highest < at_least else FOUND, highest
    astray = (nearest < 0) & (group.probabilities >= at_least)
    times, probabilities = group.times[astray], group.probabilities[astray]
    if times.size:
        for part in np.split(np.arange(times.size), np.flatnonzero(np.diff(times) > within) + 1):
            peak = int(part[np.argmax(probabilities[part])])
            yield float(times[peak]), FALSE, float(probabilities[peak])


def _nearest(times: Floats, events: Floats, within: float) -> np.ndarray:
    """For each answer the event nearest to it, -1 where none is within reach; events are in order."""
    if not events.size:
        return np.full(times.size, -1)
    after = np.clip(np.searchsorted(events, times), 1, events.size) - 1
    following = np.minimum(after + 1, events.size - 1)
    nearest = np.where(abs(events[following] - times) < abs(times - events[after]), following, after)
    return np.where(abs(events[nearest] - times) <= within, nearest, -1)


def _named(events: list[dict[str, Any]]) -> str:
    """Events line by line, by their time and the probability they had."""
    lines = [f"{_moment(event['t'])}  {_chance(event['probability'])}" for event in events[:NAMED_AT_MOST]]
    if len(events) > NAMED_AT_MOST:
        lines.append(f"… and {len(events) - NAMED_AT_MOST} more")
    return "\n".join(lines)


def _moment(t: float | datetime) -> str:
    if isinstance(t, datetime):
        return f"{t.astimezone(UTC) if t.tzinfo else t:%H:%M:%S}"
    return f"{t:.10g}"


def _chance(probability: float | None) -> str:
    return "no answer" if probability is None else probability_text(probability)
