"""A profile of a run in this process: the functions on the path of the data, each without its callees.

It measures processor time, which other processes on the machine affect less than wall-clock time.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from anabranch.files import parquet
from anabranch.pattern import kernel, operator, weights
from anabranch.transport import inbox, packing, routing

Steps = dict[str, tuple[tuple[Any, str], ...]]
"""What is timed, in the order of the data: a label, and the functions of that label (their owners and names)."""

STEPS: Steps = {
    "read Parquet": ((parquet, "read_tables"),),
    "check rows": ((routing, "check_rows"),),
    "times": ((routing, "encode_times"), (packing, "encode_times")),
    "encode keys": ((routing, "encode_tuples"),),
    "encode values": ((packing, "_encode_values"),),
    "sort by bucket": ((packing, "rows_by_bucket"),),
    "gather by bucket": ((routing, "pack"),),
    "compact codes": ((packing, "_compact"),),
    "write blob": ((packing, "write_tables"), (packing, "write_buffer")),
    "decode blob": ((inbox.Inbox, "_decode"),),
    "receive": ((inbox.Inbox, "receive"),),
    "order": ((kernel, "order_rows"),),
    "clean": ((kernel, "clean_rows"),),
    "letters": ((operator.PatternOperator, "_letters"),),
    "step": tuple((kind, "step") for kind in (weights.SingleWeights, weights.IndependentWeights, weights.JointWeights)),
    "answers": ((operator.PatternOperator, "_answers"),),
    "rest of the operator": ((operator.PatternOperator, "step"),),
}

REST = "everything else"


class Clock:
    """Seconds per label, each without the labels nested in it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def on(self, label: str) -> Iterator[None]:
        """Add the time inside the block to `label`."""
        self._switch()
        self._running.append(label)
        try:
            yield
        finally:
            self._switch()
            self._running.pop()

    def _switch(self) -> None:
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def wrap(self, label: str, function: Callable) -> Callable:
        """Return the function with its time added to `label`; for a generator, the time of each next item."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.on(label):
                result = function(*args, **kwargs)
            return self._items(label, result) if isinstance(result, Iterator) else result

        return timed

    def _items(self, label: str, items: Iterator) -> Iterator:
        while True:
            with self.on(label):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item


@contextmanager
def timed(steps: Steps) -> Iterator[Clock]:
    """Time the functions of some steps, with a clock that counts everything else as REST."""
    clock = Clock()
    with ExitStack() as patches:
        for label, functions in steps.items():
            for owner, name in functions:
                if hasattr(owner, name):
                    patches.enter_context(patch.object(owner, name, clock.wrap(label, getattr(owner, name))))
        with clock.on(REST):
            yield clock


def profile(run: Callable[[], object]) -> dict[str, float]:
    """Return the seconds of each step of one run, and of everything else."""
    with timed(STEPS) as clock:
        run()
    order = [*STEPS, REST]
    return {label: clock.seconds[label] for label in order if clock.seconds[label] > 0}


def print_profile(title: str, run: Callable[[], object]) -> None:
    """Print the seconds of each step of a run, in the order of the data."""
    seconds = profile(run)
    total = sum(seconds.values())
    table = Table(title=f"profile; {title}")
    table.add_column("step")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for label, step_seconds in seconds.items():
        table.add_row(label, f"{step_seconds:.3f}", f"{step_seconds / total:.0%}")
    table.add_row("total", f"{total:.3f}", "", style="bold")
    Console().print(table)


def print_calls(title: str, run: Callable[[], object], most: int = 15) -> None:
    """Print the functions that take most of the time of a run, each without its callees."""
    calls = cProfile.Profile(time.process_time)
    calls.runcall(run)
    stats = pstats.Stats(calls)
    table = Table(title=f"profile; {title}: {stats.total_tt:.2f} s")
    for name in ("seconds", "with callees", "calls"):
        table.add_column(name, justify="right")
    table.add_column("function")
    by_own_time = sorted(stats.stats.items(), key=lambda item: item[1][2], reverse=True)
    for (file, line, function), (_, count, seconds, cumulative, _) in by_own_time[:most]:
        where = f"{function} ({'/'.join(Path(file).parts[-2:])}:{line})" if line else function
        table.add_row(f"{seconds:.3f}", f"{cumulative:.3f}", f"{count:,}", where)
    Console().print(table)
