"""`anabranch doctor`: what works, what is slow, what fails, and the exit status."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

from anabranch import machine
from anabranch.cli.doctor import checks, kernels
from anabranch.cli.doctor.workers import import_package, workers
from anabranch.compiled import store
from anabranch.runtime import spark as session_start

#: A folder that nobody can create, not even root.
NOWHERE = f"{os.devnull}/folder"


def line_of(output: str, name: str) -> str:
    """The line of a check, and the advice below it."""
    found = re.search(rf"^\S+ +{name} .*\n(?: {{10,}}.*\n)?", output, re.MULTILINE)
    assert found, f"{name} is missing:\n{output}"
    return found.group()


def test_a_machine_that_runs_the_tests_has_no_failure(anabranch: Command) -> None:
    done = anabranch("doctor")
    assert (done.status, done.err) == (0, "")
    assert "FAILS" not in done.out
    for name in ("python", "packages", "java", "spark", "kernels", "cores", "memory", "disk", "host name"):
        assert re.match("ok|slow", line_of(done.out, name))
    assert re.search(r"ok +java +\d+ \(.*java, from ", done.out)


@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        ("PYSPARK_PYTHON", "no-such-python", "python", "FAILS .* PYSPARK_PYTHON is no-such-python"),
        ("PYSPARK_PYTHON", "./environment/bin/python", "python", "ok .* workers use ./environment/bin/python"),
        ("ANABRANCH_JAVA", NOWHERE, "java", "FAILS .* does not run as a Java\n +set it to a Java home"),
        ("SPARK_REMOTE", "sc://host", "java", "ok .* not needed"),
        ("SPARK_REMOTE", "sc://host", "spark", "ok .* Connect server sc://host"),
        ("SPARK_HOME", NOWHERE, "spark", "FAILS .* no bin/spark-submit\n +unset SPARK_HOME"),
        ("SPARK_LOCAL_DIRS", NOWHERE, "disk", "FAILS .*Not a directory\n +set SPARK_LOCAL_DIRS"),
        ("ANABRANCH_CACHE", NOWHERE, "cache folder", "slow .*not writable, so .* is used\n +set ANABRANCH_CACHE"),
        ("SPARK_LOCAL_IP", "127.0.0.1", "host name", "ok .*the address is set"),
    ],
)
def test_a_wrong_setting_is_reported_with_a_fix(
    anabranch: Command, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str, expected: str
) -> None:
    for other in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, value)
    done = anabranch("doctor")
    assert done.status == ("FAILS" in expected)
    assert re.match(expected, line_of(done.out, name))


def test_kernels_that_are_not_compiled_are_slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(store, "PACKAGED", tmp_path / "package")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path))
    result = kernels.kernels()
    assert (result.status.value, "monitor" in result.text) == ("slow", True)
    assert result.advice.startswith("the first query that needs them compiles them, for up to ")
    monkeypatch.setattr(tempfile, "tempdir", NOWHERE)
    monkeypatch.setenv("ANABRANCH_CACHE", NOWHERE)
    assert kernels.kernels().advice.startswith("each process compiles what it uses, every time")
    assert kernels.cache_folder().text == "no folder is writable"


def test_kernels_that_are_compiled_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "splitmix-a.kernel").write_bytes(b"")
    monkeypatch.setattr(store, "PACKAGED", tmp_path)
    monkeypatch.setattr(kernels, "missing_families", lambda families: [])
    assert kernels.kernels().text.startswith(f"compiled for this machine ({tmp_path}")


@pytest.mark.parametrize(
    ("name", "content", "check", "expected"),
    [
        ("cpu.max", "max 100000", checks.cores, "(ok|slow) "),
        ("cpu.max", "50000 100000", checks.cores, r"slow .*may use 0.5 use --master 'local\[1\]'"),
        ("memory.max", "max", checks.memory, "(ok|slow) [0-9.]+ GiB"),
        ("memory.max", f"{1 << 31}", checks.memory, "slow 2.0 GiB in this container"),
        ("memory.max", f"{1 << 29}", checks.memory, "FAILS 0.5 GiB in this container"),
        ("memory/memory.limit_in_bytes", f"{1 << 31}", checks.memory, "slow 2.0 GiB in this container"),
    ],
)
def test_limits_of_a_container_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: str, check, expected: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    result = check()
    assert re.match(expected, f"{result.status.value} {result.text} {result.advice}")


@pytest.mark.parametrize(
    ("limit", "expected"), [("max", "[1-8][0-9]{3}m"), (f"{6 << 30}", "1536m"), ("1000000", "1024m")]
)
def test_the_driver_gets_a_quarter_of_the_memory_of_its_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, expected: str
) -> None:
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert re.fullmatch(expected, session_start._driver_memory())


def test_one_core_is_slow_and_a_full_disk_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert checks.cores().status.value == "slow"
    monkeypatch.setattr(checks, "_LEAST_DISK", 1 << 62)
    assert checks.disk().status.value == "FAILS"
    monkeypatch.setattr(checks, "_LEAST_DISK", 0)
    monkeypatch.setattr(checks, "_ENOUGH_DISK", 1 << 62)
    assert checks.disk().status.value == "slow"


def test_what_the_start_of_spark_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise socket.gaierror(f"{name} is unknown")

    monkeypatch.setattr(socket, "gethostbyname", unknown)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert "SPARK_LOCAL_IP=127.0.0.1" in checks.host_name().advice
    monkeypatch.setattr(checks.tempfile, "tempdir", NOWHERE)
    assert checks.temporary_folder().status.value == "FAILS"
    missing = checks.metadata.PackageNotFoundError

    def not_installed(name: str) -> str:
        raise missing(name)

    monkeypatch.setattr(checks.metadata, "version", not_installed)
    assert checks.packages().advice.startswith("run `pip install anabranch numpy")
    assert checks.spark().advice == "run `pip install pyspark`"


def test_spark_is_started_on_request_and_a_worker_imports_the_package(
    spark: SparkSession, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = anabranch("doctor", "--spark")
    assert done.status == 0
    assert f"ok    workers           Spark {spark.version}; a worker has anabranch" in done.out
    (row,) = import_package(iter([pa.record_batch([[1]], names=["id"])]))
    assert row.to_pylist()[0]["python"] == sys.executable
    monkeypatch.setattr("anabranch.cli.doctor.workers._version", lambda: "9.9")
    assert "install anabranch 9.9 on the workers" in workers(None).advice
    monkeypatch.setattr(spark.sparkContext, "pythonExec", NOWHERE)
    failed = workers(None)
    assert failed.status.value == "FAILS"
    assert "\n" not in failed.text
