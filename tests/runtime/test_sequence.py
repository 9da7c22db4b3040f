"""SEQUENCE on Spark: EMIT NEXT, open ends, runs, and events with probabilities give the answers of the oracle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.local import bound_query
from tests.oracles.events import frozen
from tests.oracles.sequence import matches

from anabranch import Session
from anabranch.runtime.sinks.files import without_structs

WORKBOOK = """
CREATE STREAM r KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE STREAM guess KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY following AS SEQUENCE (x, y, z) FROM r
  WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND x.tag = y.tag AND y.tag = z.tag
  MISS y 0.2 DELAY y UNIFORM(0, 4) WITHIN 6 EMIT NEXT, EXPIRED;
CREATE QUERY alone AS SEQUENCE (!x, y, z) FROM r
  WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND x.tag = y.tag AND y.tag = z.tag
  MISS x 0.1, z 0.3 DELAY x UNIFORM(0, 4), z UNIFORM(0, 4) WITHIN 4 ENDING OPEN;
CREATE QUERY run AS SEQUENCE (x, y+, w, z) FROM r
  WHERE x.reader = 'x' AND y.reader IN ('y', 'z') AND w.reader = 'w' AND z.reader = 'z' AND x.tag = y.tag
    AND y.tag = w.tag AND w.tag = z.tag AND y.t >= x.t
  MISS w 0.5 DELAY w UNIFORM(0, 4) WITHIN 14;
CREATE QUERY likely_run AS SEQUENCE (x, y+, z) FROM guess
  WHERE x.reader = 'x' AND y.reader IN ('y', 'w') AND z.reader = 'z' AND x.tag = y.tag AND y.tag = z.tag
  WITHIN 8 EMIT NEXT;
CREATE QUERY likely AS SEQUENCE (x, !y, z) FROM guess
  WHERE x.reader = 'x' AND y.reader IN ('y', 'w') AND z.reader = 'z' AND x.tag = y.tag AND y.tag = z.tag
  MISS y 0.2 DELAY y UNIFORM(0, 9) WITHIN 8 EMIT NEXT THRESHOLD 0.01;
"""
READS = [
    ("a", "x", 0), ("a", "y", 1), ("b", "x", 1), ("a", "z", 2), ("b", "z", 3), ("a", "z", 4), ("a", "y", 7),
    ("b", "y", 8), ("a", "x", 9), ("b", "y", 13), ("b", "z", 15), ("a", "y", 16), ("c", "z", 30),
]  # fmt: skip
GUESSES = [
    ("a", "x", 0, 0.5), ("a", "z", 0, 0.25), ("a", "y", 2, 0.3), ("a", "w", 2, 0.7), ("a", "y", 3, 0.1),
    ("b", "x", 3, 1.0), ("a", "z", 5, 0.5), ("b", "w", 5, 0.4), ("b", "z", 6, 0.9), ("b", "z", 7, 1.0),
    ("c", "w", 30, 1.0),
]  # fmt: skip
ROWS: dict[str, list[dict[str, Any]]] = {
    "r": [dict(zip(("tag", "reader", "t"), row, strict=True)) for row in READS],
    "guess": [dict(zip(("tag", "reader", "t", "p"), row, strict=True)) for row in GUESSES],
}
CERTAIN, LIKELY = ("following", "alone", "run"), ("likely", "likely_run")
NAMES = (*CERTAIN, *LIKELY)


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The queries over the rows of each stream in order of time, in three files."""
    session = Session(spark)
    session.execute(WORKBOOK)
    for name, rows in ROWS.items():
        folder = tmp_path_factory.mktemp(name)
        for number in range(3):
            part = rows[number * len(rows) // 3 : (number + 1) * len(rows) // 3]
            pq.write_table(pa.Table.from_pylist(part), folder / f"{number}.parquet")
            # Spark reads files in the order of their times.
            os.utime(folder / f"{number}.parquet", (1_800_000_000 + number, 1_800_000_000 + number))
        session.bind(name, str(folder))
    return session


def probabilities(rows: list[dict[str, Any]]) -> dict[Any, float]:
    return {frozen(row): row["probability"] for row in rows}


def truth_of(name: str) -> dict[Any, float]:
    truth = probabilities(matches(bound_query(WORKBOOK, name), ROWS))
    assert truth
    return truth


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_gives_the_answers_of_the_oracle(session: Session, name: str) -> None:
    answers = session.run(name).toArrow().to_pylist()
    assert probabilities(answers) == pytest.approx(truth_of(name), abs=1e-9)


def test_csv_files_have_a_column_for_each_part_of_a_run(session: Session) -> None:
    names = without_structs(session.run("run")).columns
    assert names[6:13] == [
        "y.count", "y.first.tag", "y.first.reader", "y.first.t", "y.last.tag", "y.last.reader", "y.last.t",
    ]  # fmt: skip


def test_streams_give_the_answers_of_the_oracle(session: Session, tmp_path: Path) -> None:
    for names in (CERTAIN, LIKELY):
        checkpoint, outputs = str(tmp_path / f"checkpoint_{names[0]}"), [str(tmp_path / name) for name in names]
        started = session.start_together(names, checkpoint, outputs, max_files=1)
        started.processAllAvailable()
        session.end_input(checkpoint)
        started.processAllAvailable()
        started.stop()
    for name in NAMES:
        files = sorted((tmp_path / name).glob("part-*"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        assert probabilities(rows) == pytest.approx(truth_of(name), abs=1e-9)
