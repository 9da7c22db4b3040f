"""A stream of every kind of query that is killed again and again, and restarted, until all its input has arrived."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.recovery.killing import VICTIMS, Killable, micro_batches, start_stream
from tests.recovery.workload import GROUPS, Files, Group, Size, workbook

#: How many files are ahead of the slowest query: it always has work, and the kills are spread over the input.
AHEAD = 4
#: The longest delays between a committed micro-batch, or the start, and the kill, in seconds.
_DELAY, _EARLY_DELAY = 1.5, 15.0


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill.

    Attributes
    ----------
    victim : one of `VICTIMS`
    committed : the checkpoints that had committed a micro-batch since the kill before
    first_output : the seconds from the start, or from the kill of a worker, to new answers; None if there were none
    at : when, by the monotonic clock
    """

    victim: str
    committed: frozenset[str]
    first_output: float | None
    at: float = field(default_factory=time.monotonic)


@dataclass
class Campaign:
    """The files, the kills so far, and the process that runs.

    Parameters
    ----------
    folder : for everything
    kinds : the kinds of `GROUPS`
    early_share : the share of the kills that do not wait for a committed micro-batch, and may hit the start of a stream
    """

    folder: Path
    kinds: Sequence[str]
    size: Size
    seed: int
    early_share: float = 0.1
    kills: list[Kill] = field(default_factory=list)
    starts: int = 0
    running: Killable | None = None
    #: The exit status of the stream that was killed last, and what it has printed.
    last_log: tuple[int, str] = (0, "")

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.files = Files(self.folder, self.kinds, self.size, self.seed)
        self.groups: list[Group] = [GROUPS[kind] for kind in self.kinds]
        (self.folder / "workbook.abq").write_text(workbook(self.kinds))
        self.files.add_up_to(2)

    @property
    def queries(self) -> list[str]:
        """The names of all queries."""
        return [name for group in self.groups for name in group.queries]

    def start(self, *more: str) -> Killable:
        """Start the stream, if it does not run."""
        if self.running is None:
            self.running = start_stream(self.folder, "--restart", "on-failure", *more)
            self.starts += 1
        return self.running

    def attack(self, victim: str, n_later: int) -> None:
        """Kill a process of the stream, most often after new committed micro-batches.

        `n_later` kills will follow: they are spread over the files that are left.
        """
        left = self.files.count - min(self._commits().values())
        step = 0 if self.rng.random() < self.early_share else max(1, left // (n_later + 2))
        before = self._commits()
        first_output = self.advance(step)
        time.sleep(self.rng.uniform(0, _DELAY if step else _EARLY_DELAY))
        committed = frozenset(name for name, count in self._commits().items() if count > before[name])
        running = self.start()
        if running.kill(victim, self.rng):
            self.running, self.last_log = None, (running.process.returncode, running.log)
        self.kills.append(Kill(victim, committed, first_output))

    def finish(self) -> None:
        """Stop the stream, let all files arrive, process them, and end the input."""
        if self.running is not None:
            self.stop(signal.SIGTERM)
        self.files.add_up_to(self.files.count)
        running = self.start("--once")
        status = running.end()
        self.running = None
        if status:
            raise AssertionError(running.log)

    def stop(self, number: int) -> tuple[int, str]:
        """Send a signal; returns the exit status and what was printed."""
        running, self.running = self.start(), None
        return running.signal(number), running.log

    def close(self) -> None:
        """Kill what still runs."""
        if self.running is not None:
            self.running.kill_rest()

    def advance(self, step: int) -> float | None:
        """Wait until every query has committed `step` more micro-batches; returns the seconds to new answers."""
        running = self.start()
        began = running.started if self._has_restarted else time.monotonic()
        answers, before = self._answer_files(), self._commits()
        first_output: float | None = None

        def has_advanced(by: int) -> bool:
            nonlocal first_output
            commits = self._commits()
            self.files.add_up_to(min(commits.values()) + AHEAD)
            if first_output is None and self._answer_files() > answers:
                first_output = time.monotonic() - began
            return all(commits[name] >= min(count + by, self.files.count) for name, count in before.items())

        for number in range(step):
            running.wait_until(partial(has_advanced, number + 1))
        return first_output

    @property
    def _has_restarted(self) -> bool:
        """Whether the process was started after the last kill."""
        return not self.kills or self.running is None or self.running.started > self.kills[-1].at

    def _commits(self) -> dict[str, int]:
        return {group.checkpoint: micro_batches(self.folder / "checkpoint" / group.checkpoint) for group in self.groups}

    def _answer_files(self) -> int:
        folders = [self.folder / "out" / name for name in self.queries]
        return sum(name.startswith("part-") for path in folders if path.exists() for name in os.listdir(path))


def drawn_victims(count: int, rng: random.Random, kinds: Collection[str] = VICTIMS) -> list[str]:
    """Victims in random order, about the same number of each kind."""
    victims = [list(kinds)[number % len(kinds)] for number in range(count)]
    rng.shuffle(victims)
    return victims
