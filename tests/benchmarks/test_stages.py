"""Where the time goes, and the memory of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from benchmarks import stages, whole
from benchmarks.harness import Options
from benchmarks.processes import THIS, WORKERS, family_of, peak_memory, seconds_by_role
from benchmarks.profile import REST
from pyspark.sql import SparkSession

QUICK = Options(quick=True, rounds=1)

pytestmark = pytest.mark.usefixtures("cache_folder")


@pytest.mark.parametrize("kind", whole.KINDS)
def test_every_stage_of_every_kind_is_timed(kind: str) -> None:
    workload = whole.KINDS[kind](QUICK)
    seconds = stages.stage_seconds(workload, workload.folder() / "rows.parquet", 1)
    assert set(seconds) == set(stages.STAGES)
    timed = [stages.READ, stages.CHECK, stages.PACK, stages.DECODE, stages.KERNEL, stages.WRITE]
    assert all(seconds[stage] > 0 for stage in timed), seconds
    assert seconds[REST] < sum(seconds.values()) / 2, seconds


def test_spark_says_what_was_shuffled(spark: SparkSession) -> None:
    workload = whole.KINDS["sequence"](QUICK)
    metrics = stages.spark_metrics(spark, workload, workload.folder() / "rows.parquet", 1)
    assert metrics["processor time of JVM"][0] > 0
    assert set(stages.METRICS) <= set(metrics)


def test_processes_are_found_with_their_memory_and_time() -> None:
    program = "import time; b = bytearray(30_000_000); print(len(b), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert int(child.stdout.readline()) == 30_000_000
            with peak_memory(os.getpid()) as peak:
                time.sleep(1.0)
            assert child.pid in {process.number for process in family_of(os.getpid())}
            assert peak.by_role[WORKERS] > 30e6
            assert peak.total >= peak.by_role[THIS] + 30e6
            assert seconds_by_role(os.getpid())[THIS] > 0
        finally:
            child.kill()
