"""Options with which Spark's JVM starts faster: an archive of its classes, and compilers that suit a short run."""

from __future__ import annotations

import os
from pathlib import Path

from anabranch.runtime.class_archive import archive_options

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
    return [*_TRUSTED_JARS, *(_SHORT_RUN if short else ()), *archive_options(java_home)]
