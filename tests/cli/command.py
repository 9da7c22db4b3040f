"""What a command did, for the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def first(self) -> str:
        """The first line on standard error."""
        return self.err.splitlines()[0]


Command = Callable[..., Outcome]
