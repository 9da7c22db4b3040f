"""A standalone cluster with cold caches: the executors have nothing but what the driver sends them.

Every kind of query runs in batch and as a stream, one of two workers is killed in the middle of the stream, and the
answers are those of local mode.

What a cold start consists of, with an archive of `anabranch pack`: the JVM of the driver; the driver unpacks the
archive (SparkContext.addFile does, although nothing uses it there); the JVMs of the executors; each fetches, copies and
unpacks the archive; each starts Python and loads the kernels. docs/decisions/packed-environment.md says what made it
slow. A stream needs one thing more: Spark starts Python on the driver, by the path that it has on the executors
(`anabranch/runtime/packed.py`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery.killing import Killable, micro_batches
from tests.recovery.readers import compare
from tests.recovery.workload import GROUPS, Files, Size, workbook
from tests.servers.standalone import Standalone, standalone_cluster
from tests.spark_home import SHORT_LIVED

from anabranch import Session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="archives are packed on Linux")

KINDS = ("pattern", "sequence", "relate", "monitor", "constrain")
SIZE = Size(events=1200, files=4)
#: Seconds from the start of the driver to the first answers, on a busy machine.
LONGEST_START = 180.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has a workbook with a query of each kind and its input files; drivers and executors share it."""
    folder = tmp_path_factory.mktemp("shared")
    Files(folder, KINDS, SIZE, seed=20261118).add_up_to(SIZE.files)
    (folder / "workbook.abq").write_text(workbook(KINDS))
    return folder


def is_there_an_answer(out: Path) -> bool:
    return any(out.glob("*/part-*"))


def finish(driver: Killable, cluster: Standalone) -> None:
    assert driver.end() == 0, f"{driver.log}\n{cluster.executor_logs()}"
    assert "Traceback" not in driver.log
    assert not Path(f".anabranch-{driver.process.pid}").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_every_kind_gives_the_answers_of_local_mode_and_survives_the_loss_of_a_worker(
    cluster: Standalone, folder: Path, packed: tuple[Path, str], spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    executors = f"spark.executor.extraJavaOptions={SHORT_LIVED}"
    shared = (folder / "workbook.abq", "--master", cluster.url, "--archive", packed[0], "--conf", executors)
    folders = ("--output", folder / "stream", "--checkpoint", folder / "checkpoint")
    run = ("run", *shared, "--output", folder / "batch")
    stream = ("stream", *shared, *folders, "--once", "--max-files", "1", "--buckets", "4")
    sequence = folder / "checkpoint" / GROUPS["sequence"].checkpoint
    driver = Killable(folder, *run, "then", *stream, module="tests.cluster.commands")
    try:
        driver.wait_until(lambda: is_there_an_answer(folder / "batch"))
        seconds = time.monotonic() - driver.started
        driver.wait_until(lambda: micro_batches(sequence) >= 2)
        assert micro_batches(sequence) < SIZE.files
        cluster.kill("worker-0")
        finish(driver, cluster)
    finally:
        driver.kill_rest()
    with capsys.disabled():
        sys.stdout.write(f"\nthe first answer of a cold cluster took {seconds:.1f} s\n")
    assert seconds < LONGEST_START

    session = Session(spark)
    session.execute_file(str(folder / "workbook.abq"))
    names = [name for kind in KINDS for name in GROUPS[kind].queries]
    for out in (folder / "batch", folder / "stream"):
        comparisons = compare(session, out, names, ["pyarrow"])
        assert [comparison for comparison in comparisons if not comparison.is_same] == []
        assert all(comparison.answers > 20 for comparison in comparisons), comparisons
