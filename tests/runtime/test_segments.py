"""RELATE on Spark over rows of segments, and over segments that are made from measurements, in batch and streaming."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.oracles.runs import runs_of
from tests.relate.local import run_whole
from tests.relate.test_segments import long_job, long_rows, wide_rows
from tests.runtime.office import write_csv
from tests.runtime.streams import finish

from anabranch import Session

QUERY = "CREATE QUERY q AS RELATE AT LEAST 1 a INTERSECTS SOME b FROM {stream} AS a, {stream} AS b WHERE a.k < b.k;"

Answers = dict[tuple[str, str], float]


def expected_answers(entities: dict[str, list[Any]]) -> Answers:
    run = run_whole(long_job("HORIZON [-5, 200]"), {"s": long_rows(entities)})
    return {pair: pytest.approx(answer.probability, abs=1e-12) for pair, answer in run.answers().items()}


def pairs(rows: list[dict[str, Any]]) -> Answers:
    return {(row["a"]["k"], row["b"]["k"]): row["probability"] for row in rows}


def streamed(session: Session, folder: Path) -> Answers:
    """The final answers of a stream with one file per micro-batch."""
    checkpoint = str(folder / "cp")
    finish(session.start("q", checkpoint, str(folder / "out"), max_files=1), session, checkpoint)
    files = sorted((folder / "out").glob("*.parquet"))
    return pairs([row for file in files for row in pq.read_table(file).to_pylist()])


def write_parts(folder: Path, rows: list[tuple], names: str) -> None:
    for number in range(3):
        part = rows[number * len(rows) // 3 : (number + 1) * len(rows) // 3]
        write_csv(folder / "in" / f"{number}.csv", part, names)


def test_rows_of_segments_give_the_answers_of_their_events(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20261117)
    entities = {}
    for k in "abcdef":
        times = sorted(rng.sample(range(100), 6))
        times = [None if rng.random() < 0.3 else time for time in times]
        entities[k] = list(zip(times[::2], times[1::2], strict=True))
    rows = [(row["k"], row["n"], row["t_from"], row["t_to"], -5, 200) for row in wide_rows(entities)]
    rng.shuffle(rows)
    write_parts(tmp_path, rows, "k,n,t_from,t_to,opens,closes")
    session = Session(spark)
    session.execute(
        f"CREATE STREAM s KEY (k) TIME (t_from INTEGER, t_to INTEGER) MODEL INTERVALS ORDER n HORIZON [opens, closes] "
        f"WATERMARK 1000 FROM '{tmp_path}/in';" + QUERY.format(stream="s")
    )
    expected = expected_answers(entities)
    assert len(expected) > 5
    assert pairs(session.run("q").toArrow().to_pylist()) == expected
    assert streamed(session, tmp_path) == expected
    assert session.validate("s").count() == 0


def test_segments_are_made_from_measurements(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20261118)
    rows = sorted((t, k, rng.choice([10, 20, 60])) for k in "abcdef" for t in rng.sample(range(150), 30))
    entities: dict[str, list[Any]] = {}
    for k in "abcdef":
        runs = runs_of([(t, v < 30) for t, key, v in rows if key == k], None, None)
        entities[k] = [(start, None if isinstance(end, tuple) else end) for start, end in runs]
    write_parts(tmp_path, [(k, t, v, "car") for t, k, v in rows] + [("a", 149, 1, "tram")], "id,t,v,kind")
    session = Session(spark)
    session.execute(
        f"CREATE STREAM speeds KEY (id AS k) VALUE (v) TIME t FROM '{tmp_path}/in' WHERE kind = 'car';"
        "CREATE STREAM slow KEY (k) TIME t INTERVALS FROM speeds WHILE v < 30 HORIZON [-5, 200];"
        + QUERY.format(stream="slow")
    )
    expected = expected_answers(entities)
    assert len(expected) > 5
    assert pairs(session.run("q").toArrow().to_pylist()) == expected
    counts = session.counts("q")
    assert (counts.read, counts.used, counts.excluded) == (181, 180, 1)
    assert "runs of rows of speeds with v < 30" in str(session.explain("q"))
    assert streamed(session, tmp_path) == expected
