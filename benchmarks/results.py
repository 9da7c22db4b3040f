"""Files of measurements: one per family in benchmarks/results, from which the report and the documentation are made.

A part that is measured again replaces its earlier records. So a file has the latest measurement of each part, with the
machine, the commit and the day of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.compare import read_records
from benchmarks.harness import Options, Record

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a part was measured."""

    machine: str
    commit: str
    date: str
    rounds: int
    quick: bool

    def __str__(self) -> str:
        size = "; small workloads (--quick)" if self.quick is True else ""
        return f"{self.machine}; commit {self.commit}, {self.date}; {self.rounds} rounds{size}"


class Results:
    """Measurements that can be looked up by part, workload and metric.

    Parameters
    ----------
    records : list of dict
        As `Record.to_json` writes them. Of records with the same names, the last counts.
    """

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self._by_name: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        for record in records:
            name = record["benchmark"], record["workload"], record["metric"], record["unit"]
            self._by_name.pop(name, None)
            self._by_name[name] = record

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Results:
        """Read files, and all files of folders; raises ValueError for a line that is not a record."""
        return cls(record for path in paths for record in read_records(path))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._by_name.values())

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def of(self, benchmark: str, workload: str = "") -> Results:
        """Return the records of a part, or of all parts of a family, and of workloads that begin with a text."""
        return Results(
            record
            for record in self
            if (record["benchmark"] == benchmark or record["benchmark"].startswith(f"{benchmark}."))
            and record["workload"].startswith(workload)
        )

    def value(self, metric: str, unit: str | None = None) -> float | None:
        """Return the value of a metric; None if there is none."""
        found = [record["value"] for record in self._of_metric(metric) if unit in (None, record["unit"])]
        return found[0] if found else None

    def ratio(self, metric: str) -> float | None:
        """Return the ratio of a metric to its baseline; None if there is none."""
        return next((record["ratio"] for record in self._of_metric(metric)), None)

    def _of_metric(self, metric: str) -> Iterator[dict[str, Any]]:
        return (record for record in self if record["metric"] == metric)

    @property
    def parts(self) -> list[str]:
        """The names of the parts."""
        return list(dict.fromkeys(record["benchmark"] for record in self))

    def by_workload(self) -> dict[str, Results]:
        """Return the records of each workload."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for record in self:
            groups.setdefault(record["workload"], []).append(record)
        return {workload: Results(group) for workload, group in groups.items()}

    @property
    def origins(self) -> list[Origin]:
        """The machines, commits and days of the records."""
        names = ("machine", "commit", "date", "rounds", "quick")
        return list(dict.fromkeys(Origin(*(record.get(name, "unknown") for name in names)) for record in self))


def save(records: Iterable[Record], folder: Path, options: Options) -> None:
    """Write records to the files of their families, and remove earlier records of the same parts."""
    folder.mkdir(parents=True, exist_ok=True)
    by_family = sorted(records, key=lambda record: record.benchmark.partition(".")[0])
    for family, group in groupby(by_family, lambda record: record.benchmark.partition(".")[0]):
        new = list(group)
        path, parts = folder / f"{family}.jsonl", {record.benchmark for record in new}
        kept = [old for old in read_records(path) if old["benchmark"] not in parts] if path.exists() else []
        lines = [json.dumps(record) for record in kept] + [record.to_json(options) for record in new]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
