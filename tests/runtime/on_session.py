"""Run as a program by test_sessions.py: batch, streaming, counts and errors on an ordinary session or on Connect."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests import spark_home
from tests.conformance.sessions import SESSIONS
from tests.runtime.office import ROWS, query, stream, write_csv
from tests.runtime.streams import Office

from anabranch import AnabranchError, Session
from anabranch.runtime import readiness

#: Answers as JSON: the columns before the probability, and the probability.
Answers = list[list[Any]]

TIMES = """
CREATE STREAM seen KEY (id STRING) VALUE (place STRING) TIME at TIMESTAMP FROM '{folder}/times.csv';
CREATE QUERY moved AS PATTERN seen(x, 'a') THEN seen(x, 'b') GROUP BY x;
"""

INTERVALS = """
CREATE STREAM shift KEY (person) TIME t ORDER seq MODEL INTERVALS FROM '{folder}/shifts.csv';
CREATE QUERY later AS RELATE ALL a ENDS AFTER ALL b FROM shift AS a, shift AS b WHERE a.person < b.person;
"""


def answers_of(rows: list[dict[str, Any]]) -> Answers:
    names = list(rows[0])
    until = names.index("probability") + 1
    return sorted([str(row[name]) for name in names[:until]] for row in rows)


def error_of(action: Any) -> list[str]:
    """The class and the message of the error that an action raises."""
    try:
        action()
    except AnabranchError as error:
        return [type(error).__name__, str(error)]
    return []


def batch(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A batch run: answers, counts and quarantine; and the error of a strict run, which has no counts."""
    write_csv(folder / "rows.csv", [*ROWS, ("eve", "hall", "soon", 0.5)])
    session = Session(spark)
    session.execute(stream("at", f"'{folder}/rows.csv'", time="t INTEGER") + query())
    frame = session.run("coffee")
    results = {
        "answers": answers_of(frame.toArrow().to_pylist()),
        "counts": asdict(session.counts("coffee")),
        "quarantine": [row["row"] for row in session.quarantine("coffee").collect()],
    }
    strict = session.run("coffee", strict=True)
    return results | {
        "strict": error_of(strict.collect),
        "counts of a failure": error_of(lambda: session.counts("coffee")),
    }


def times(spark: SparkSession, folder: Path) -> Answers:
    """Answers with times, which are instants in UTC, whatever the time zone of the session is."""
    rows = [("x", "a", "2026-01-01T10:00:00"), ("x", "b", "2026-01-01T11:30:00")]
    write_csv(folder / "times.csv", rows, "id,place,at")
    session = Session(spark)
    session.execute(TIMES.format(folder=folder))
    return [[row[0].timestamp(), *row[1:3]] for row in session.run("moved").select("t", "x", "probability").collect()]


def pairs(spark: SparkSession, folder: Path) -> Answers:
    """Answers about pairs, whose keys go through `applyInArrow`."""
    rows = [("ann", 1, 1.0), ("ann", 2, 9.0), ("bob", 1, 2.0), ("bob", 2, 3.0)]
    write_csv(folder / "shifts.csv", rows, "person,seq,t")
    session = Session(spark)
    session.execute(INTERVALS.format(folder=folder))
    return answers_of(session.run("later").toArrow().to_pylist())


def live(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A stream of two files, started twice; and the error of a strict stream."""
    office = Office(spark, folder / "live")
    office.add("first", *ROWS[:3])
    office.process_files()
    office.stop()
    office.add("second", *ROWS[3:], (None, "hall", 3, 0.5))
    office.process_files()
    office.end()
    office.stop()
    results = {
        "answers": sorted([*map(str, key), str(p)] for key, p in office.answers.items()),
        "counts": asdict(office.counts),
    }
    strict = Office(spark, folder / "strict")
    strict.add("rows", (None, "hall", 1, 0.5))
    results["strict"] = error_of(lambda: strict.process_files(strict=True))
    return results


def without_the_package(spark: SparkSession, folder: Path) -> list[str]:
    """The error of a run whose workers have a Python without the package."""
    package = folder / "hidden" / "anabranch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'anabranch'\")\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={package.parent}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    spark.sparkContext.pythonExec = str(python)
    readiness._ready.clear()
    session = Session(spark)
    session.execute(TIMES.format(folder=folder))
    return error_of(lambda: session.run("moved"))


def main(kind: str, folder: Path) -> None:
    """Print the results as JSON."""
    spark_home.use()
    spark = SESSIONS[kind]("local[2]")
    before = dict(spark.conf.getAll) if kind == "ordinary" else {}
    results: dict[str, Any] = {part.__name__: part(spark, folder) for part in (batch, times, pairs, live)}
    if kind == "ordinary":
        results["settings kept"] = dict(spark.conf.getAll) == before
        results["without the package"] = without_the_package(spark, folder)
    sys.stdout.write(json.dumps(results) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
