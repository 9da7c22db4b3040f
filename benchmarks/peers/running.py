"""Runs the program of a contestant in a process of its own, and compares its answers with those of Anabranch.

A program answers a task several times and prints one line of JSON: the seconds of each run, and *answers*, numbers that
identify all answers: their count, and sums of their columns. The sums are part of the time, and need all columns.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.harness import Options, Record, load_records, recorder
from benchmarks.processes import Peak, peak_memory

ANABRANCH = "Anabranch"

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"

TIMEOUT = 600
"""Seconds after which a program is ended; its task is too large for it."""

TOLERANCE = 1e-6
"""The largest relative difference of two sums."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program that answers a task: its command, to which the file of the request is added, and its environment."""

    name: str
    command: Sequence[str]
    request: Mapping[str, object] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a contestant needed.

    Attributes
    ----------
    seconds, processor : the time and the processor time of each run; Flink does not tell the latter
    answers : numbers that identify the answers
    peak : of the resident memory of all processes, in bytes
    """

    seconds: list[float]
    processor: list[float]
    answers: list[float]
    peak: int

    @property
    def warm(self) -> float:
        """The median time without the first run."""
        return _warm(self.seconds)


def _warm(times: list[float]) -> float:
    return median(times[1:] or times)


class TooSlow(Exception):
    """A program did not end in time."""


def compare(task: str, workload: str, contestants: Sequence[Contestant | None], options: Options) -> Iterator[Record]:
    """Run the contestants one after the other; yield their times and memory. The first one is Anabranch.

    Raises
    ------
    AssertionError
        If the answers of a contestant differ.
    """
    record = recorder(f"peers.{task}", workload, options)
    ours: Outcome | None = None
    for contestant in contestants:
        if contestant is None:
            continue
        try:
            outcome = run(contestant)
        except TooSlow:
            yield record(f"{contestant.name}: stopped after", TIMEOUT, "s")
            continue
        ours = ours or outcome
        check_same(contestant.name, outcome.answers, ours.answers)
        baseline, ratio = (None, None) if outcome is ours else (ANABRANCH, outcome.warm / ours.warm)
        yield record(contestant.name, outcome.warm, "s", baseline, ratio)
        yield record(f"{contestant.name}: first run", outcome.seconds[0], "s")
        if outcome.processor:
            yield record(f"{contestant.name}: processor time", _warm(outcome.processor), "s")
        memory = None if outcome is ours or not ours.peak else outcome.peak / ours.peak
        yield record(f"{contestant.name}: peak memory", outcome.peak / 1e6, "MB", baseline, memory)
    if ours is not None:
        yield record("answers, the same for all", ours.answers[0], "answers")
    yield from load_records(record)


def run(contestant: Contestant) -> Outcome:
    """Run a program and sample its memory."""
    with tempfile.TemporaryDirectory(prefix="anabranch-peer-") as folder:
        command = list(contestant.command)
        if contestant.request is not None:
            path = Path(folder) / "request.json"
            path.write_text(json.dumps(contestant.request))
            command.append(str(path))
        output, peak = _output(contestant, command, Path(folder))
    result = json.loads(output.splitlines()[-1])
    return Outcome(result["seconds"], result.get("processor", []), result["answers"], peak.total)


def _output(contestant: Contestant, command: list[str], folder: Path) -> tuple[str, Peak]:
    errors = folder / "errors"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=os.environ | dict(contestant.environment)
        )
        with peak_memory(process.pid) as peak:
            try:
                output, _ = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired as error:
                process.kill()
                process.communicate()
                raise TooSlow(contestant.name) from error
    if process.returncode:
        raise RuntimeError(f"{contestant.name} did not run: {errors.read_text()[-2000:]}")
    return output, peak


def check_same(name: str, answers: Sequence[float], expected: Sequence[float]) -> None:
    """Raise AssertionError unless the answers are those of Anabranch."""
    if len(answers) != len(expected) or not all(
        math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        for one, other in zip(answers, expected, strict=True)
    ):
        raise AssertionError(f"the answers of {name} are {answers} instead of {expected}")
