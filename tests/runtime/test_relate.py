"""RELATE on Spark with equal keys in WHERE: entities with equal keys are in one block, whatever their types."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.local import local_job
from tests.relate.local import run_whole

from anabranch import Session

WORKBOOK = """
CREATE STREAM jams KEY (road INTEGER, jam INTEGER) TIME t INTEGER ORDER seq MODEL INTERVALS;
CREATE STREAM works KEY (road DOUBLE) TIME t INTEGER ORDER seq MODEL INTERVALS;
CREATE QUERY met AS RELATE SOME a INTERSECTS SOME b FROM jams AS a, works AS b WHERE a.road = b.road;
"""
ROADS = 12


def segments(rng: random.Random, **key: Any) -> list[dict[str, Any]]:
    """The starts and ends of three segments; those inside the interval may be lost."""
    times = sorted(rng.sample(range(100), 6))
    inner = range(2, 6)
    return [
        {**key, "seq": seq, "t": None if seq in inner and rng.random() < 0.3 else t} for seq, t in enumerate(times, 1)
    ]


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    rng = random.Random(20261116)
    jams = [segments(rng, road=road, jam=jam) for road in range(ROADS) for jam in range(3)]
    works = [segments(rng, road=float(road)) for road in range(0, ROADS, 2)]
    return {"jams": sum(jams, []), "works": sum(works, [])}


@pytest.mark.parametrize("partitions", [1, 7])
def test_entities_with_equal_keys_are_compared(
    spark: SparkSession, tmp_path: Path, rows: dict[str, list[dict[str, Any]]], partitions: int
) -> None:
    expected = run_whole(local_job(WORKBOOK, "met"), rows).answers()
    assert len(expected) > ROADS
    session = Session(spark, partitions=partitions)
    session.execute(WORKBOOK)
    for name, stream_rows in rows.items():
        pq.write_table(pa.Table.from_pylist(stream_rows), tmp_path / f"{name}.parquet")
        session.bind(name, tmp_path / f"{name}.parquet")
    answers = {
        ((row["a"]["road"], row["a"]["jam"]), row["b"]["road"]): row["probability"]
        for row in session.run("met").toArrow().to_pylist()
    }
    assert answers == pytest.approx({pair: answer.probability for pair, answer in expected.items()}, abs=1e-12)
