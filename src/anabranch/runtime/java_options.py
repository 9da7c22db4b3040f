"""Options with which Spark's JVM starts faster: an archive of its classes, and compilers that suit a short run.

Java can archive the classes that a process has loaded. A later process maps the archive into memory and does not read,
check and link twenty thousand classes again. The JVM of the first session writes the archive when it exits, after the
command has returned; the next session uses it. docs/decisions/fast-start.md has the figures.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import pyspark

from anabranch.caches import writable_cache_folder

#: Without C2, the compiler for long runs, and with the collector for one core. Java then has a small cache for compiled
#: code, so it is enlarged. The first compiler (C1) starts earlier.
_SHORT_RUN = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC", "-Xmn256m")

#: Java does not check the bytecode of Spark's jars, as it does not check that of its own classes. An archive is used
#: only with the setting that it was written with, so all sessions have the same. Java ignores an option that it lacks.
_TRUSTED_JARS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

#: Java warns about archives that it cannot use; it then starts without.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")

_WRITE = "-XX:ArchiveClassesAtExit="

#: A new archive that is older than this, in seconds, is left by a process that was killed.
_ABANDONED = 600

#: Archives of other versions are removed once nothing has used them for this many seconds.
_UNUSED = 90 * 24 * 3600


def java_options(java_home: Path, short: bool) -> list[str]:
    """The options for a JVM; none where the user sets JVM options through the environment.

    Parameters
    ----------
    java_home : Path
        The Java that is started.
    short : bool
        Whether the run is short, because its inputs are small.
    """
    if "SPARK_SUBMIT_OPTS" in os.environ:
        return []
    options = [*_TRUSTED_JARS, *(_SHORT_RUN if short else ())]
    folder = writable_cache_folder("java")
    if folder is not None:
        options += _archive_options(folder, folder / f"{_archive_name(java_home)}.jsa")
    return options


def writes_archive(options: list[str]) -> bool:
    """Whether a JVM with these options writes the archive when it exits."""
    return any(option.startswith(_WRITE) for option in options)


def _archive_options(folder: Path, archive: Path) -> list[str]:
    if not archive.exists():
        _adopt_finished(folder, archive)
    if archive.exists():
        with suppress(OSError):
            os.utime(archive)
        return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
    if any(folder.glob(f"{archive.stem}-*.new")):
        return []
    _remove_unused(folder)
    return [f"{_WRITE}{archive.with_name(f'{archive.stem}-{os.getpid()}.new')}", *_QUIET]


def _adopt_finished(folder: Path, archive: Path) -> None:
    """Give a new archive its name once it is complete: Java writes it within seconds, in one go."""
    for new in folder.glob(f"{archive.stem}-*.new"):
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
