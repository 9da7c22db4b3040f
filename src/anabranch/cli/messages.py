"""Messages on standard error, and exit statuses."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from enum import Enum

from anabranch.errors import AnabranchError

FAILED, WRONG = 1, 2


class RunFailed(AnabranchError):
    """A failed run, as one line with the location of its query; `reason` is the error without the location."""

    def __init__(self, message: str, reason: AnabranchError) -> None:
        super().__init__(message)
        self.reason = reason


class LogFormat(Enum):
    """How messages are printed."""

    TEXT = "text"
    JSON = "json"


_format = LogFormat.TEXT


def set_format(log_format: LogFormat) -> None:
    """Print all messages of this process in a format from now on."""
    global _format
    _format = log_format


def say(text: str, stream: str | None = None) -> None:
    """Print a message on standard error, without markup or wrapping; as JSON with the name of its stream, if any."""
    text = text.rstrip("\n")
    if _format is LogFormat.JSON:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"at": at, "stream": stream, "message": text})
    print_line(text)


def print_line(line: str) -> None:
    """Print a line on standard error as it is."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
