"""What every benchmark shares: records that say where they come from, interleaved rounds, a table, JSON lines."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

PACKAGES = ("anabranch", "pyspark", "pyarrow", "numba", "numpy")


@dataclass(frozen=True, slots=True)
class Options:
    """How the benchmarks are to be run."""

    quick: bool = False
    rounds: int = 5
    profile: bool = False
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where and with what a figure was measured."""

    machine: str
    versions: dict[str, str]
    commit: str


@cache
def stamp() -> Stamp:
    """The stamp of this process."""
    return Stamp(_machine(), _versions(), _commit())


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _commit() -> str:
    """The commit of the source, with a + where there are changes on top; 'unknown' outside a repository."""
    folder = Path(__file__).parent
    try:
        commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, capture_output=True, text=True)
        changed = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=folder, capture_output=True, text=True)
    except OSError:
        return "unknown"
    if commit.returncode:
        return "unknown"
    return commit.stdout.strip() + ("+" if changed.stdout.strip() else "")


@dataclass(frozen=True, slots=True)
class Record:
    """One figure. `baseline` names what it is held against, and `ratio` is the figure divided by that one's."""

    benchmark: str
    workload: str
    metric: str
    value: float
    unit: str
    baseline: str | None = None
    ratio: float | None = None
    seed: int = 7
    stamp: Stamp = field(default_factory=stamp)

    def to_json(self) -> str:
        """One line of JSON, the stamp's fields beside the others."""
        fields = asdict(self)
        return json.dumps(fields | fields.pop("stamp"))


def interleaved(
    contestants: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The median seconds of each contestant; they take turns, so that a noisy moment meets them all.

    With `time.process_time` as the clock, what others do on this machine counts less; it suits one thread alone.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        turn = list(contestants.items())
        for name, run in turn if number % 2 == 0 else turn[::-1]:
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: median(taken) for name, taken in seconds.items()}


def print_table(records: Iterable[Record], console: Console | None = None) -> None:
    """The records, a table a workload; the stamp, common to all, once above them."""
    console = console or Console()
    records = list(records)
    origin = stamp()
    versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
    console.print(f"{origin.machine}; commit {origin.commit}; {versions}", style="dim", highlight=False)
    for benchmark, workload in dict.fromkeys((record.benchmark, record.workload) for record in records):
        table = Table("measured", title=f"{benchmark}; {workload}", title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("unit", no_wrap=True)
        table.add_column("ratio", justify="right")
        table.add_column("to")
        for record in records:
            if (record.benchmark, record.workload) == (benchmark, workload):
                table.add_row(
                    record.metric, shown(record.value), record.unit, _ratio(record.ratio), record.baseline or ""
                )
        console.print(table)


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if 0.01 <= ratio < 100 else shown(ratio)


def shown(value: float) -> str:
    """A figure with about three digits that matter.

    >>> shown(23_456_789.0), shown(12.345), shown(0.0001234)
    ('23,456,789', '12.3', '0.000123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def append_json(records: Iterable[Record], path: str) -> None:
    """Add the records to a file, one line each."""
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(record.to_json() + "\n" for record in records)
