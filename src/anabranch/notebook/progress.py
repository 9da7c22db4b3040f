"""A line in the output of a cell that shows how far a run is, and ends with its counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from IPython.display import display

from anabranch import markup


class ProgressLine:
    """A line of progress; it is updated by the thread of the cell, so it stays in the output of the cell."""

    def __init__(self, title: str, rows: Callable[[], int]) -> None:
        self._title, self._rows = title, rows
        self._began = time.monotonic()
        self._handle: Any = None

    def __enter__(self) -> Self:
        self._handle = display(_Line(f"{self._title}: starting"), display_id=True)
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.show(f"{self._title}: not finished")

    def update(self) -> None:
        """Show the rows that have been read, and their rate."""
        rows, seconds = self._rows(), time.monotonic() - self._began
        text = f"{rows:,} rows, {rows / max(seconds, 1e-9):,.0f} rows/s" if rows else "running"
        self.show(f"{self._title}: {text}, {seconds:.0f} s")

    def show(self, text: str) -> None:
        """Replace the line; outside of IPython there is none."""
        if self._handle is not None:
            self._handle.update(_Line(text))


class _Line:
    """A line of text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return markup.output("", markup.remark(self._text))
