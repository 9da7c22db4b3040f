"""Checks and explains generated and mutated workbooks: each gives a plan or one-line findings with positions, quickly.

Run as `make fuzz` or `python -m tests.fuzz.workbooks --count 100000 --seed 7`; leave it running as long as you like.
The same count and seed give the same texts, for any number of processes. The exit status is 1 if a workbook gives a
traceback, takes longer than the limit, or has a finding without a position in the text.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.errors import Finding, WorkbookError, line_starts
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from anabranch.planning.planner import Planner
from tests.fuzz.texts import new_text

#: The seconds of processor time after which a workbook of a few statements is counted as slow, and those after which
#: it is a failure.
SLOW, TIME_LIMIT = 0.1, 2.0

#: Texts that are made from one seed. Each part of a run has its own, so that parts can run anywhere.
PART = 500

#: Texts that were failures once; a test checks them.
KEPT = Path(__file__).parents[1] / "fixtures" / "fuzz"


class Hang(BaseException):
    """A workbook takes too long; nothing in the package catches it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A text that gave neither a plan nor findings with positions."""

    text: str
    reason: str


@dataclass(slots=True)
class Outcome:
    """What happened to some texts."""

    count: int = 0
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    slow: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def __iadd__(self, other: Outcome) -> Outcome:
        self.count += other.count
        self.accepted += other.accepted
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.slow += other.slow
        self.failures += other.failures
        return self

    def add(self, text: str) -> None:
        """Check a text, and count it."""
        self.count += 1
        try:
            findings, seconds = _timed(text)
            if seconds > SLOW:  # the first text of a kind also imports its modules
                findings, seconds = _timed(text)
        except Hang:
            self.failures.append(Failure(text, f"took longer than {TIME_LIMIT:g} s"))
            return
        except Exception as error:  # the error that the fuzzer looks for
            self.failures.append(Failure(text, f"{type(error).__name__}: {error}"))
            return
        self.slowest = max(self.slowest, seconds)
        if seconds > SLOW:
            self.slow.append(text)
        self.accepted += not findings
        self.refused += bool(findings)
        misplaced = [finding for finding in findings if not is_inside(text, finding) or "\n" in finding.line("w")]
        if misplaced:
            reason = f"a finding without a position in the text, or of several lines: {misplaced[0]}"
            self.failures.append(Failure(text, reason))


def _timed(text: str) -> tuple[list[Finding], float]:
    start = time.process_time()
    return checked(text), time.process_time() - start


def checked(text: str) -> list[Finding]:
    """Parse, bind, analyse and explain a workbook, and return all findings; none if it can run.

    As `anabranch check` and `anabranch explain`, without files.
    """
    with _limited():
        planner = Planner()
        try:
            workbook = parse(text)
            findings = planner.declare(workbook)
        except WorkbookError as error:
            error.report()
            if not error.findings:
                raise AssertionError("an error without findings") from error
            return error.findings
        if findings:
            WorkbookError(findings, text, "w").report()
            return findings
        if parse(unparse(workbook)) != workbook:
            raise AssertionError("parse(unparse(w)) differs from w")
        queries = planner.catalog.queries()
        for query in queries:
            str(planner.prepare(query).plan)
        return planner.objections(queries)


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `Hang` after the time limit."""

    def stop(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, TIME_LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def is_inside(text: str, finding: Finding) -> bool:
    """Whether a finding has a position in the text."""
    text = text.removeprefix("\ufeff")
    starts = line_starts(text)
    span = finding.span
    if span is None or not 1 <= span.line <= len(starts):
        return False
    end = starts[span.line] if span.line < len(starts) else len(text)
    return 1 <= span.column <= end - starts[span.line - 1] + 1


def run_part(seed: int, part: int, count: int) -> Outcome:
    """Check the texts of one part of a run."""
    rng = random.Random(f"{seed} {part}")
    outcome = Outcome()
    for _ in range(count):
        outcome.add(new_text(rng))
    return outcome


def run(count: int, seed: int, processes: int = 1) -> Iterator[Outcome]:
    """Check `count` texts, and yield the outcome of each part."""
    parts = [(seed, part, min(PART, count - PART * part)) for part in range(-(-count // PART))]
    if processes == 1:
        yield from (run_part(*part) for part in parts)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_run_part, parts)


def _run_part(part: tuple[int, int, int]) -> Outcome:
    return run_part(*part)


def main(arguments: list[str]) -> int:
    """Print every failure, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show-slow", action="store_true", help="print the texts that are slow")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    start, total = time.perf_counter(), Outcome()
    try:
        for part in run(options.count, options.seed, options.processes):
            for failure in part.failures:
                sys.stdout.write(f"{failure.reason}\n{failure.text!r}\n\n")
            if options.show_slow:
                sys.stdout.writelines(f"slow: {text!r}\n\n" for text in part.slow)
            sys.stdout.flush()
            total += part
    except KeyboardInterrupt:
        sys.stdout.write("stopped\n")
    seconds = time.perf_counter() - start
    sys.stdout.write(
        f"{total.count:,} workbooks, seed {options.seed}, {seconds:.0f} s: {total.accepted:,} accepted, "
        f"{total.refused:,} refused, {len(total.failures):,} failures; {len(total.slow):,} slower than {SLOW:g} s, "
        f"the slowest took {total.slowest:.2f} s\n"
    )
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
