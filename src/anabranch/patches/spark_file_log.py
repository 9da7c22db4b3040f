"""The logs in a checkpoint of Spark: which input files belong to a micro-batch that was planned and not finished.

What is patched
    Nothing is replaced. The logs `offsets`, `commits` and `sources` are read: files named by numbers, with a line for
    the version and lines of JSON.
Why
    When Spark runs such a micro-batch again after a restart, it skips input files that have been removed in the
    meantime. Their rows would be missing without a message.
Tried on
    PySpark 4.3.0.
Where it does not fit
    In logs of another form no file is found, and nothing is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol


class Files(Protocol):
    """A folder, and the folders in it."""

    def names(self, name: str = "") -> Iterator[str]:
        """The names in a folder."""

    def exists(self, name: str = "") -> bool:
        """Whether there is a file."""

    def read(self, name: str) -> bytes:
        """The content of a file."""


def unfinished_files(checkpoint: Files) -> list[str]:
    """The paths of the files of the last micro-batch that was planned, if it was not committed."""
    try:
        planned, committed = _last(checkpoint, "offsets"), _last(checkpoint, "commits")
        if planned is None or planned == committed:
            return []
        ends = _log_offsets(checkpoint, planned)
        begins = [-1] * len(ends) if committed is None else _log_offsets(checkpoint, committed)
        files = []
        for source, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            for number in range(begin + 1, end + 1):
                files += _paths(checkpoint, f"sources/{source}", number)
        return files
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _last(checkpoint: Files, log: str) -> int | None:
    return max((int(name) for name in checkpoint.names(log) if name.isdigit()), default=None)


def _lines(checkpoint: Files, name: str) -> list[Any]:
    lines = checkpoint.read(name).decode().splitlines()
    return [json.loads(line) if line != "-" else None for line in lines[1:]]


def _log_offsets(checkpoint: Files, batch: int) -> list[int]:
    """The number of the last entry in the log of each source that belongs to a micro-batch or to one before."""
    offsets = _lines(checkpoint, f"offsets/{batch}")[1:]
    return [-1 if offset is None else int(offset["logOffset"]) for offset in offsets]


def _paths(checkpoint: Files, log: str, number: int) -> list[str]:
    """The files of one entry; every tenth entry is in a file with all that came before."""
    if checkpoint.exists(f"{log}/{number}"):
        return [entry["path"] for entry in _lines(checkpoint, f"{log}/{number}")]
    entries = _lines(checkpoint, f"{log}/{number}.compact")
    return [entry["path"] for entry in entries if entry["batchId"] == number]
