"""Ctrl-C and SIGTERM stop `run` and `stream` at any moment: one line, a known exit status, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.runtime.office import ANSWERS, query, same, stream, write_parquet, written

TIMEOUT = 180


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start a command in its own process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "anabranch", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def handles(process: int, number: int) -> bool:
    """Whether a process has set a handler for a signal."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def wait_for_the_group(group: int) -> None:
    """Wait until the JVM and the workers have ended too."""
    deadline = time.monotonic() + 30
    while is_alive(group):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.1)


@pytest.mark.spark
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_stopped_while_it_loads_says_so(number: int, status: int) -> None:
    process = start("doctor")
    deadline = time.monotonic() + TIMEOUT
    while not handles(process.pid, signal.SIGTERM):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=TIMEOUT)
    assert "Traceback" not in err
    assert process.returncode == status, err
    wait_for_the_group(process.pid)


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_that_is_stopped_resumes(number: int, tmp_path: Path) -> None:
    write_parquet(tmp_path / "in" / "1.parquet")
    (tmp_path / "w.abq").write_text(stream("at", "'in/*.parquet'") + query())
    command = ("stream", tmp_path / "w.abq", "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out")
    process = start(*command)
    commits = tmp_path / "cp" / "coffee" / "spark" / "commits" / "0"
    deadline = time.monotonic() + TIMEOUT
    while not commits.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    assert "stopping; a restarted stream resumes from the checkpoint" in err
    assert "Traceback" not in err
    wait_for_the_group(process.pid)
    resumed = start(*command, "--once")
    _, err = resumed.communicate(timeout=TIMEOUT)
    assert resumed.returncode == 0, err
    assert same(written(tmp_path / "out" / "coffee"), ANSWERS)
    assert all(pq.read_table(path).num_rows for path in (tmp_path / "out" / "coffee").glob("*.parquet"))


@pytest.mark.spark
def test_a_killed_jvm_is_one_line(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in" / "1.parquet")
    (tmp_path / "w.abq").write_text(stream("at", "'in/*.parquet'") + query())
    process = start("stream", tmp_path / "w.abq", "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out")
    commits = tmp_path / "cp" / "coffee" / "spark" / "commits" / "0"
    deadline = time.monotonic() + TIMEOUT
    while not commits.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (java,) = [int(child) for child in children if "java" in Path(f"/proc/{child}/comm").read_text()]
    os.kill(java, signal.SIGKILL)
    _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1, err
    assert "the Java process of Spark has ended" in err
    assert "Traceback" not in err
    wait_for_the_group(process.pid)
