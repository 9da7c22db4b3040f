"""What a running system meets: full disks, missing permissions, vanished and damaged files, two streams at once.

Each failure is one line with the location of the query, the reason and what to do. When the cause is gone, the same
command goes on, and every answer is written once.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command, Outcome
from tests.recovery.disks import fill, mounted, remount
from tests.runtime.office import ANSWERS, ROWS, query, same, stream, write_csv, write_parquet, written

WORKBOOK = stream("at", "'in/*.parquet'", more="WATERMARK 2") + query()


@dataclass
class Office:
    """A workbook, its input, its checkpoint and its output, used by commands."""

    folder: Path
    anabranch: Command

    def __post_init__(self) -> None:
        self.workbook = self.folder / "w.abq"
        self.workbook.write_text(WORKBOOK)
        self.checkpoint, self.out = self.folder / "cp" / "coffee", self.folder / "out" / "coffee"
        write_parquet(self.folder / "in" / "1.parquet", ROWS[:3])

    def add_the_rest(self) -> None:
        write_parquet(self.folder / "in" / "2.parquet", ROWS[3:])

    def stream(self, *more: str | Path) -> Outcome:
        """Process the input that is there."""
        arguments = ("--checkpoint", self.folder / "cp", "--output", self.folder / "out", *more)
        return self.anabranch("stream", self.workbook, *arguments)

    def refused(self, *more: str | Path) -> str:
        """The one line of a stream that fails, without the location of the query."""
        outcome = self.stream("--once", *more)
        assert outcome.status == 1, outcome.err
        (line,) = [line for line in outcome.err.splitlines() if ": coffee failed: " in line]
        assert outcome.err.splitlines() == [line], outcome.err
        assert line.startswith(f"{self.workbook}:2:1: ")
        return line.split(": coffee failed: ")[1]

    def finish(self) -> None:
        """Process everything; the answers are those of `run`."""
        outcome = self.stream("--once")
        assert outcome.status == 0, outcome.err
        assert same(written(self.out), ANSWERS)
        assert {path.name for path in self.out.iterdir() if path.suffix != ".parquet"} <= {"_checkpoint"}


@pytest.fixture
def office(spark: SparkSession, tmp_path: Path, anabranch: Command) -> Office:
    return Office(tmp_path, anabranch)


@pytest.fixture
def started(office: Office) -> Office:
    """An office whose stream has processed a file, and whose second file has arrived."""
    assert office.stream("--once").status == 0
    return office


# ------------------------------------------------------------ disks


def test_a_full_disk_is_one_line_and_the_stream_goes_on_when_there_is_room(office: Office) -> None:
    office.add_the_rest()
    with mounted(office.out, "size=128k"):
        fill(office.out / ".ballast")
        line = office.refused()
        assert "No space left on device" in line
        assert line.endswith("; free some space, then start again")
        assert written(office.out) == {}
        (office.out / ".ballast").unlink()
        office.finish()


def test_a_full_disk_of_the_checkpoint_is_one_line(office: Office) -> None:
    office.add_the_rest()
    with mounted(office.folder / "cp", "size=256k"):
        fill(office.folder / "cp" / ".ballast")
        line = office.refused()
        assert "No space left on device" in line
        assert line.endswith("; free some space, then start again")
        (office.folder / "cp" / ".ballast").unlink()
        remount(office.folder / "cp", "size=64m")
        office.finish()


def test_a_read_only_output_folder_is_one_line(office: Office) -> None:
    office.add_the_rest()
    with mounted(office.out, "size=1m"):
        remount(office.out, "ro")
        line = office.refused()
        assert "Read-only file system" in line
        assert line.endswith("; make the folder writable, or use another one")
        remount(office.out, "rw")
        office.finish()


# ------------------------------------------------------------ input


def forget_second_commit(office: Office) -> None:
    """Undo everything after the second micro-batch was planned, as if the machine had stopped then."""
    for folder, first in (("commits", 1), ("offsets", 2)):
        for path in (office.checkpoint / "spark" / folder).iterdir():
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= first:
                path.unlink()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_that_was_removed_before_it_was_read_is_named(office: Office, suffix: str) -> None:
    office.workbook.write_text(WORKBOOK.replace("parquet", suffix))
    write = write_csv if suffix == "csv" else write_parquet
    paths = [
        write(office.folder / "in" / f"{number} a.{suffix}", ROWS[3 * number : 3 * number + 3]) for number in (0, 1)
    ]
    (office.folder / "in" / "1.parquet").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anabranch.runtime.checkpoint.Checkpoint.end_input", lambda self: None)
        assert office.stream("--once", "--max-files", "1").status == 0
    forget_second_commit(office)
    paths[1].rename(office.folder / "kept")
    gone = f"{paths[1]} has vanished before it was read; its rows are missing. Add it again under another name"
    assert office.refused("--strict") == gone
    (office.folder / "kept").rename(office.folder / "in" / f"2.{suffix}")
    resumed = office.stream("--once")
    assert (resumed.status, resumed.first) == (0, f"coffee: {gone}")
    assert same(written(office.out), ANSWERS)


# ------------------------------------------------------------ checkpoints


def is_free(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_the_lock_of_a_stream_that_has_ended_is_released(started: Office) -> None:
    with open(started.checkpoint / "lock") as file:
        until(lambda: is_free(file), "the lock is still held")


def test_the_checkpoint_of_an_older_workbook_or_version_is_refused(started: Office) -> None:
    started.workbook.write_text(WORKBOOK.replace("'coffee'", "'room'"))
    line = started.refused()
    assert line.startswith(f"the checkpoint {started.checkpoint} belongs to another query, or to an earlier version")
    assert line.endswith("; start with a new checkpoint folder")
    started.workbook.write_text(WORKBOOK)
    manifest = started.checkpoint / "anabranch.json"
    document = json.loads(manifest.read_text())
    del document["checksum"]
    manifest.write_text(json.dumps(document | {"format": 0}))
    line = started.refused()
    assert line.startswith(f"the checkpoint {started.checkpoint} has format 0, this version reads ")
    assert line.endswith("; start with a new checkpoint folder")


def newest_state_files(office: Office) -> list[Path]:
    """The files that Spark reads the state of the last micro-batch from."""
    files = [
        path for path in (office.checkpoint / "spark" / "state").rglob("*") if path.suffix in (".changelog", ".zip")
    ]
    last = max(int(path.stem.split("_")[0]) for path in files)
    return [path for path in files if int(path.stem.split("_")[0]) == last]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_truncated_state_is_refused(started: Office, share: float) -> None:
    started.add_the_rest()
    for path in newest_state_files(started):
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
    before = written(started.out)
    line = started.refused()
    assert line == "the saved state of Spark is damaged; start with a new checkpoint folder"
    assert written(started.out) == before


# ------------------------------------------------------------ restarts


def until(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


class Mender(threading.Thread):
    """Adds files while one query fails, then removes the cause, waits for its answers, and stops the stream.

    It runs next to the command, which is in the main thread.
    """

    def __init__(self, office: Office, obstacle: Path) -> None:
        super().__init__(daemon=True)
        self.office, self.obstacle = office, obstacle
        self.failures: list[str] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            self._mend()
        except BaseException as error:
            self.problem = error
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    def _mend(self) -> None:
        self._add("3", ("eve", "hall", 9, 1.0), ("eve", "coffee", 10, 1.0), ("eve", "room", 20, 1.0))
        until(lambda: len(self._answers("healthy")) == 4, "the healthy query gives no answers")
        until(lambda: len(self.failures) == 2, "the other query was not restarted")
        self._add("4", ("eve", "hall", 21, 1.0), ("eve", "coffee", 22, 1.0), ("eve", "room", 30, 1.0))
        until(lambda: len(self._answers("healthy")) == 5, "the healthy query has stopped")
        assert len(self._answers("coffee")) == 3, "the other query fails"
        self.obstacle.rmdir()
        until(lambda: len(self._answers("coffee")) == 5, "the other query was not restarted")

    def _add(self, name: str, *rows: tuple) -> None:
        write_parquet(self.office.folder / "in" / f"{name}.parquet", rows)

    def _answers(self, name: str) -> dict[tuple, float]:
        return written(self.office.folder / "out" / name)


def test_a_query_that_fails_is_restarted_until_the_cause_is_gone_and_others_go_on(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.workbook.write_text(WORKBOOK + query("healthy"))
    office.add_the_rest()
    assert office.stream("--once").status == 0
    # A folder where the query writes the next file: it cannot.
    batch = max(int(path.name) for path in (office.checkpoint / "spark" / "commits").glob("[0-9]*")) + 1
    obstacle = office.out / f".part-{batch:010d}.parquet.draft"
    obstacle.mkdir()
    mender = Mender(office, obstacle)
    monkeypatch.setattr("anabranch.cli.supervision.say", lambda text, stream: mender.failures.append(text))
    mender.start()
    outcome = office.stream("--restart", "on-failure")
    mender.join()
    if mender.problem is not None:
        raise mender.problem
    assert outcome.status == 0, outcome.err
    pauses = [line.rpartition("; restarting coffee in ")[2] for line in mender.failures]
    assert pauses[:2] == ["1 s", "2 s"]
    assert all(line.startswith(f"{office.workbook}:2:1: coffee failed: ") for line in mender.failures)
