"""Runs commands in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.command import Command, Outcome

from anabranch.cli import progress
from anabranch.cli.main import main


@pytest.fixture
def anabranch(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process; it uses the Spark session of the tests, if there is one."""

    # On a slow machine, the first line of an error must still be the first.
    monkeypatch.setattr(progress, "LINE_EVERY", 3600.0)

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["anabranch", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit_info:
            main()
        printed = capfd.readouterr()
        assert "Traceback" not in printed.err
        return Outcome(exit_info.value.code, printed.out, printed.err)

    return run
