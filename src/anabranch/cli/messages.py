"""Messages on standard error, and exit statuses."""

from __future__ import annotations

import sys

from anabranch.errors import AnabranchError

FAILED, WRONG = 1, 2


class RunFailed(AnabranchError):
    """A failed run, as one line with the location of its query; `reason` is the error without the location."""

    def __init__(self, message: str, reason: AnabranchError) -> None:
        super().__init__(message)
        self.reason = reason


def say(text: str) -> None:
    """Print a line on standard error, without markup or wrapping."""
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()
