"""The archive of Spark's classes, with which a JVM starts faster.

Java can archive the classes that a process has loaded. A later process maps the archive into memory and does not read,
check and link twenty thousand classes again. A JVM that records its classes is slower, so no command of the user does
it: a process in the background does, once, after the first command. docs/decisions/fast-start.md has the figures.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark

from anabranch.caches import writable_cache_folder

#: Set in the process in the background: its JVM writes the archive when it exits.
WRITES = "ANABRANCH_WRITES_CLASSES"

#: Java warns about archives that it cannot use; it then starts without.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")

#: A new archive that is older than this, in seconds, is left by a process that was killed.
_ABANDONED = 600

#: Archives of other versions are removed once nothing has used them for this many seconds.
_UNUSED = 90 * 24 * 3600

#: What the process in the background runs: a query that reads a file, shuffles, and prints its answers.
_WORKBOOK = """
CREATE STREAM at KEY (who TEXT) VALUE (place TEXT) TIME t INTEGER MODEL INDEPENDENT FROM 'classes.csv';
CREATE QUERY walks AS PATTERN at(p, 'a') THEN at(p, 'b') GROUP BY p;
"""
_ROWS = "who,place,t,p\nann,a,1,0.5\nann,b,2,0.5\n"


def archive_options(java_home: Path) -> list[str]:
    """The options with which a JVM uses the archive, or writes it in the process in the background."""
    folder = writable_cache_folder("java")
    if folder is None:
        return []
    archive = folder / f"{_archive_name(java_home)}.jsa"
    _adopt_finished(archive)
    if archive.exists():
        with suppress(OSError):
            os.utime(archive)
        return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
    if WRITES in os.environ:
        _remove_unused(folder)
        return [f"-XX:ArchiveClassesAtExit={archive.with_name(f'{archive.stem}-{os.getpid()}.new')}", *_QUIET]
    return []


def write_in_background(java_home: Path) -> None:
    """Start a process of the lowest priority that writes the archive, unless one exists or is being written."""
    folder = writable_cache_folder("java")
    if folder is None or WRITES in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:  # the JVM of spark-submit
        return
    name = _archive_name(java_home)
    begun = folder / f"{name}.begun"
    with suppress(OSError):
        if time.time() - begun.stat().st_mtime > _ABANDONED:
            begun.unlink()
    with suppress(OSError):
        if (folder / f"{name}.jsa").exists():
            return
        begun.touch(exist_ok=False)
        (folder / "classes.csv").write_text(_ROWS)
        (folder / "classes.abq").write_text(_WORKBOOK)
        process = subprocess.Popen(
            [sys.executable, "-m", "anabranch", "run", str(folder / "classes.abq"), "--master", "local[1]"],
            # The Python of a cluster may not exist here.
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, WRITES: "1"}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.setpriority(os.PRIO_PROCESS, process.pid, 19)


def _adopt_finished(archive: Path) -> None:
    """Give a new archive its name once it is complete: Java writes it within seconds, in one go."""
    for new in archive.parent.glob(f"{archive.stem}-*.new"):
        with suppress(OSError):
            age = time.time() - new.stat().st_mtime
            if new.stat().st_size and age > 10:
                os.replace(new, archive)
            elif age > _ABANDONED:
                new.unlink()


def _remove_unused(folder: Path) -> None:
    for path in folder.glob("*.jsa"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _UNUSED:
                path.unlink()


def _archive_name(java_home: Path) -> str:
    """A name that changes with everything that an archive depends on: Java and the jars of Spark."""
    release = java_home / "release"
    java = release.read_text(errors="replace") if release.exists() else str(java_home)
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    content = f"{java_home}\n{java}\n{pyspark.__version__}\n{jars}\n{jars.stat().st_mtime_ns if jars.exists() else 0}"
    return f"spark-{pyspark.__version__}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
