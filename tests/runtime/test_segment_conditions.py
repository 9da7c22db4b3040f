"""RELATE on Spark with conditions on segments and COUNT, in batch and streaming: section 5 of the SimpMatch paper."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.local import local_job
from tests.relate.local import run_whole
from tests.runtime.office import write_csv
from tests.runtime.streams import finish

from anabranch import Session

STREAM = """
CREATE STREAM trips KEY (journey STRING) VALUE (stop STRING, delay DOUBLE) TIME t INTEGER MODEL INTERVALS
  ORDER seq LENGTH n WATERMARK 1000{source};
"""
QUERIES = """
CREATE QUERY met AS RELATE AT LEAST 3 a INTERSECTS SOME b FROM trips AS a, trips AS b
  WHERE a.stop = b.stop AND a.journey < b.journey AND a.delay + b.delay < 9 COUNT COMPLEMENT;
CREATE QUERY apart AS RELATE AT MOST 1 a INTERSECTS EXACTLY 1 b FROM trips AS a, trips AS b
  WHERE a.stop <> 'zoo' AND a.journey < b.journey;
"""
NAMES = "journey,seq,t,stop,delay,n"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Six journeys along five stops; some arrivals and departures are lost, with and without a row."""
    rng = random.Random(20261119)
    rows = []
    for number, journey in enumerate("abcdef"):
        t = 20 * (number // 3) + rng.randint(0, 6)
        for seq in range(1, 11):
            t += rng.randint(1, 8)
            lost = 1 < seq < 10 and rng.random() < 0.3
            if lost and rng.random() < 0.3:
                continue
            stop = ["park", "zoo", "pier", "hall", "mill"][(seq - 1) // 2]
            cells = (journey, seq, None if lost else t, stop, rng.random() * 6, 10)
            rows.append(dict(zip(NAMES.split(","), cells, strict=True)))
    return rows


def by_pair(answers: list[dict[str, Any]]) -> dict[tuple[str, str], list[Any]]:
    return {
        (row["a"]["journey"], row["b"]["journey"]): [row["probability"], row.get("expected"), row.get("distribution")]
        for row in answers
    }


def approximate(answers: dict) -> dict:
    return {
        pair: [
            None if value is None else pytest.approx(value, abs=1e-12)
            for value in (answer.probability, answer.expected, answer.distribution)
        ]
        for pair, answer in answers.items()
    }


def test_journeys_that_meet_at_three_or_more_stops(
    spark: SparkSession, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    expected = {
        name: approximate(run_whole(local_job(STREAM.format(source="") + QUERIES, name), {"trips": rows}).answers())
        for name in ("met", "apart")
    }
    assert all(len(answers) > 2 for answers in expected.values())
    tuples = [tuple(row.values()) for row in rows]
    for number in range(3):
        write_csv(tmp_path / "in" / f"{number}.csv", tuples[number::3], NAMES)
    session = Session(spark)
    session.execute(STREAM.format(source=f" FROM '{tmp_path}/in'") + QUERIES)
    for name, answers in expected.items():
        assert by_pair(session.run(name).toArrow().to_pylist()) == answers
    checkpoint = str(tmp_path / "cp")
    finish(session.start("met", checkpoint, str(tmp_path / "out"), max_files=1), session, checkpoint)
    files = (tmp_path / "out").glob("*.parquet")
    assert by_pair([row for file in files for row in pq.read_table(file).to_pylist()]) == expected["met"]
