"""The two queries of the PATTERN benchmarks, and the archives that they run over."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness import Options
from benchmarks.workloads import Spec, room

QUERIES = {"three": "three goals", "coffee": "coffee"}


def workbook(folder: Path, spec: Spec, source: str = "stream.parquet", goals: int = 3) -> str:
    """Return a workbook with the two queries; the goals of the first are spread evenly around the ring of rooms."""
    visited = [room(number * spec.values // (goals + 1)) for number in range(goals)]
    return f"""
        CREATE RELATION office (person STRING, room STRING) FROM '{folder}/office.parquet';
        CREATE RELATION hall (room STRING) FROM '{folder}/hall.parquet';
        CREATE RELATION coffee_room (room STRING) FROM '{folder}/coffee_room.parquet';
        CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER
          MODEL {spec.model} FROM '{folder}/{source}';
        CREATE QUERY three AS
          PATTERN {" THEN ".join(f"at(p, '{name}')" for name in visited)} GROUP BY p;
        CREATE QUERY coffee AS
          PATTERN at(p, l1) THEN at(p, l2)+<p | hall(l2)> THEN at(p, l3)
          WHERE office(p, l1) AND coffee_room(l3) GROUP BY p;
        """


def archive_specs(options: Options, instants: int = 51) -> list[Spec]:
    """Return an archive of each model; with 51 instants, MARKOV and INDEPENDENT have about 5 million rows."""
    keys = 200 if options.quick else 10_000
    return [
        Spec("MARKOV", keys, instants + 1, seed=options.seed),
        Spec("INDEPENDENT", keys, 2 * instants, seed=options.seed),
        Spec("CERTAIN", keys, 2 * instants, seed=options.seed),
    ]
