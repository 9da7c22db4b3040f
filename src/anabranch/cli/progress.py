"""Progress on standard error while a command runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress(title: str, rows: Callable[[], int]) -> Iterator[None]:
    """A progress line with rows per second on standard error, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(pulse_style="cyan"), TimeElapsedColumn())
    stop = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        watcher = threading.Thread(target=_watch, args=(bar, task, title, rows, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def _watch(bar: Progress, task, title: str, rows: Callable[[], int], stop: threading.Event) -> None:
    began = time.monotonic()
    while not stop.wait(0.25):
        seen = rows()
        rate = seen / max(time.monotonic() - began, 1e-9)
        progress_text = f"  {seen:,} rows, {rate:,.0f} rows/s" if seen else ""
        bar.update(task, description=title + progress_text)
