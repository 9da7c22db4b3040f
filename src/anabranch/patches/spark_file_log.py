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
from pathlib import Path
from typing import Any


def unfinished_files(checkpoint: Path) -> list[str]:
    """The paths of the files of the last micro-batch that was planned, if it was not committed."""
    try:
        planned, committed = _last(checkpoint / "offsets"), _last(checkpoint / "commits")
        if planned is None or planned == committed:
            return []
        ends = _log_offsets(checkpoint / "offsets" / str(planned))
        begins = [-1] * len(ends) if committed is None else _log_offsets(checkpoint / "offsets" / str(committed))
        files = []
        for source, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            for number in range(begin + 1, end + 1):
                files += _paths(checkpoint / "sources" / str(source) / str(number))
        return files
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _last(folder: Path) -> int | None:
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=None)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) if line != "-" else None for line in path.read_text().splitlines()[1:]]


def _log_offsets(path: Path) -> list[int]:
    """The number of the last entry in the log of each source that belongs to a micro-batch or to one before."""
    return [-1 if offset is None else int(offset["logOffset"]) for offset in _lines(path)[1:]]


def _paths(path: Path) -> list[str]:
    """The files of one entry; every tenth entry is in a file with all that came before."""
    number = int(path.name)
    if path.exists():
        return [entry["path"] for entry in _lines(path)]
    entries = _lines(path.with_name(f"{number}.compact"))
    return [entry["path"] for entry in entries if entry["batchId"] == number]
