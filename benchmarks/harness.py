"""Shared by all benchmarks: records with their provenance, interleaved timing, a table, and JSON lines."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

import anabranch

CPU_PER_SECOND = "CPU s per s"
"""The unit of processor seconds per second of stream."""

PACKAGES = ("anabranch", "pyspark", "pyarrow", "numba", "numpy")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a benchmark run; `rows` are the most rows of a part whose size can be chosen."""

    quick: bool = False
    rounds: int = 5
    profile: bool = False
    seed: int = 7
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """The machine, the versions, the commit and the day (UTC) of a measurement."""

    machine: str
    versions: dict[str, str]
    commit: str
    date: str


@cache
def provenance() -> Provenance:
    """Return the provenance of everything that this process measures."""
    return Provenance(_machine(), _versions(), _commit(), datetime.now(UTC).date().isoformat())


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    """Return the name of the processor; Linux on ARM has it only in the output of lscpu."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        if "model name" not in text:
            text = subprocess.run(["lscpu"], capture_output=True, text=True).stdout
    except OSError:
        text = ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.lower().startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _commit() -> str:
    """Return the commit of the package, with a + if there are uncommitted changes; 'unknown' outside a repository.

    These benchmarks can measure the sources of another commit, by PYTHONPATH.
    """
    folder = Path(anabranch.__file__).parent
    try:
        commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, capture_output=True, text=True)
        changed = subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=folder, capture_output=True, text=True)
    except OSError:
        return "unknown"
    if commit.returncode:
        return "unknown"
    return commit.stdout.strip() + ("+" if changed.stdout.strip() else "")


# ------------------------------------------------------------ records


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement.

    Attributes
    ----------
    benchmark : the family and the part, such as pattern.kernel
    baseline : the metric that this one is compared with
    ratio : value divided by the value of the baseline (inverted for times)
    """

    benchmark: str
    workload: str
    metric: str
    value: float
    unit: str
    baseline: str | None = None
    ratio: float | None = None
    seed: int = 7
    provenance: Provenance = field(default_factory=provenance)

    def to_json(self, options: Options) -> str:
        """Return the record as one line of JSON, with the rounds and the size of the run that measured it."""
        fields = asdict(self)
        origin = fields.pop("provenance")
        return json.dumps(fields | {"rounds": options.rounds, "quick": options.quick} | origin)


Recorder = Callable[..., Record]
"""Makes a record of one workload from a metric, a value, a unit, and possibly a baseline and the ratio to it."""


def recorder(benchmark: str, workload: str, options: Options) -> Recorder:
    """Return a function that makes the records of one workload."""
    return partial(Record, benchmark, workload, seed=options.seed)


def load_records(record: Recorder) -> Iterator[Record]:
    """Yield the load average of the machine: how busy it was while the other records were measured."""
    one_minute, _, quarter_hour = os.getloadavg()
    yield record("load average of the machine, 1 minute", one_minute, "processes")
    yield record("load average of the machine, 15 minutes", quarter_hour, "processes")


def append_json(records: Iterable[Record], path: str, options: Options) -> None:
    """Append the records to a file, one line each."""
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(record.to_json(options) + "\n" for record in records)


# ------------------------------------------------------------ timing


def interleaved(
    contestants: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    warm_up: bool = False,
) -> dict[str, float]:
    """Return the median seconds of each contestant.

    The contestants take turns, so that a disturbance of the machine affects all of them.

    Parameters
    ----------
    clock : callable
        `time.process_time` is less sensitive to other processes, but only counts this process.
    warm_up : bool
        Whether to run each contestant once before the rounds that are timed.
    """
    if warm_up:
        for run in contestants.values():
            run()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        turn = list(contestants.items())
        for name, run in turn if number % 2 == 0 else turn[::-1]:
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: median(times) for name, times in seconds.items()}


processor_seconds = partial(interleaved, clock=time.process_time)
"""As `interleaved`, by the processor time of this process."""


# ------------------------------------------------------------ tables


def print_table(records: Iterable[Record], console: Console | None = None) -> None:
    """Print the records, one table per workload, below the provenance that they share."""
    console = console or Console()
    records = list(records)
    origin = provenance()
    versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
    console.print(f"{origin.machine}; commit {origin.commit}; {versions}", style="dim", highlight=False)
    for benchmark, workload in dict.fromkeys((record.benchmark, record.workload) for record in records):
        table = Table("metric", title=f"{benchmark}; {workload}", title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("unit", no_wrap=True)
        table.add_column("ratio", justify="right")
        table.add_column("to")
        for record in records:
            if (record.benchmark, record.workload) == (benchmark, workload):
                ratio = format_ratio(record.ratio)
                table.add_row(record.metric, format_value(record.value), record.unit, ratio, record.baseline or "")
        console.print(table)


def format_ratio(ratio: float | None) -> str:
    """Return a ratio with two decimals, or with three significant digits if it is very small or large."""
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if 0.01 <= ratio < 100 else format_value(ratio)


def format_value(value: float) -> str:
    """Return a value with about three significant digits.

    >>> format_value(23_456_789.0), format_value(12.345), format_value(0.0001234)
    ('23,456,789', '12.3', '0.000123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
