"""The benchmark of the five kinds on few rows: its files, its comparisons and its records."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from benchmarks import whole
from benchmarks.engines import make_job
from benchmarks.harness import Options
from benchmarks.processes import THIS, seconds_by_role
from benchmarks.workloads import Spec
from pyspark.sql import SparkSession

QUICK = Options(quick=True, rounds=1)


pytestmark = pytest.mark.usefixtures("cache_folder")


@pytest.mark.parametrize("kind", whole.KINDS)
def test_every_kind_has_rows_and_answers(kind: str) -> None:
    workload = whole.KINDS[kind](QUICK)
    path = workload.folder() / "rows.parquet"
    job = make_job(workload.reading(path), workload.query, workload.relations())
    assert whole.answers_in_process(workload, job, path).num_rows > 0


@pytest.mark.parametrize("kind", whole.KINDS)
def test_the_files_of_a_workload_have_the_same_rows(kind: str) -> None:
    folder = whole.KINDS[kind](QUICK).folder()
    rows = pq.read_metadata(folder / "rows.parquet").num_rows
    assert len((folder / "rows.csv").read_text().splitlines()) == rows + 1
    assert len((folder / "rows.json").read_text().splitlines()) == rows
    assert pq.read_metadata(folder / "few.parquet").num_rows == whole.FEW
    parts = sorted((folder / "stream").iterdir())
    assert len(parts) == whole.FILES
    assert sum(pq.read_metadata(part).num_rows for part in parts) == rows
    columns = [pq.read_table(part)["t"].combine_chunks().drop_null() for part in parts]
    ends = [(min(times.to_pylist()), max(times.to_pylist())) for times in columns if len(times)]
    assert all(before[1] <= after[0] for before, after in zip(ends, ends[1:], strict=False))


def test_every_format_is_compared_with_one_process(spark: SparkSession) -> None:
    workload = whole.KINDS["sequence"](QUICK)
    records = list(whole.measure(spark, workload, QUICK))
    values = {record.metric: record.value for record in records}
    ratios = {record.metric: record.ratio for record in records}
    assert values["answers, the same for all"] > 0
    for name in ("Spark, 2 cores, Parquet", "Spark, 2 cores, CSV", "Spark, 2 cores, JSON lines"):
        assert ratios[name] == pytest.approx(values[name] / values[whole.IN_PROCESS])
    assert values["rows.csv: processor time"] > 0
    assert values["rows.json: processor time"] > 0


def test_files_in_both_orders_are_compared_with_one_process(spark: SparkSession) -> None:
    records = list(whole.measure_clustered(spark, whole.KINDS["pattern"](QUICK), QUICK))
    values = {record.metric: record.value for record in records}
    ratios = {record.metric: record.ratio for record in records}
    for name in ("Spark, 2 cores, rows", "Spark, 2 cores, by key"):
        assert ratios[name] == pytest.approx(values[name] / values[whole.IN_PROCESS])
    assert values["by key: processor time, JVM"] > 0


def test_a_different_number_of_answers_is_an_error(spark: SparkSession) -> None:
    workload = whole.KINDS["sequence"](QUICK)
    fewer = replace(workload, in_process=lambda job, path: workload.in_process(job, path).slice(1))
    with pytest.raises(AssertionError, match="SEQUENCE: Spark gives"):
        list(whole.measure(spark, fewer, QUICK))


def test_processor_time_includes_this_process() -> None:
    before, start = whole.processor_time(), time.process_time()
    of_driver = seconds_by_role(os.getpid())[THIS]
    while time.process_time() - start < 0.2:
        Spec("CERTAIN", 1, 1)
    spent = whole.processor_time() - before
    assert 0 < seconds_by_role(os.getpid())[THIS] - of_driver <= spent + 0.1
    assert spent >= 0.2 - 2 / os.sysconf("SC_CLK_TCK")
