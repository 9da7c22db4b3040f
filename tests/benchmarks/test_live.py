"""The benchmark of streams on few rows: every kind has answers, and the latency of each file is measured."""

from __future__ import annotations

import pytest
from benchmarks import live
from benchmarks.engines import make_job
from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("cache_folder")


@pytest.mark.parametrize("workload", live.WORKLOADS, ids=lambda workload: workload.kind)
def test_every_key_has_equally_many_rows(workload: live.Live) -> None:
    tables = list(workload.tables(n_rows=40, n_keys=20, files=6, seed=1))
    assert [table.num_rows for table in tables] == [40] * 6
    keys = [key for table in tables for key in table["k"].to_pylist()]
    assert len(set(map(keys.count, keys))) == 1
    make_job(workload.workbook(workload.files(40, 20, 6, seed=1)), "q")


def test_micro_batches_and_latencies_are_measured(spark: SparkSession) -> None:
    workload = next(workload for workload in live.WORKLOADS if workload.kind == "CONSTRAIN")
    entries = live._run_all(spark, workload, workload.files(60, 60, files=4, seed=1))
    assert [entry.rows.read for entry in entries] == [60] * 4
    assert live._period(entries) > 0
    latencies = live._latencies(spark, workload, rate=100, seconds=1.0, seed=1)
    assert len(latencies) == int(1.0 / live.INTERVAL)
    assert (latencies > 0).all()
