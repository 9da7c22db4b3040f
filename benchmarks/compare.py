"""`python -m benchmarks.compare A B`: compare two files, or folders, of measurements that `python -m benchmarks` saved.

Prints every measurement of A and B with the ratio B / A, and marks the throughputs and times of B that are worse than
those of A by more than the tolerance.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.harness import CPU_PER_SECOND, format_ratio, format_value

#: Units of times; a higher value is worse. Throughputs have units that end in "/s"; a lower value is worse.
TIMES = ("s", "CPU s", "ns/event", "us/probe", "us/pair", CPU_PER_SECOND)

#: What should be equal in two files, for their values to be comparable.
CONDITIONS = ("machine", "versions", "rounds", "quick", "seed")

WORSE, BETTER, ONLY_A, ONLY_B = "worse", "better", "only in A", "only in B"


class Name(NamedTuple):
    """The identity of a measurement."""

    benchmark: str
    workload: str
    metric: str
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement in both files; None where a file does not have it."""

    name: Name
    a: float | None
    b: float | None

    @property
    def ratio(self) -> float | None:
        """B / A; None if one of them is missing or A is 0."""
        return None if self.a is None or self.b is None or self.a == 0 else self.b / self.a

    def mark(self, tolerance: float) -> str:
        """Return how B compares with A; empty within the tolerance, and for other units than throughputs and times."""
        if self.a is None:
            return ONLY_B
        if self.b is None:
            return ONLY_A
        if self.ratio is None or not self.is_speed:
            return ""
        slowdown = self.ratio if self.name.unit in TIMES else (1 / self.ratio if self.ratio else float("inf"))
        if slowdown > 1 + tolerance:
            return WORSE
        return BETTER if slowdown < 1 / (1 + tolerance) else ""

    @property
    def is_speed(self) -> bool:
        """Whether the value is a throughput or a time."""
        return self.name.unit in TIMES or self.name.unit.endswith("/s")


# ------------------------------------------------------------ files


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, or of all files of a folder.

    Raises
    ------
    ValueError
        If a line is not a record of a benchmark.
    """
    if path.is_dir():
        return [record for file in sorted(path.glob("*.jsonl")) for record in read_records(file)]
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            _name(record), float(record["value"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: not a record of a benchmark ({error})") from error
        records.append(record)
    return records


def _name(record: dict[str, Any]) -> Name:
    return Name(*(record[field] for field in Name._fields))


def _values(records: Sequence[dict[str, Any]]) -> dict[Name, float]:
    """Return the value of each measurement; the median if a file has several runs."""
    values: dict[Name, list[float]] = {}
    for record in records:
        values.setdefault(_name(record), []).append(record["value"])
    return {name: median(runs) for name, runs in values.items()}


def compare(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> list[Row]:
    """Return all measurements, in the order of A, then those that only B has."""
    values_a, values_b = _values(a), _values(b)
    names = dict.fromkeys([*values_a, *values_b])
    return [Row(name, values_a.get(name), values_b.get(name)) for name in names]


def differences(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the conditions of the measurements that differ between the files, which may explain differences."""
    for condition in CONDITIONS:
        in_a, in_b = ({json.dumps(record.get(condition)) for record in records} for records in (a, b))
        if in_a != in_b:
            yield f"{condition} differs: {', '.join(sorted(in_a))} in A, {', '.join(sorted(in_b))} in B"


# ------------------------------------------------------------ output


def print_rows(rows: Sequence[Row], tolerance: float, console: Console) -> None:
    """Print a table with one section per workload."""
    table = Table("name", "unit", box=box.SIMPLE_HEAD)
    for heading in ("A", "B", "B / A"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    section = None
    for row in rows:
        if (row.name.benchmark, row.name.workload) != section:
            section = (row.name.benchmark, row.name.workload)
            table.add_section()
            table.add_row(f"{row.name.benchmark}; {row.name.workload}", style="bold")
        mark = row.mark(tolerance)
        table.add_row(
            f"  {row.name.metric}",
            row.name.unit,
            _shown(row.a),
            _shown(row.b),
            format_ratio(row.ratio),
            mark,
            style={WORSE: "red", BETTER: "green"}.get(mark),
        )
    console.print(table)


def _shown(value: float | None) -> str:
    return "-" if value is None else format_value(value)


def main(arguments: list[str] | None = None) -> int:
    """Compare two files; return 1 if a throughput or time of B is worse by more than the tolerance, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description="Compare two files of measurements. Exits with 1 if a throughput or time of B is worse.",
    )
    parser.add_argument(
        "a",
        type=Path,
        metavar="A",
        help="the earlier measurements: a file of --json or --save, or the folder of --save",
    )
    parser.add_argument("b", type=Path, metavar="B", help="the later measurements")
    parser.add_argument(
        "--tolerance", type=float, default=5.0, metavar="PERCENT", help="allowed slowdown (default: %(default)g %%)"
    )
    parsed = parser.parse_args(arguments)
    try:
        a, b = read_records(parsed.a), read_records(parsed.b)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    rows = compare(a, b)
    if not any(row.ratio is not None for row in rows):
        parser.error(f"{parsed.a} and {parsed.b} have no measurement in common")
    console = Console()
    print_rows(rows, parsed.tolerance / 100, console)
    for difference in differences(a, b):
        console.print(difference, style="yellow", highlight=False)
    marks = [row.mark(parsed.tolerance / 100) for row in rows]
    counts = ", ".join(f"{marks.count(mark)} {mark}" for mark in (WORSE, BETTER, ONLY_A, ONLY_B) if mark in marks)
    console.print(f"{len(rows)} measurements: {counts or 'none differs'}, tolerance {parsed.tolerance:g} %")
    return 1 if WORSE in marks else 0


if __name__ == "__main__":
    sys.exit(main())
