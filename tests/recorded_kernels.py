"""Fails a test run in which a kernel was called with argument types that are not compiled in advance.

All processes of the run, also Spark's workers, append such calls to one file. `anabranch/compiled/signatures.json`
lists the others; docs/testing.md says how to add to it.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from anabranch.compiled.store import UNLISTED

_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "unlisted-kernels.jsonl"


class RecordedKernels:
    """A pytest plugin: collects the calls during the run and reports them at its end."""

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="anabranch-unlisted-", suffix=".jsonl")
        os.close(handle)
        self.path = Path(name)
        os.environ[UNLISTED] = name

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a run with unlisted kernels into a failure."""
        if self.calls() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the functions, and say how to list them."""
        calls = self.calls()
        if calls:
            _KEPT.parent.mkdir(exist_ok=True)
            with _KEPT.open("a") as kept:
                kept.writelines(f"{line}\n" for line in calls)
            terminalreporter.section("kernels that are not compiled in advance")
            for line in calls:
                terminalreporter.line(line)
            terminalreporter.line(f"to add them: python -m anabranch.compiled.record {_KEPT.relative_to(Path.cwd())}")

    def pytest_unconfigure(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def calls(self) -> list[str]:
        """The recorded calls without repetitions."""
        return sorted({json.dumps(json.loads(line)) for line in self.path.read_text().splitlines()})
