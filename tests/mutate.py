"""Breaks the kernels one line at a time and checks that a test fails: `python -m tests.mutate`.

The mutants are those of `mutants.py`. Each is applied in a copy of `src` and `tests`, never in place, and its tests run
there. First they run on the unchanged copy, where they must pass.

Kernels run as plain Python where that gives the same results, because compiling them again takes longer than the
tests. The others are compiled. Compiled kernels are named by their sources, so a mutant never uses those of the copy.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anabranch.caches import VARIABLE
from anabranch.compiled.store import UNLISTED
from tests.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src", "anabranch")
#: Seconds until a run of tests is stopped.
TIMEOUT = 400


@dataclass(frozen=True)
class Result:
    """The outcome of a run (passed, failed, timeout; broken if no test ran), its seconds and the first failed test."""

    outcome: str
    seconds: float
    failed_test: str


class Copy:
    """A copy of the sources and the tests, with the cache of compiled kernels."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def test(self, tests: Sequence[str], compiled: bool) -> Result:
        """Run tests in the copy, up to the first failure."""
        # In plain Python, hashes that overflow would warn.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:overflow"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root / "src"),
            "HYPOTHESIS_PROFILE": os.environ.get("HYPOTHESIS_PROFILE", "quick"),
            "NUMBA_DISABLE_JIT": "0" if compiled else "1",
            VARIABLE: str(self.root / "cache"),
            # A call of a kernel with new argument types is no detected error.
            UNLISTED: os.devnull,
        }
        start = time.monotonic()
        try:
            run = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=self.root, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Result("timeout", time.monotonic() - start, "")
        failed = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
        outcome = {0: "passed", 1: "failed"}.get(run.returncode, "broken")
        return Result(outcome, time.monotonic() - start, failed[1] if failed else "")

    def try_mutant(self, mutant: Mutant) -> Result:
        """Apply a mutant, run its tests, and undo it."""
        path = self.root / SOURCE / mutant.file
        text = path.read_text()
        try:
            path.write_text(mutant.apply(text))
            return self.test(mutant.tests, mutant.compiled)
        finally:
            path.write_text(text)


def check(mutants: Iterable[Mutant]) -> None:
    """Raise a ValueError for the first mutant that no longer applies to its file."""
    for mutant in mutants:
        mutant.apply((ROOT / SOURCE / mutant.file).read_text())


def main() -> int:
    """Try the mutants whose description contains one of the arguments; without arguments, all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of file names or lines")
    parser.add_argument("--check", action="store_true", help="only check that each mutant still applies")
    arguments = parser.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if not arguments.names or any(name in mutant.description for name in arguments.names)
    ]
    check(chosen)
    if arguments.check:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        return _failures_without_mutants(copy, chosen) or _survivors(copy, chosen)


def _failures_without_mutants(copy: Copy, mutants: Iterable[Mutant]) -> int:
    """Run the tests of the mutants on the unchanged copy, and return how many of the two runs failed."""
    failures = 0
    for compiled in (False, True):
        tests = sorted({test for mutant in mutants if mutant.compiled == compiled for test in mutant.tests})
        if tests:
            result = copy.test(tests, compiled)
            _report(f"unchanged, {'compiled' if compiled else 'interpreted'}", result)
            failures += result.outcome != "passed"
    return failures


def _survivors(copy: Copy, mutants: Iterable[Mutant]) -> int:
    """Try each mutant, and return how many were not killed."""
    survivors = 0
    for mutant in mutants:
        result = copy.try_mutant(mutant)
        survivors += result.outcome != "failed"
        names = {"failed": "killed", "passed": "SURVIVED"}
        _report(mutant.description, replace(result, outcome=names.get(result.outcome, result.outcome)))
    _print(f"{survivors} survived")
    return survivors


def _report(subject: str, result: Result) -> None:
    _print(f"{result.outcome:8} {result.seconds:4.0f} s  {subject}  {result.failed_test}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(min(main(), 1))
