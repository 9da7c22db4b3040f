"""Commands in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.command import Command, Outcome

from anabranch.cli.main import main


@pytest.fixture
def anabranch(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process; Spark is the session of the tests, where one runs."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["anabranch", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return Outcome(left.value.code, said.out, said.err)

    return run
