"""Small answers that the tests of charts and of evaluation share, and consoles to print them on."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from rich.console import Console

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOSTILE = "[red]x[/red]\x1b[31m\n</text><script>alert(1)</script>"


def minutes(*values: float) -> pa.Array:
    """Return timestamps, each a number of minutes after nine o'clock."""
    return pa.array([NINE + timedelta(minutes=value) for value in values], pa.timestamp("us", "UTC"))


def answers(rows: list[tuple[float, str, float]], lower: list[float] | None = None) -> pa.Table:
    """Return answers from (minute, person, probability)."""
    probability = [p for _, _, p in rows]
    return pa.table(
        {
            "t": minutes(*(minute for minute, _, _ in rows)),
            "p": pa.array([person for _, person, _ in rows], pa.string()),
            "probability": pa.array(probability, pa.float64()),
            "lower": pa.array(probability if lower is None else lower, pa.float64()),
            "upper": pa.array(probability, pa.float64()),
            "method": pa.array(["exact"] * len(rows), pa.string()),
        }
    )


def console(width: int = 70, encoding: str = "utf-8", **options: Any) -> Console:
    """Return a console that writes to memory; `printed` reads it."""
    return Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), width=width, **options)


def printed(to: Console) -> str:
    """Return the printed text, decoded from the terminal's bytes, without blanks at line ends."""
    to.file.flush()
    data: bytes = to.file.buffer.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in data.decode(to.encoding).splitlines())


def drawn(text: str) -> str:
    """Return text without empty lines at its ends and without blanks at line ends."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
