"""Remembers what was read from local files, until the files change.

Inferring the columns of a CSV file takes Spark two jobs, and reading a relation one more. A session that runs several
queries over the same files, or one query after each edit, needs them only once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from typing import TypeVar

from anabranch.runtime.sources.files import FileInput, is_local

T = TypeVar("T")

#: A file that changed this recently could change again within the resolution of its time, with the same size.
_SETTLED_SECONDS = 1.0

Stamp = tuple[tuple[str, int, int], ...]


class UnchangedFiles:
    """Values read from files, with the paths, sizes and times that the files had."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[Stamp, object]] = {}

    def read(self, files: FileInput, key: Hashable, read: Callable[[], T]) -> T:
        """The value of `read()`; the one remembered under `key`, if the files have not changed since.

        Remote files are always read.
        """
        stamp = stamp_of(files)
        if stamp is None:
            return read()
        key = (key, files.path, tuple(sorted(files.options.items())))
        known = self._values.get(key)
        if known is not None and known[0] == stamp:
            return known[1]  # type: ignore[return-value]
        value = read()
        self._values[key] = (stamp, value)
        return value


def stamp_of(files: FileInput) -> Stamp | None:
    """The path, size and time of each file; None if they are remote, or too new to notice the next change."""
    if not is_local(files.path):
        return None
    status = [(path, os.stat(path)) for path in files.paths()]
    if any(time.time() - file.st_mtime < _SETTLED_SECONDS for _, file in status):
        return None
    return tuple((path, file.st_size, file.st_mtime_ns) for path, file in status)
