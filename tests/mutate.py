"""Breaks the kernels, one line at a time, and sees whether a test notices: `python -m tests.mutate`.

The mutants are those of `mutants.py`. Each is made in a copy of `src` and `tests`, never in place, and the tests that
must notice it are run there. First they are run on the copy as it is: there they must pass.

Kernels run as plain Python where that gives the same, for to compile them anew takes longer than the
tests. Others are compiled, and not only the file that was changed: Numba's cache of a function does not notice that
another module, which the function calls, has changed.
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

from tests.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which a run of tests is given up.
PATIENCE = 400


@dataclass(frozen=True)
class Verdict:
    """What became of a run: passed, failed, timeout or broken (no test ran); its seconds; and the test that failed."""

    outcome: str
    seconds: float
    first: str


class Copy:
    """A copy of the sources and the tests, with what is compiled already."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def test(self, tests: Sequence[str], compiled: bool) -> Verdict:
        """Run some tests in the copy, up to the first failure."""
        # In plain Python, hashes that go round would warn.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:overflow"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root / "src"),
            "HYPOTHESIS_PROFILE": "quick",
            "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        }
        began = time.monotonic()
        try:
            run = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=self.root, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Verdict("timeout", time.monotonic() - began, "")
        failed = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
        outcome = {0: "passed", 1: "failed"}.get(run.returncode, "broken")
        return Verdict(outcome, time.monotonic() - began, failed[1] if failed else "")

    def try_mutant(self, mutant: Mutant) -> Verdict:
        """Break a line, run the tests that must notice, and mend it again."""
        path = self.root / "src" / "anabranch" / mutant.file
        whole, cache = path.read_text(), path.parent / "__pycache__"
        aside = cache.with_name("compiled")
        cache.mkdir(exist_ok=True)
        shutil.move(cache, aside)
        try:
            path.write_text(mutant.applied_to(whole))
            return self.test(mutant.tests, mutant.compiled)
        finally:
            times = (ROOT / "src" / "anabranch" / mutant.file).stat()
            path.write_text(whole)
            # Numba knows by the time of a file whether what it has compiled is of this file.
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            shutil.rmtree(cache, ignore_errors=True)
            shutil.move(aside, cache)


def main() -> int:
    """Try the mutants of the files whose names contain one of the arguments; all of them without any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of files, or of lines")
    parser.add_argument("--check", action="store_true", help="only see that each line is there, once")
    given = parser.parse_args()
    chosen = [each for each in MUTANTS if not given.names or any(name in each.said for name in given.names)]
    for mutant in chosen:
        mutant.applied_to((ROOT / "src" / "anabranch" / mutant.file).read_text())
    if given.check:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        return _tried_whole(copy, chosen) or _tried(copy, chosen)


def _tried_whole(copy: Copy, mutants: Iterable[Mutant]) -> int:
    """Run the tests of the mutants on what is not broken."""
    failures = 0
    for compiled in (False, True):
        tests = sorted({test for each in mutants if each.compiled == compiled for test in each.tests})
        if tests:
            verdict = copy.test(tests, compiled)
            _tell(f"unbroken, {'compiled' if compiled else 'interpreted'}", verdict)
            failures += verdict.outcome != "passed"
    return failures


def _tried(copy: Copy, mutants: Iterable[Mutant]) -> int:
    survivors = 0
    for mutant in mutants:
        verdict = copy.try_mutant(mutant)
        survivors += verdict.outcome != "failed"
        names = {"failed": "killed", "passed": "SURVIVED"}
        _tell(mutant.said, replace(verdict, outcome=names.get(verdict.outcome, verdict.outcome)))
    _say(f"{survivors} survived")
    return survivors


def _tell(what: str, verdict: Verdict) -> None:
    _say(f"{verdict.outcome:8} {verdict.seconds:4.0f} s  {what}  {verdict.first}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(min(main(), 1))
