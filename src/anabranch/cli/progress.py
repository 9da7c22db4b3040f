"""Progress on standard error while a command runs: a live display on a terminal, a line from time to time elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from anabranch.cli.messages import print_line, say

#: Seconds between two lines without a terminal. A short run prints none.
LINE_EVERY = 30.0

#: Seconds between two updates of the live display.
UPDATE_EVERY = 0.25


@contextmanager
def progress(title: str, rows: Callable[[], int]) -> Iterator[None]:
    """Show that a command is working, with the number of rows that have been read and their rate."""
    began = time.monotonic()

    def text() -> str:
        seen, seconds = rows(), time.monotonic() - began
        return f"{seen:,} rows, {seen / max(seconds, 1e-9):,.0f} rows/s" if seen else ""

    if sys.stderr.isatty():
        with _live_display(title, text):
            yield
    else:
        with _repeated(lambda: say(f"{title}: {text() or 'running'}, {time.monotonic() - began:.0f} s"), LINE_EVERY):
            yield


@contextmanager
def print_new(lines: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Print the lines that a function returns, again and again until the block ends."""

    def print_all() -> None:
        for line in lines():
            print_line(line)

    try:
        with _repeated(print_all, UPDATE_EVERY):
            yield
    finally:
        print_all()


@contextmanager
def _live_display(title: str, text: Callable[[], str]) -> Iterator[None]:
    # Rich takes a while to load, and only a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(pulse_style="cyan"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        with _repeated(lambda: bar.update(task, description=f"{title}  {text()}".rstrip()), UPDATE_EVERY):
            yield


@contextmanager
def _repeated(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Repeat an action in another thread, until the block ends."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(seconds):
            with suppress(OSError):  # the file system of a checkpoint may not answer for a while
                action()

    watcher = threading.Thread(target=repeat, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
