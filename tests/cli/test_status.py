"""`anabranch status` shows what streams do, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.command import Command
from tests.runtime.test_stream_log import outcomes

from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.lock import FolderLock, owner_of
from anabranch.runtime.stream_log import StreamLog
from anabranch.transport.operator import Counts


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Two streams: one has complete micro-batches, the other was only started."""
    for name in ("near", "unpaid"):
        (tmp_path / name).mkdir()
        StreamLog(LocalFolder(tmp_path / name), name, Counts())
    log = StreamLog(LocalFolder(tmp_path / "near"), "near", Counts())
    log.add(3, outcomes(read=1_000, used=990, late=2, state_bytes=1_234_567), 5, 0.25, "2026-01-01 00:00:00Z")
    return tmp_path


@pytest.fixture
def running(checkpoints: Path) -> Iterator[int]:
    """Another process that has the lock of `near`; its number."""
    code = "import sys; from pathlib import Path; from anabranch.runtime.lock import FolderLock\n"
    code += "from anabranch.runtime.file_system import LocalFolder\n"
    code += "FolderLock(LocalFolder(Path(sys.argv[1]))); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(checkpoints / "near")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield process.pid


def test_the_text_says_what_each_stream_does(anabranch: Command, checkpoints: Path, running: int) -> None:
    shown = anabranch("status", checkpoints)
    assert shown.status == 0
    near, batch, total, rates, unpaid, started, nothing = shown.out.splitlines()
    assert near == f"near: runs in process {running}"
    assert batch.startswith("  micro-batch 3, 0:00:0")
    assert batch.endswith(" ago; watermark 2026-01-01 00:00:00Z; state 1.2 MB")
    assert total == "  since its start: 1,000 read, 990 used, 2 late, 5 answers, 8 waiting"
    assert rates.startswith("  last 5 minutes: ")
    assert rates.endswith(" rows/s, 0.25 s per micro-batch")
    assert unpaid == "unpaid: does not run"
    assert started.startswith("  started 0:00:0")
    assert nothing == "  since its start: 0 read, 0 used, 0 answers"


def test_json_has_a_line_per_stream(anabranch: Command, checkpoints: Path, running: int) -> None:
    near, unpaid = map(json.loads, anabranch("status", checkpoints, "--json").out.splitlines())
    assert (near["process"], near["batch"], near["watermark"]) == (str(running), 3, "2026-01-01 00:00:00Z")
    assert near["rows"]["late"] == near["total"]["late"] == 2
    assert 0 < near["rows_per_second"] <= 4_000
    assert (unpaid["process"], unpaid["batch"], unpaid["rows_per_second"]) == (None, None, None)


def test_a_log_that_is_being_replaced_leaves_the_name_of_the_stream(anabranch: Command, checkpoints: Path) -> None:
    (log,) = (path for path in (checkpoints / "unpaid").rglob("*") if path.is_file() and path.read_text().strip())
    log.write_text("")
    (unpaid,) = map(json.loads, anabranch("status", checkpoints / "unpaid", "--json").out.splitlines())
    assert (unpaid["stream"], unpaid["process"]) == ("unpaid", None)
    assert anabranch("status", checkpoints / "unpaid").out == "unpaid: does not run; no micro-batch is complete\n"


def test_a_health_check_fails_unless_all_streams_run(anabranch: Command, checkpoints: Path, running: int) -> None:
    assert anabranch("status", checkpoints, "--check").status == 1
    assert anabranch("status", checkpoints / "near", "--check").status == 0


def test_a_folder_without_streams_is_refused(anabranch: Command, tmp_path: Path) -> None:
    refused = anabranch("status", tmp_path / "nothing")
    assert refused.status == 2
    assert "has no checkpoint of a stream" in refused.err


def test_looking_at_a_lock_does_not_take_it(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    assert owner_of(folder) is None
    lock = FolderLock(folder)
    assert owner_of(folder) == str(os.getpid())
    lock.release()
    assert owner_of(folder) is None
    FolderLock(folder).release()
