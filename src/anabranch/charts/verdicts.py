"""The verdicts on answers as a table for the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.evaluation.event_verdicts import FALSE, FOUND, MISSED, verdicts
from anabranch.evaluation.matching import WITHIN
from anabranch.text import as_ascii, can_draw, probability_text, safe, short

LISTED_AT_MOST = 4
"""Events that a cell lists; the others are counted."""


def verdict_table(judged: pa.Table, *, group: str = "", ascii_only: bool = False) -> Table:
    """Return the result of `verdicts` as a table: a row per group, with the missed and the false events by time.

    Parameters
    ----------
    judged : pa.Table
        The result of `verdicts`.
    group : str
        The heading of the groups, such as 'person'.
    ascii_only : bool
        For terminals without block characters.
    """
    by_verdict: dict[str, list[dict[str, Any]]] = {
        verdict: [row for row in judged.to_pylist() if row["verdict"] == verdict] for verdict in (FOUND, MISSED, FALSE)
    }
    totals = {verdict: len(rows) for verdict, rows in by_verdict.items()}
    table = Table(box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD, show_footer=True)
    table.add_column(Text(safe(group, ascii_only=ascii_only)), footer="all")
    table.add_column("really", justify="right", footer=str(totals[FOUND] + totals[MISSED]))
    table.add_column(FOUND, justify="right", footer=str(totals[FOUND]))
    table.add_column(MISSED, footer=str(totals[MISSED]), no_wrap=True)
    table.add_column(FALSE, footer=str(totals[FALSE]), no_wrap=True)
    for label in sorted(set(judged["group"].to_pylist())):
        found, missed, false = ([row for row in rows if row["group"] == label] for rows in by_verdict.values())
        counts = [str(len(found) + len(missed)), str(len(found))]
        cells = [short(label), *counts, _event_lines(missed), _event_lines(false)]
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
    """Compare answers with the true events, and print the verdicts with the characters that the console has."""
    console = console or Console()
    judged = verdicts(answers, truth, at_least=at_least, within=within)
    console.print(verdict_table(judged, group=group, ascii_only=not can_draw(console.encoding)))


def _event_lines(events: list[dict[str, Any]]) -> str:
    """Return a line per event: its time and its probability."""
    lines = [f"{_time_text(event['t'])}  {_probability(event['probability'])}" for event in events[:LISTED_AT_MOST]]
    if len(events) > LISTED_AT_MOST:
        lines.append(f"… and {len(events) - LISTED_AT_MOST} more")
    return "\n".join(lines)


def _time_text(t: float | datetime) -> str:
    if isinstance(t, datetime):
        return f"{t.astimezone(UTC) if t.tzinfo else t:%H:%M:%S}"
    return f"{t:.10g}"


def _probability(probability: float | None) -> str:
    return "no answer" if probability is None else probability_text(probability)
