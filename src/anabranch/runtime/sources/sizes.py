"""The size of inputs, known before Spark starts."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

#: A run over this many bytes is over before the JVM's second compiler has paid for itself.
SHORT_RUN_BYTES = 1 << 20


def total_bytes(paths: Iterable[str]) -> int:
    """The size of files, of the files in folders, and of all that a pattern matches."""
    return sum(_size(match) for path in paths for match in glob.glob(path))


def _size(path: str) -> int:
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
