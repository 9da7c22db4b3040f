"""The processes of a run: their processor time and their memory (only on Linux)."""

from __future__ import annotations

import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

THIS, JVM, WORKERS = "this process", "JVM", "workers"

#: Seconds between two samples of the memory; a sample reads the state of all processes of the machine.
INTERVAL = 0.25


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its seconds of processor time, with those of its ended children, and its resident memory in bytes."""

    number: int
    parent: int
    name: str
    seconds: float
    resident: int

    @property
    def role(self) -> str:
        """What the process is for Spark."""
        if self.number == os.getpid():
            return THIS
        return JVM if self.name == "java" else WORKERS


def family_of(root: int) -> list[Process]:
    """Return a process and its descendants."""
    found = [process for path in Path("/proc").glob("[0-9]*/stat") if (process := _read(path)) is not None]
    family = {root}
    while children := {process.number for process in found if process.parent in family} - family:
        family |= children
    return [process for process in found if process.number in family]


def _read(path: Path) -> Process | None:
    """Return a process from its line in /proc; None if it has ended."""
    try:
        number, rest = path.read_text().split(" (", 1)
    except OSError:
        return None
    name, rest = rest.rsplit(") ", 1)
    fields = rest.split()
    seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return Process(int(number), int(fields[1]), name, seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))


def seconds_by_role(root: int) -> defaultdict[str, float]:
    """Return the processor time of a process and its descendants, by role."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for process in family_of(root):
        seconds[process.role] += process.seconds
    return seconds


class Peak:
    """The largest resident memory of some processes together, in bytes: of all, and of each role.

    Pages that a worker shares with the process that forked it count for both.
    """

    def __init__(self) -> None:
        self.total = 0
        self.by_role: Counter[str] = Counter()

    def add(self, processes: list[Process]) -> None:
        """Add a sample."""
        sample: Counter[str] = Counter()
        for process in processes:
            sample[process.role] += process.resident
        self.total = max(self.total, sample.total())
        self.by_role |= sample


@contextmanager
def peak_memory(root: int) -> Iterator[Peak]:
    """Sample the memory of a process and its descendants while the block runs."""
    peak, done = Peak(), threading.Event()

    def sample() -> None:
        peak.add(family_of(root))
        while not done.wait(INTERVAL):
            peak.add(family_of(root))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
