"""Parses and declares mutated workbooks: each must give a tree or findings with positions, within a time limit.

Run as `python -m tests.fuzz_workbooks [count] [seed]`; the exit status is 1 if a workbook gives anything else.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import Finding, WorkbookError, line_starts
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse

WORKBOOKS = Path(__file__).parent / "fixtures" / "workbooks"

#: The longest that a workbook of a few statements may take, in seconds.
TIME_LIMIT = 2.0

_PIECE = re.compile(r"\w+|\s+|'[^']*'|[^\w\s]")
_CHARACTERS = list("()[]<>+-*/%=!,.;|'`\"\\_ \n\t09aZ&{}@#\x00\x07\ufeff\u200f\u00a0\ud800é中") + [
    "--",
    "''",
    "<>",
    "1e400",
    "٣",
]
_TOKENS = [
    "CREATE", "STREAM", "QUERY", "AS", "PATTERN", "THEN", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "NULL", "TRUE",
    "FROM", "KEY (a)", "VALUE (b)", "TIME t", "MODEL MARKOV", "ERROR -1", "THRESHOLD 2", "PER 5 AT LEAST 2 TIMES",
    "PER EPISODE ABOVE 2 GAP -1", "PER KEYS", "ORDER BY probability DESC LIMIT 0", "WITHIN 5 HOURS", "GROUP BY p",
    "MISS x 0.5", "OCCURS x 0.5", "DELAY x NORMAL(1)", "WITHOUT (x, y)", "SEMANTICS", "99999999999999999999",
    "METHOD SAMPLING", "(", ")", "[1, 2]", "_", "WITHIN(v, v)", "x.y['z']", "+<p | TRUE>",
    "INTERSECTS", "AT LEAST 0", "v*999999", "ABS(1, 2)", "'2026-01-01'", "- -1", "5 DAYS", "OPTIONS (a = 1)",
]  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """A text that gave neither a tree nor findings with positions."""

    text: str
    reason: str


def _mutations() -> list[Callable[[random.Random, list[str]], None]]:
    def delete(rng: random.Random, pieces: list[str]) -> None:
        del pieces[rng.randrange(len(pieces))]

    def duplicate(rng: random.Random, pieces: list[str]) -> None:
        at = rng.randrange(len(pieces))
        pieces.insert(at, pieces[at])

    def swap(rng: random.Random, pieces: list[str]) -> None:
        a, b = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        pieces[a], pieces[b] = pieces[b], pieces[a]

    def insert_token(rng: random.Random, pieces: list[str]) -> None:
        pieces.insert(rng.randrange(len(pieces)), f" {rng.choice(_TOKENS)} ")

    def insert_character(rng: random.Random, pieces: list[str]) -> None:
        at = rng.randrange(len(pieces))
        cut = rng.randint(0, len(pieces[at]))
        pieces[at] = pieces[at][:cut] + rng.choice(_CHARACTERS) + pieces[at][cut:]

    def delete_character(rng: random.Random, pieces: list[str]) -> None:
        at = rng.randrange(len(pieces))
        cut = rng.randrange(len(pieces[at]) or 1)
        pieces[at] = pieces[at][:cut] + pieces[at][cut + 1 :]

    def repeat(rng: random.Random, pieces: list[str]) -> None:
        at = rng.randrange(len(pieces))
        pieces[at : at + 1] = [pieces[at]] * rng.choice([2, 10, 200])

    def replace_token(rng: random.Random, pieces: list[str]) -> None:
        pieces[rng.randrange(len(pieces))] = pieces[rng.randrange(len(pieces))]

    return [delete, duplicate, swap, insert_token, insert_character, delete_character, repeat, replace_token]


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to four changes to its words and characters."""
    pieces = _PIECE.findall(text)
    mutations = _mutations()
    for _ in range(rng.choice([1, 1, 2, 4])):
        if pieces:
            rng.choice(mutations)(rng, pieces)
    return "".join(pieces)


def check(text: str) -> str:
    """The reason why parsing or declaring the text failed the check; empty if it passed."""
    start = time.perf_counter()
    try:
        try:
            workbook = parse(text)
            findings = declare(workbook, Catalog())
            if parse(unparse(workbook)) != workbook:
                return "parse(unparse(w)) differs from w"
        except WorkbookError as error:
            error.report()
            findings = error.findings
            if not findings:
                return "an error without findings"
    except Exception as error:  # the error that the fuzzer looks for
        return f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    if seconds > TIME_LIMIT:
        return f"took {seconds:.1f} s"
    misplaced = [finding for finding in findings if not _inside(text, finding) or "\n" in finding.line("w")]
    return f"a finding without a position in the text, or of several lines: {misplaced[0]}" if misplaced else ""


def _inside(text: str, finding: Finding) -> bool:
    text = text.removeprefix("\ufeff")
    starts = line_starts(text)
    span = finding.span
    if span is None or not 1 <= span.line <= len(starts):
        return False
    end = starts[span.line] if span.line < len(starts) else len(text)
    return 1 <= span.column <= end - starts[span.line - 1] + 1


def run(count: int, seed: int) -> Iterator[Failure]:
    """Check `count` mutated workbooks; the same seed gives the same texts."""
    rng = random.Random(seed)
    texts = [path.read_text(encoding="utf-8") for path in sorted(WORKBOOKS.glob("*.abq"))]
    for _ in range(count):
        text = mutated(rng.choice(texts), rng)
        reason = check(text)
        if reason:
            yield Failure(text, reason)


def main(arguments: list[str]) -> int:
    """Print every failure, and how many there were."""
    count = int(arguments[0]) if arguments else 10_000
    seed = int(arguments[1]) if len(arguments) > 1 else 0
    start = time.perf_counter()
    failures = 0
    for failure in run(count, seed):
        failures += 1
        sys.stdout.write(f"{failure.reason}\n{failure.text!r}\n\n")
    seconds = time.perf_counter() - start
    sys.stdout.write(f"{count} workbooks, seed {seed}: {failures} failures, {seconds:.0f} s\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
