"""Runs `anabranch stream` in a process of its own, and kills it with its JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

TIMEOUT = 180


class Feeder(Protocol):
    """Adds input files, so that the stream always has work."""

    def add_up_to(self, count: int) -> None:
        """Add files until there are `count`, or no more."""


class Killable:
    """A stream in its own process group."""

    def __init__(self, folder: Path, *more: str) -> None:
        code = "from anabranch.__main__ import main; main()"
        arguments = ["stream", str(folder / "workbook.abq"), "--checkpoint", str(folder / "checkpoint")]
        arguments += ["--output", str(folder / "out"), "--max-files", "1", "--master", "local[2]", *more]
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        self._log_path = folder / "stderr.txt"
        with open(self._log_path, "w") as log_file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments], stdout=log_file, stderr=log_file, start_new_session=True,
                env=os.environ | {"SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch)},
            )  # fmt: skip

    @property
    def log(self) -> str:
        return self._log_path.read_text()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> None:
        assert self.process.wait(TIMEOUT) == 0, self.log


@contextmanager
def started(folder: Path, *more: str) -> Iterator[Killable]:
    running = Killable(folder, *more)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def micro_batches(checkpoint: Path) -> int:
    """The number of micro-batches that Spark has committed."""
    commits = checkpoint / "spark" / "commits"
    return sum(name.isdigit() for name in os.listdir(commits)) if commits.exists() else 0


def kill_after(folder: Path, checkpoint: Path, feeder: Feeder, count: int, delay: float) -> str:
    """Run the stream until `count` micro-batches are done in total, kill it after a delay, and return what it said."""
    deadline = time.monotonic() + TIMEOUT
    tick = threading.Event()
    with started(folder) as running:
        while (done := micro_batches(checkpoint)) < count:
            assert running.process.poll() is None, running.log
            assert time.monotonic() < deadline, f"only {done} micro-batches: {running.log}"
            feeder.add_up_to(done + 3)
            tick.wait(0.02)
        feeder.add_up_to(count + 3)
        tick.wait(delay)
        running.kill()
        return running.log
