"""Sessions that somebody else has set up: an ordinary one, and a client of a Spark Connect server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from tests.runtime.office import query, stream, table

from anabranch import AnabranchError, Session
from anabranch.errors import CostlySetting, WorkerError
from anabranch.runtime import readiness
from anabranch.runtime.batch import Run
from anabranch.runtime.finishing import _applied_schema
from anabranch.transport.operator import Counts

ROOT = Path(__file__).parents[2]

ANSWERS = [["2", "ann", "0.4"], ["2", "bob", "0.25"], ["3", "007", "0.25"]]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["ordinary", "connect"])
def test_another_session_gives_answers_counts_and_errors(kind: str, tmp_path: Path) -> None:
    # The workers of an ordinary session run the python3 of the PATH.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"} | {"PATH": path}
    run = subprocess.run(
        [sys.executable, "-m", "tests.runtime.on_session", kind, str(tmp_path)],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    results = json.loads(run.stdout.splitlines()[-1])
    batch, live = results["batch"], results["live"]
    assert batch["answers"] == live["answers"] == ANSWERS
    assert batch["counts"] == live["counts"] == asdict(Counts(read=7, used=6, quarantined=1, answers=3))
    assert len(batch["quarantine"]) == 1
    assert "eve,hall,soon,0.5" in batch["quarantine"][0]
    for kind_of_error, message in (batch["strict"], batch["counts of a failure"]):
        assert kind_of_error == "DataError"
        assert message.startswith("invalid row of at: a cell does not fit its column's type")
    assert live["strict"] == [
        "DataError",
        'invalid row of at: person is NULL: {"person": null, "place": "hall", "t": 1, "p": 0.5}',
    ]
    assert results["times"] == [[1767267000.0, "x", 1.0]]
    assert results["pairs"] == [["{'person': 'ann'}", "{'person': 'bob'}", "1.0"]]
    if kind == "ordinary":
        assert results["settings kept"]
        assert results["without the package"] == [
            "WorkerError",
            "Spark's Python workers cannot import anabranch; set PYSPARK_PYTHON to a Python that has anabranch before "
            "Spark starts, or send an environment with spark.archives (docs/spark.md)",
        ]


def test_counts_of_an_error_of_spark_are_one_line() -> None:
    class Failed:
        @property
        def get(self) -> dict[str, int]:
            raise PythonException("Traceback:\n  File x\nValueError: no such key")

    with pytest.raises(AnabranchError, match="^ValueError: no such key$"):
        Run(None, None, Failed(), Failed(), dict, []).counts()


@pytest.mark.parametrize(
    ("version", "large", "kind"),
    [
        ("4.1.4", "true", pa.string()),
        ("4.3.0", "false", pa.string()),
        ("4.3.0", "true", pa.large_string()),
        ("4.10.0", "true", pa.large_string()),
    ],
)
def test_results_of_pairs_have_the_arrow_types_that_spark_accepts(version: str, large: str, kind: pa.DataType) -> None:
    class Session:
        conf = {"spark.sql.execution.arrow.useLargeVarTypes": large}

    Session.version = version
    schema = pa.schema([("a", pa.struct([("key", pa.string()), ("blob", pa.binary())])), ("p", pa.float64())])
    applied = _applied_schema(Session, schema)
    assert applied.field("a").type.field("key").type == kind
    assert applied.field("a").type.field("blob").type == (
        pa.large_binary() if kind == pa.large_string() else pa.binary()
    )
    assert applied.field("p").type == pa.float64()


@pytest.fixture
def not_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of the tests is checked as one that somebody else has started."""
    monkeypatch.setattr(readiness, "_is_own", lambda spark: False)
    monkeypatch.setattr(readiness, "_ready", set())


def test_workers_that_do_not_start_are_one_line(
    spark: SparkSession, not_own: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with pytest.raises(
        WorkerError, match="^Spark's Python workers cannot run queries: .*; set PYSPARK_PYTHON"
    ) as failed:
        _office(spark).run("coffee")
    assert "\n" not in str(failed.value)


def test_workers_with_another_version_are_refused(
    spark: SparkSession, not_own: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_version", lambda: "9.9")
    with pytest.raises(WorkerError, match="workers have anabranch .*, this process has 9.9; install the same"):
        _office(spark).run("coffee")


def test_missing_packages_are_named(spark: SparkSession, not_own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_describe_worker", _without_numba)
    with pytest.raises(WorkerError, match="^Spark's Python workers cannot import numba; set PYSPARK_PYTHON"):
        _office(spark).run("coffee")


def _without_numba(batches):
    import pyarrow as pa

    for batch in batches:
        values = ["", "numba", ""]
        yield pa.record_batch([[value] * batch.num_rows for value in values], ["version", "missing", "uncompiled"])


def test_kernels_that_executors_have_to_compile_are_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.compiled.store.PACKAGED", Path("/nowhere"))
    monkeypatch.setenv("ANABRANCH_CACHE", "/nowhere")
    (described,) = readiness._describe_worker(iter([pa.record_batch([[1]], ["id"])]))
    uncompiled = described["uncompiled"][0].as_py()
    assert {"monitor", "relate"} <= set(uncompiled.split(", "))
    cluster, local = (SimpleNamespace(conf={"spark.master": master}) for master in ("spark://host:7077", "local[2]"))
    (advice,) = readiness._kernel_advice(cluster, uncompiled)
    assert advice.startswith(f"the workers have no compiled kernels of {uncompiled}, so the first queries compile them")
    assert list(readiness._kernel_advice(cluster, "")) == list(readiness._kernel_advice(local, uncompiled)) == []


def test_costly_settings_are_one_warning(spark: SparkSession, not_own: None) -> None:
    settings = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "200",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        with pytest.warns(CostlySetting) as warned:
            _office(spark).run("coffee")
        _office(spark).run("coffee")  # a second warning would be an error
    finally:
        for name in settings:
            spark.conf.unset(name)
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    (message,) = [str(warning.message) for warning in warned]
    assert message.startswith(
        "queries are slow on this Spark session: spark.sql.execution.arrow.maxRecordsPerBatch is 10"
    )
    assert "spark.sql.shuffle.partitions is 200" in message


def _office(spark: SparkSession) -> Session:
    session = Session(spark)
    session.execute(stream() + query())
    session.bind("at", spark.createDataFrame(table()))
    return session
