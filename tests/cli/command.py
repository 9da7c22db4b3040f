"""The outcome of a command, for the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def first(self) -> str:
        """The first line on standard error."""
        return self.err.splitlines()[0]


Command = Callable[..., Outcome]
