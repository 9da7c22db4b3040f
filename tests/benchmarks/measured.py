"""Measurements as benchmarks save them, with values that are easy to check."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cost import KEY, ROW, RUN
from benchmarks.growth import curve_records
from benchmarks.harness import Options, Provenance, Record, recorder
from benchmarks.results import Results, save
from benchmarks.stages import STAGES

MACHINE = Provenance("a machine, 2 cores", {"python": "3.11"}, "abc123", "2026-11-18")

STAGE_WORKLOAD = "PATTERN: three goals; 2,000,000 rows"


def records() -> list[Record]:
    """Stages, costs, a growth curve, peers, memory and a figure of a paper."""
    stages = [Record("whole.stages", STAGE_WORKLOAD, stage, 0.5, "s") for stage in STAGES]
    stages += [
        Record("whole.stages", STAGE_WORKLOAD, "Spark: shuffle written", 0.25, "s"),
        Record("whole.stages", STAGE_WORKLOAD, "Spark: shuffled", 20.0, "MB"),
    ]
    costs = [Record("whole.cost", "PATTERN: five sizes", name, value, "CPU s") for name, value in COSTS.items()]
    curve = curve_records(recorder("pattern.growth", "three goals", Options()), "keys", {100: 0.1, 200: 0.2, 400: 0.4})
    memory = [
        Record("whole.memory", "SEQUENCE, stream, 1 row per file", f"1,000 rows: peak of {role}", 7.0, "MB")
        for role in ("JVM", "workers", "all processes")
    ]
    queries = [
        Record("constrain.queries", "739,070 events", f"{count} queries: {name}", 1e6 / count, "events/s")
        for count in (5, 100)
        for name in ("LOOSE", "NOINDEX")
    ]
    return [*stages, *costs, *curve, *peers(), *memory, *queries]


COSTS = {RUN: 2.0, ROW: 4.0, KEY: 10.0}


def peers() -> list[Record]:
    """Anabranch and a faster peer, whose name is not safe in HTML."""
    rows = {"Anabranch": 1.5, "a <peer>": 0.5}
    return [
        record
        for name, seconds in rows.items()
        for record in (
            Record("peers.next", "a <task>", name, seconds, "s"),
            Record("peers.next", "a <task>", f"{name}: first run", 2 * seconds, "s"),
            Record("peers.next", "a <task>", f"{name}: peak memory", 100.0, "MB"),
        )
    ]


def saved(folder: Path, given: list[Record] | None = None) -> Results:
    """The records after they were written to a folder and read again."""
    marked = [_of_machine(record) for record in (records() if given is None else given)]
    save(marked, folder, Options())
    return Results.read([folder])


def _of_machine(record: Record) -> Record:
    fields = ("benchmark", "workload", "metric", "value", "unit", "baseline", "ratio", "seed")
    return Record(*(getattr(record, name) for name in fields), provenance=MACHINE)
