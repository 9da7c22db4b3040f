"""Small answers that the tests of the pictures share, and ways to print them."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from rich.console import Console

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOSTILE = "[red]x[/red]\x1b[31m\n</text><script>alert(1)</script>"


def minutes(*values: float) -> pa.Array:
    """Instants, so many minutes after nine."""
    return pa.array([NINE + timedelta(minutes=value) for value in values], pa.timestamp("us", "UTC"))


def answers(rows: list[tuple[float, str, float]], **more: Any) -> pa.Table:
    """Answers from (minute, person, probability)."""
    probability = [p for _, _, p in rows]
    return pa.table(
        {
            "t": minutes(*(minute for minute, _, _ in rows)),
            "p": pa.array([person for _, person, _ in rows], pa.string()),
            "probability": pa.array(probability, pa.float64()),
            "lower": pa.array(more.get("lower", probability), pa.float64()),
            "upper": pa.array(probability, pa.float64()),
            "method": pa.array(["exact"] * len(rows), pa.string()),
        }
    )


def console(width: int = 70, encoding: str = "utf-8", **options: Any) -> Console:
    """A console that writes into memory; `printed` reads it."""
    return Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), width=width, **options)


def printed(to: Console) -> str:
    """What was printed, as the terminal's bytes would be read, without blanks at line ends."""
    to.file.flush()
    data: bytes = to.file.buffer.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in data.decode(to.encoding).splitlines())


def drawn(text: str) -> str:
    """Expected output, written in a test with a first line break and without the blanks of the end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
