"""JVM options: the class archive of the first session is used by the next, and options of the user stay as they are."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from anabranch.caches import VARIABLE
from anabranch.runtime.java_options import java_options, writes_archive


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="21"')
    return home


def written(options: list[str]) -> Path:
    """The file that the options make Java write."""
    (option,) = (option for option in options if option.startswith("-XX:ArchiveClassesAtExit="))
    return Path(option.partition("=")[2])


def used(options: list[str]) -> Path | None:
    names = [option.partition("=")[2] for option in options if option.startswith("-XX:SharedArchiveFile=")]
    return Path(names[0]) if names else None


def finished(path: Path, seconds_ago: float) -> None:
    """Write a file as Java does, some time ago."""
    path.write_bytes(b"archive")
    os.utime(path, (time.time() - seconds_ago,) * 2)


def test_the_archive_of_the_first_session_is_used_by_later_ones(java_home: Path) -> None:
    new = written(java_options(java_home, short=False))
    finished(new, seconds_ago=60)
    archive = used(java_options(java_home, short=False))
    assert archive is not None and archive.read_bytes() == b"archive"
    assert not new.exists()
    assert used(java_options(java_home, short=True)) == archive


def test_an_archive_that_is_being_written_is_neither_used_nor_written_twice(java_home: Path) -> None:
    new = written(java_options(java_home, short=False))
    finished(new, seconds_ago=0)
    options = java_options(java_home, short=False)
    assert used(options) is None and not writes_archive(options)
    assert new.exists()


def test_what_a_killed_process_left_is_removed(java_home: Path) -> None:
    new = written(java_options(java_home, short=False))
    new.touch()
    os.utime(new, (time.time() - 3600,) * 2)
    written(java_options(java_home, short=False))
    assert not new.exists()


def test_another_java_has_another_archive(java_home: Path) -> None:
    finished(written(java_options(java_home, short=False)), seconds_ago=60)
    (java_home / "release").write_text('JAVA_VERSION="25"')
    assert used(java_options(java_home, short=False)) is None


def test_archives_that_nothing_uses_are_removed(java_home: Path) -> None:
    old = written(java_options(java_home, short=False)).parent / "spark-4.0.0-0123.jsa"
    finished(old, seconds_ago=200 * 24 * 3600)
    java_options(java_home, short=False)
    assert not old.exists()


def test_a_short_run_does_without_the_compiler_for_long_runs(java_home: Path) -> None:
    assert "-XX:TieredStopAtLevel=1" in java_options(java_home, short=True)
    assert "-XX:TieredStopAtLevel=1" not in java_options(java_home, short=False)


def test_options_of_the_user_are_left_alone(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xmx1g")
    assert java_options(java_home, short=True) == []


def test_without_a_writable_folder_there_is_no_archive(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.runtime.java_options.writable_cache_folder", lambda name: None)
    options = java_options(java_home, short=False)
    assert used(options) is None and not writes_archive(options)
