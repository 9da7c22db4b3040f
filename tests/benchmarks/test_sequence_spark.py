"""The part of the SEQUENCE benchmark that uses Spark, on few events; scripts/test runs it with the Spark tests."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from benchmarks.harness import Record
from benchmarks.sequence.spark import FLINK, measure_query
from benchmarks.sequence.workloads import Load, QueryShape, count_matches, count_next, write_csv
from pyspark.sql import SparkSession

SMALL = Load(events=3_000, keys=20)


@pytest.mark.parametrize("negative", [False, True])
def test_spark_and_flink_are_compared(spark: SparkSession, tmp_path: Path, negative: bool) -> None:
    table = SMALL.table(9)
    write_csv(table, tmp_path / "events.csv")
    query = QueryShape(3, SMALL.window(5), negative=negative)

    def run_flink(pattern: str, within: int) -> tuple[list[float], int]:
        return [2.0, 1.0], count_next(table, within)[pattern]

    record = partial(Record, "sequence.spark", "few events")
    records = list(measure_query(spark, query, tmp_path / "events.csv", table, run_flink, 1, record))
    values = {one.metric: one.value for one in records}
    assert values[f"{query}: matches"] == count_matches(table, query)
    for pattern in FLINK[str(query)]:
        assert values[f"Flink {pattern}, first run"] == 1_500
        assert values[f"Flink {pattern}, warm"] == 3_000
        assert values[f"Flink {pattern}: matches"] > 0
