"""Spark for the tests, without the copy of its Python sources that it keeps in an archive.

A Python process that Spark starts takes these before the installed ones, and compiles them each time: most of a second.
There is one such process for each session and each start of a stream, and the tests start hundreds.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

import pyspark


def without_archives() -> str:
    """A folder that has Spark's programs and libraries, but no Python; it lasts as long as this process."""
    home = tempfile.mkdtemp(prefix="anabranch-spark-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name in ("bin", "sbin", "jars", "data"):
            (Path(home) / part.name).symlink_to(part)
    return home
