"""Sessions on clusters: the Python of the executors, and a message if there are none. tests/cluster starts one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anabranch.errors import AnabranchError
from anabranch.runtime import executors
from anabranch.runtime.packed import use_archive
from anabranch.runtime.spark_mode import executor_count


def test_the_path_of_the_python_of_executors_is_that_of_the_driver_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", "another")
    (tmp_path / "env.tar.gz").touch()
    name = f".anabranch-{os.getpid()}"
    assert use_archive("env.tar.gz") == {"spark.archives": f"{tmp_path}/env.tar.gz#{name}"}
    assert os.environ["PYSPARK_PYTHON"] == f"./{name}/bin/python"
    program = "import sys; print(sys.prefix, *sys.argv[1:])"
    shown = subprocess.run(
        [os.environ["PYSPARK_PYTHON"], "-c", program, "a b"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"{sys.prefix} a b\n"
    assert use_archive("hdfs://host/env.tar.gz") == {"spark.archives": f"hdfs://host/env.tar.gz#{name}"}


def test_archives_that_cannot_be_used_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AnabranchError, match=r"there is no archive env.tgz; `anabranch pack` writes one"):
        use_archive("env.tgz")
    (tmp_path / f".anabranch-{os.getpid()}").touch()
    with pytest.raises(AnabranchError, match="--archive needs a current folder that is writable"):
        use_archive("hdfs://host/env.tgz")


def watched(monkeypatch: pytest.MonkeyPatch, master: str, count: Any) -> list[str]:
    """What is reported about a cluster with a number of executors, or with an error instead of it."""
    settings = {"spark.master": master, "spark.executor.memory": "3g", "spark.driver.host": "10.0.0.7"}

    def count_or_fail(spark: Any) -> Any:
        if isinstance(count, Exception):
            raise count
        return count

    monkeypatch.setattr(executors, "PATIENCE", 0.01)
    monkeypatch.setattr(executors, "setting_of_context", lambda spark, name: settings[name])
    monkeypatch.setattr(executors, "executor_count", count_or_fail)
    lines: list[str] = []
    before = set(threading.enumerate())
    executors.watch_executors(SimpleNamespace(), lines.append)
    for timer in set(threading.enumerate()) - before:
        timer.join()
    return lines


def test_a_cluster_without_executors_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = watched(monkeypatch, "spark://host:7077", 0)
    assert line == (
        "no executor has started after 0.01 s: spark://host:7077 has no free core or less than 3g of memory "
        "(spark.executor.memory), or its machines cannot reach this one at 10.0.0.7 (spark.driver.host); "
        "still waiting; --verbose shows Spark's log"
    )
    assert len(watched(monkeypatch, "local-cluster[1,1,1024]", 0)) == 1


@pytest.mark.parametrize(
    ("master", "count"),
    [("spark://host:7077", 2), ("spark://host:7077", None), ("spark://host:7077", ConnectionError()), ("local[2]", 0)],
)
def test_nothing_is_reported_about_other_sessions(monkeypatch: pytest.MonkeyPatch, master: str, count: Any) -> None:
    assert watched(monkeypatch, master, count) == []


def test_a_local_session_has_no_executors(spark: SparkSession) -> None:
    assert executor_count(spark) == 0
