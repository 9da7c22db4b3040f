"""A stream whose input, checkpoint and answers are on another file system: killed, resumed, and read by others.

`viewfs` is a file system of Hadoop that Python knows nothing of. Its files are in a local folder, so that readers other
than Spark can be tried.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.recovery.killing import Killable
from tests.recovery.test_faults import until
from tests.runtime.office import query, stream, write_parquet

from anabranch.runtime import large_answers

#: The files at the start, when the stream is killed, and at the end.
FIRST, MIDDLE, ALL = range(2), range(2, 8), range(8, 10)
QUERIES = ("coffee", "often")


class Lake:
    """A workbook, and the folder that is mounted as the other file system."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.data = folder, folder / "data"
        # Hadoop keeps file systems by their name, so each has its own.
        name = f"lake-{uuid.uuid4().hex}"
        self.address = f"viewfs://{name}/data"
        self.workbook = folder / "workbook.abq"
        source = f"'{self.address}/in/' FORMAT parquet"
        self.workbook.write_text(
            stream("at", source, more="WATERMARK 2") + query() + query("often", more="GROUP BY x PER 10")
        )
        self.mount = (f"fs.viewfs.mounttable.{name}.link./data", f"file://{self.data}")
        spark.sparkContext._jsc.hadoopConfiguration().set(*self.mount)
        self.add(FIRST)

    def add(self, numbers: range) -> None:
        """Files of two people who go for coffee; a row of every third file is quarantined."""
        for number in numbers:
            t = 5 * number
            rows = [("ann", "hall", t, 0.5), ("ann", "coffee", t + 1, 0.5)]
            rows += [("bob", "hall", t, 0.9), ("bob", "coffee", t + 1, 0.8)]
            rows += [("eve", "hall", t, 1.5)] if number % 3 == 0 else []
            write_parquet(self.data / "in" / f"{number:03d}", rows)

    @property
    def streamed(self) -> list[str]:
        """The arguments of `stream`."""
        return ["stream", str(self.workbook), "--checkpoint", f"{self.address}/cp", "--output", f"{self.address}/out"]

    def part_files(self, name: str) -> list[Path]:
        return sorted((self.data / "out" / name).glob("part-*.parquet"))

    def answers(self, folder: str) -> list[str]:
        """The answers in a folder, read by Arrow without Spark."""
        return comparable(ds.dataset(self.data / folder, format="parquet").to_table().to_pylist())


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in any order, with numbers to 1e-9."""
    rounded = ({name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()} for row in rows)
    return sorted(map(str, rounded))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    yield Lake(tmp_path, spark)
    for running in spark.streams.active:
        running.stop()


def statuses(anabranch: Command, lake: Lake) -> dict[str, Any]:
    """The status of each stream. A file that is replaced is missing for a moment, so several looks may be needed."""
    for _ in range(10):
        lines = [json.loads(line) for line in anabranch("status", f"{lake.address}/cp", "--json").out.splitlines()]
        if len(lines) == len(QUERIES):
            return {line["stream"]: line for line in lines}
    raise AssertionError(f"only {lines} of {QUERIES}")


def test_a_killed_stream_on_another_file_system_resumes_and_every_reader_sees_the_answers_of_run(
    spark: SparkSession, lake: Lake, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):  # the second run replaces the answers of the first
        assert anabranch("run", lake.workbook, "--output", f"{lake.address}/batch").status == 0
    assert all((lake.data / "batch" / name / "_SUCCESS").exists() for name in QUERIES)

    setting = "=".join(("spark.hadoop." + lake.mount[0], lake.mount[1]))
    running = Killable(lake.folder, *lake.streamed, "--max-files", "1", "--master", "local[2]", "--conf", setting)
    try:
        running.wait_until(lambda: bool(lake.part_files("coffee")))
        status = statuses(anabranch, lake)
        assert status["coffee"]["process"].startswith(f"{running.process.pid} on ")
        assert status["coffee"]["folder"] == f"{lake.address}/cp/coffee"
        refused = anabranch(*lake.streamed, "--once")
        assert refused.status == 1
        assert f"the checkpoint {lake.address}/cp/coffee is used by a stream that runs (process " in refused.err
        lake.add(MIDDLE)
        running.wait_until(lambda: len(lake.part_files("coffee")) >= 3)
        running.kill("all", random.Random(1))
    finally:
        running.kill_rest()
    n_killed = len(lake.part_files("coffee"))
    assert n_killed < len(FIRST) + len(MIDDLE) - 1, "it was killed in the middle"

    # This process resumes, with answers that stay with the executors.
    lake.add(ALL)
    with monkeypatch.context() as patch:
        patch.setattr(large_answers, "MOST_ROWS", 0)
        resumed = anabranch(*lake.streamed, "--once", "--max-files", "1")
        assert resumed.status == 0, resumed.err
    assert len(lake.part_files("coffee")) > n_killed
    assert anabranch("run", lake.workbook, "--output", f"{lake.address}/batch").status == 0

    for name in QUERIES:
        expected = lake.answers(f"batch/{name}")
        assert len(expected) >= len(MIDDLE)
        assert lake.answers(f"out/{name}") == expected
        by_spark = spark.read.parquet(f"{lake.address}/out/{name}").toArrow().to_pylist()
        assert comparable(by_spark) == expected
        one_by_one = [row for file in lake.part_files(name) for row in pq.read_table(file).to_pylist()]
        assert comparable(one_by_one) == expected
        quarantined = [
            json.loads(line)
            for file in (lake.data / "out" / "_quarantine" / name).glob("part-*.json")
            for line in file.read_text().splitlines()
        ]
        assert len(quarantined) == len({row["row"] for row in quarantined}) == 4
    left = {path.name for path in (lake.data / "out").rglob("*") if path.name[0] != "."}
    assert not {"_staging", "_temporary"} & left

    until(lambda: "runs" not in anabranch("status", f"{lake.address}/cp").out, "the lease was not released")
    assert anabranch("status", f"{lake.address}/cp/coffee", "--check").status == 1
    state = anabranch("state", f"{lake.address}/cp")
    assert state.status == 0
    assert re.match(r"coffee: \d+ buckets, ", state.out)
    taken = anabranch("run", lake.workbook, "--output", f"{lake.address}/out")
    assert taken.status == 1
    assert f"{lake.address}/out/coffee holds the answers of a stream; use another output folder" in taken.err
    (lake.data / "others" / "coffee").mkdir(parents=True)
    (lake.data / "others" / "coffee" / "report.txt").write_text("mine")
    other = anabranch("run", lake.workbook, "--output", f"{lake.address}/others")
    assert "holds files that are not answers; use another output folder" in other.err
    assert not Path("viewfs:").exists()
