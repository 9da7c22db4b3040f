"""The texts of files that are so small that the driver infers their columns, without a job of Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence

#: Files that are larger together are left to Spark, which reads them in parallel.
MOST_BYTES = 256 * 1024


def small_texts(paths: Sequence[str], extensions: tuple[str, ...]) -> list[str] | None:
    """The texts of uncompressed local files without partition columns; None if Spark must read them."""
    if not paths or not all(path.endswith(extensions) and "=" not in path for path in paths):
        return None
    try:
        return [_text(path) for path in paths] if sum(map(os.path.getsize, paths)) <= MOST_BYTES else None
    except (OSError, ValueError):
        return None


def _text(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()
