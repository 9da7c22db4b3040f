"""The search path of Spark's Python workers: import the installed PySpark, not the zip file with the same sources.

What is patched
    `sys.path` of the process that workers are forked from. Spark puts `python/lib/pyspark.zip` first.
Why
    Python cannot keep compiled bytecode for modules in a zip file, so every start of the process compiles the sources
    of PySpark again. There is one such start for each session.
Tried on
    PySpark 4.1.4 and 4.3.0.
Where it does not fit
    The zip file is only removed where it is part of an installed PySpark, which has the same sources. On a cluster
    whose Spark is installed in another way, the path stays as it is.
"""

from __future__ import annotations

from pathlib import Path

_ZIP = ("python", "lib", "pyspark.zip")


def without_zip(search_path: list[str]) -> list[str]:
    """Return a search path without the zip files of installed PySparks that it also has as packages."""
    return [entry for entry in search_path if not _is_redundant(Path(entry), search_path)]


def _is_redundant(entry: Path, search_path: list[str]) -> bool:
    if entry.parts[-3:] != _ZIP:
        return False
    package = entry.parents[2]
    return (package / "worker.py").is_file() and str(package.parent) in search_path
