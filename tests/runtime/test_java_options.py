"""JVM options: a process in the background writes the archive of classes, and options of the user stay as they are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anabranch.caches import VARIABLE
from anabranch.runtime import class_archive
from anabranch.runtime.java_options import java_options


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="21"')
    return home


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The environments of the processes that were started in the background, instead of the processes."""
    environments: list[Any] = []

    def start(command: list[str], env: dict[str, str], **_: Any) -> SimpleNamespace:
        environments.append(env)
        return SimpleNamespace(pid=0)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    return environments


def written(java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the JVM of the process in the background writes."""
    class_archive.write_in_background(java_home)
    with monkeypatch.context() as changed:
        changed.setattr(os, "environ", started[-1])
        options = java_options(java_home, short=False)
    (option,) = (option for option in options if option.startswith("-XX:ArchiveClassesAtExit="))
    return Path(option.partition("=")[2])


def used(options: list[str]) -> Path | None:
    names = [option.partition("=")[2] for option in options if option.startswith("-XX:SharedArchiveFile=")]
    return Path(names[0]) if names else None


def finished(path: Path, seconds_ago: float) -> None:
    """Write a file as Java does, some time ago."""
    path.write_bytes(b"archive")
    os.utime(path, (time.time() - seconds_ago,) * 2)


def test_the_archive_is_written_once_and_used_by_later_sessions(
    java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert used(java_options(java_home, short=False)) is None
    new = written(java_home, started, monkeypatch)
    class_archive.write_in_background(java_home)  # one is at work
    finished(new, seconds_ago=60)
    archive = used(java_options(java_home, short=False))
    assert archive is not None and archive.read_bytes() == b"archive"
    assert not new.exists()
    assert used(java_options(java_home, short=True)) == archive
    class_archive.write_in_background(java_home)  # it exists
    assert len(started) == 1


def test_an_archive_that_is_being_written_is_not_used(
    java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = written(java_home, started, monkeypatch)
    finished(new, seconds_ago=0)
    assert used(java_options(java_home, short=False)) is None
    assert new.exists()


def test_a_killed_process_is_repeated_and_what_it_left_is_removed(
    java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = written(java_home, started, monkeypatch)
    new.touch()
    for path in (new, *new.parent.glob("*.begun")):
        os.utime(path, (time.time() - 3600,) * 2)
    written(java_home, started, monkeypatch)
    assert len(started) == 2 and not new.exists()


def test_the_process_in_the_background_starts_no_other(
    java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    class_archive.write_in_background(java_home)
    assert started[0]["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setattr(os, "environ", started[0])
    class_archive.write_in_background(java_home)
    assert len(started) == 1


def test_another_java_has_another_archive(java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    finished(written(java_home, started, monkeypatch), seconds_ago=60)
    (java_home / "release").write_text('JAVA_VERSION="25"')
    assert used(java_options(java_home, short=False)) is None


def test_archives_that_nothing_uses_are_removed(
    java_home: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(java_home, started, monkeypatch).parent
    old = folder / "spark-4.0.0-0123.jsa"
    finished(old, seconds_ago=200 * 24 * 3600)
    (next(folder.glob("*.begun"))).unlink()
    written(java_home, started, monkeypatch)
    assert not old.exists()


def test_a_short_run_does_without_the_compiler_for_long_runs(java_home: Path) -> None:
    assert "-XX:TieredStopAtLevel=1" in java_options(java_home, short=True)
    assert "-XX:TieredStopAtLevel=1" not in java_options(java_home, short=False)


def test_options_of_the_user_are_left_alone(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xmx1g")
    assert java_options(java_home, short=True) == []


def test_without_a_writable_folder_there_is_no_archive(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.runtime.class_archive.writable_cache_folder", lambda name: None)
    assert used(java_options(java_home, short=False)) is None
    class_archive.write_in_background(java_home)
