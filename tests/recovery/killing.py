"""Runs commands in processes of their own, and kills them or the processes that they have started."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

#: How long to wait for a stream on a busy machine, and for its processes to end by themselves, in seconds.
TIMEOUT, END_TIMEOUT = 600, 60


class Stuck(AssertionError):
    """A stream did not do what it was waited for."""


class Killable:
    """A command in its own session, so that all processes that it starts can be found.

    Parameters
    ----------
    folder : for what it prints, and for temporary files
    arguments : of `anabranch`, or of another module
    """

    def __init__(self, folder: Path, *arguments: str | Path, module: str = "anabranch") -> None:
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        self._log_path = folder / "stderr.txt"
        self.started = time.monotonic()
        with open(self._log_path, "w") as log_file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)], stdout=log_file, stderr=log_file,
                start_new_session=True, env=os.environ | {"SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch)},
            )  # fmt: skip

    @property
    def log(self) -> str:
        """What the command has printed."""
        return self._log_path.read_text()

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait for something that the running command does."""
        deadline = time.monotonic() + TIMEOUT
        while not is_true():
            if self.process.poll() is not None:
                raise Stuck(f"the command has ended with status {self.process.returncode}: {self.log}")
            if time.monotonic() > deadline:
                raise Stuck(f"nothing happened for {TIMEOUT} s: {self.log}")
            time.sleep(0.05)

    def signal(self, number: int) -> int:
        """Send a signal to the driver, and return its exit status when it and all its processes have ended."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> int:
        """Wait for the end of the driver and of all processes that it has started; returns the exit status."""
        status = self.process.wait(TIMEOUT)
        deadline = time.monotonic() + END_TIMEOUT
        while left := processes_of(self.process.pid):
            if time.monotonic() > deadline:
                raise Stuck(f"processes were left behind: {left}; {self.log}")
            time.sleep(0.05)
        return status

    def kill(self, victim: str, rng: random.Random) -> bool:
        """Kill the driver, the JVM, a Python worker or all processes, as kill -9 does; returns whether all have ended.

        After the end of the driver or the JVM the others must end by themselves. A stream survives the loss of a
        worker, and that of a JVM which has not started Spark yet, if it restarts queries that fail.
        """
        # The JVM and the workers may not have been started yet.
        self.wait_until(lambda: bool(self._victims(victim, rng)))
        killed = self._victims(victim, rng)
        for process in killed:
            _kill(process)
        if victim == "worker" or (victim == "JVM" and self._starts_another(killed)):
            return False
        self.end()
        return True

    def _starts_another(self, killed: Collection[int]) -> bool:
        """Whether the command starts another JVM instead of ending; waits until it does one of both."""
        deadline = time.monotonic() + TIMEOUT
        while self.process.poll() is None:
            if set(self._java(processes_of(self.process.pid))) - set(killed):
                return True
            if time.monotonic() > deadline:
                raise Stuck(f"nothing happened for {TIMEOUT} s after the end of the JVM: {self.log}")
            time.sleep(0.05)
        return False

    def kill_rest(self) -> None:
        """Kill all processes that still run."""
        kill_session(self.process)

    def _victims(self, victim: str, rng: random.Random) -> list[int]:
        parents = processes_of(self.process.pid)
        if victim == "all":
            return list(parents)
        if victim == "driver":
            return [self.process.pid]
        if victim == "JVM":
            return self._java(parents)
        workers = self.workers()
        return [rng.choice(workers)] if workers else []

    def workers(self) -> list[int]:
        """The Python workers of Spark: a Python process that the JVM has started forks them."""
        parents = processes_of(self.process.pid)
        return _children(parents, _children(parents, self._java(parents)))

    def _java(self, parents: dict[int, int]) -> list[int]:
        return [child for child in _children(parents, [self.process.pid]) if _command(child) == "java"]


#: What is killed, by turns.
VICTIMS = ("driver", "JVM", "worker", "all")


def start_stream(folder: Path, *more: str) -> Killable:
    """Run the workbook of a folder as a stream, one file per micro-batch."""
    folders = ("--checkpoint", folder / "checkpoint", "--output", folder / "out")
    options = ("--max-files", "1", "--master", "local[2]", *more)
    return Killable(folder, "stream", folder / "workbook.abq", *folders, *options)


def processes_of(session: int) -> dict[int, int]:
    """The living processes of a session, with their parents."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, its_session = path.read_text().rsplit(")", 1)[1].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def kill_session(leader: subprocess.Popen) -> None:
    """Kill the first process of a session, and all others of it."""
    while left := processes_of(leader.pid):
        for process in left:
            _kill(process)
        time.sleep(0.01)
    leader.wait()


def _children(parents: dict[int, int], of: Collection[int]) -> list[int]:
    return [process for process, parent in parents.items() if parent in of]


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except FileNotFoundError:
        return ""


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def micro_batches(checkpoint: Path) -> int:
    """The number of micro-batches that Spark has committed; it removes the files of old ones."""
    commits = checkpoint / "spark" / "commits"
    if not commits.exists():
        return 0
    return max((int(name) + 1 for name in os.listdir(commits) if name.isdigit()), default=0)
