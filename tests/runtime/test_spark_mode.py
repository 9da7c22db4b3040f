"""The two modes of Spark: one module knows both, and the rest of the package works in either."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch.errors import AnabranchError
from anabranch.runtime import spark_mode
from anabranch.runtime.spark import make_session

SOURCES = sorted(Path(anabranch.__file__).parent.rglob("*.py"))

#: What Connect does not have. `_j...` are the objects of the JVM behind those of Python.
CLASSIC_ONLY = {"sparkContext", "SparkContext", "accumulator", "parallelize", "rdd", "_sc"}


def names_in(path: Path) -> set[str]:
    """The attributes and the imported names of a module."""
    tree = ast.parse(path.read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    return attributes | imported


def test_only_one_module_uses_what_connect_lacks() -> None:
    used = {
        path.name
        for path in SOURCES
        for name in names_in(path)
        if name in CLASSIC_ONLY or name.startswith(("_jvm", "_jdf", "_jspark"))
    }
    assert used == {"spark_mode.py"}


class RemoteSession:
    """The part of a Connect session that `spark_mode` uses."""

    def __init__(self) -> None:
        self.jobs = 0

    def range(self, end: int) -> RemoteSession:
        return self

    def selectExpr(self, expression: str) -> RemoteSession:
        return self

    def distinct(self) -> RemoteSession:
        return self

    def count(self) -> int:
        self.jobs += 1
        return 12


def test_the_cores_of_a_server_are_counted_by_one_job() -> None:
    remote = RemoteSession()
    assert spark_mode.is_connect(remote)
    assert [spark_mode.parallelism(remote) for _ in range(3)] == [12, 12, 12]
    assert remote.jobs == 1


def test_a_remote_session_needs_no_context() -> None:
    remote = RemoteSession()
    counter = pickle.loads(pickle.dumps(spark_mode.row_counter(remote)))  # noqa: S301  (as it reaches a worker)
    counter.add(3)
    assert counter.value == 0
    spark_mode.use_scheduler_pool(remote, "pool")
    spark_mode.silence(remote)
    assert spark_mode.java_view(remote) is None


def test_a_classic_session_counts_rows(spark: SparkSession) -> None:
    assert not spark_mode.is_connect(spark)
    assert spark_mode.parallelism(spark) == 2
    counter = spark_mode.row_counter(spark)

    def count(batches):
        for batch in batches:
            counter.add(batch.num_rows)
            yield batch

    spark.range(10).mapInArrow(count, "id long").collect()
    assert counter.value == 10


def test_a_missing_server_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Builder:
        def remote(self, url: str) -> Builder:
            return self

        def getOrCreate(self) -> None:
            raise RuntimeError("connection refused\nand more")

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", Builder())
    with pytest.raises(AnabranchError) as failed:
        make_session("sc://nowhere:15002")
    assert str(failed.value) == "there is no Spark Connect server at sc://nowhere:15002: connection refused"
