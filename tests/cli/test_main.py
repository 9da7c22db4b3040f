"""The exit status of a command that a signal stops."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.command import Command

from anabranch.cli import main as command_line
from anabranch.errors import SparkEnded


@pytest.fixture(autouse=True)
def same_handler() -> Iterator[None]:
    """The tests keep their own handler of SIGTERM."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_an_error_that_sigterm_causes_is_not_a_failure(monkeypatch: pytest.MonkeyPatch, anabranch: Command) -> None:
    def app(**_: Any) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        except KeyboardInterrupt:
            raise SparkEnded("the Java process of Spark has ended") from None

    monkeypatch.setattr(command_line, "app", app)
    done = anabranch("run")
    assert (done.status, done.err) == (143, "anabranch: stopped\n")


def test_an_error_without_a_signal_is_a_failure(monkeypatch: pytest.MonkeyPatch, anabranch: Command) -> None:
    def app(**_: Any) -> None:
        raise SparkEnded("the Java process of Spark has ended")

    monkeypatch.setattr(command_line, "app", app)
    done = anabranch("run")
    assert (done.status, done.err) == (1, "anabranch: the Java process of Spark has ended\n")
