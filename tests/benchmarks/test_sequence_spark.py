"""The part of the benchmark of SEQUENCE that runs through Spark, on few events; with the tests that need it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from benchmarks import sequence
from benchmarks.harness import Record
from benchmarks.sequence_workloads import Load, QueryShape, count_matches, count_next, write_csv
from pyspark.sql import SparkSession

SMALL = Load(events=3_000, keys=20)


@pytest.mark.parametrize("negative", [False, True])
def test_through_spark_beside_flink(spark: SparkSession, tmp_path: Path, negative: bool) -> None:
    table = SMALL.table(9)
    write_csv(table, tmp_path / "events.csv")
    query = QueryShape(3, SMALL.window(5), negative=negative)

    def flink(pattern: str, within: int) -> tuple[list[float], int]:
        return [2.0, 1.0], count_next(table, within)[pattern]

    record = partial(Record, "sequence.spark", "few events")
    records = list(sequence._contest(spark, query, tmp_path / "events.csv", table, flink, 1, record))
    told = {each.metric: each.value for each in records}
    assert told[f"{query}: matches"] == count_matches(table, query)
    for pattern in sequence.FLINK[str(query)]:
        assert told[f"Flink {pattern}, first run"] == 1_500
        assert told[f"Flink {pattern}, warm"] == 3_000
        assert told[f"Flink {pattern}: matches"] > 0
