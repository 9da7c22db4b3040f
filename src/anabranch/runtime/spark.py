"""The Spark session of Anabranch: this Python for the workers, times in UTC, state in RocksDB, no log output."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from anabranch.errors import AnabranchError
from anabranch.machine import usable_memory
from anabranch.patches.stderr_redirect import stderr_to_file
from anabranch.runtime.class_archive import write_in_background
from anabranch.runtime.executors import print_line, watch_executors
from anabranch.runtime.java import ensure_java
from anabranch.runtime.java_options import java_options
from anabranch.runtime.spark_mode import silence

#: The module that starts the Python workers of an own session.
DAEMON = "anabranch.runtime.daemon"

#: Settings that a stream needs, even on a session of the user.
STREAM_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A stream without new rows lists its input files after every delay (`execution.polling_delay`). For more than 32
    # files, Spark would start a job each time, with a task for each file.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
}

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Shuffles are small, with one Arrow blob per bucket; most of Spark's 200 default partitions would be empty.
    "spark.sql.shuffle.partitions": "4",
    **STREAM_SETTINGS,
    # Workers are forked from a daemon that has the kernels loaded. Spark starts another daemon for every environment,
    # and sets no SPARK_SIMPLIFIED_TRACEBACK for stateful workers: setting it for all keeps one daemon.
    "spark.python.daemon.module": DAEMON,
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
}

#: What is shuffled on this machine stays on it. Packets hardly become smaller: compressing them takes a third of the
#: time of the shuffle.
_LOCAL_SETTINGS = {"spark.shuffle.compress": "false"}


def make_session(
    master: str | None = None,
    verbose: bool = False,
    short: bool = False,
    settings: Mapping[str, str] | None = None,
    report: Callable[[str], None] = print_line,
) -> SparkSession:
    """A new session, or the active one with its settings unchanged.

    Parameters
    ----------
    master : str, optional
        The Spark master URL, or that of a Spark Connect server (`sc://host:port`). The default is SPARK_REMOTE, Spark's
        own default, or all cores of this machine.
    verbose : bool
        Keep Spark's logging. Otherwise the output of its JVM goes to a temporary file.
    short : bool
        Whether the run is short: the JVM then starts faster, and is slower in the long run.
    settings : mapping, optional
        Further Spark settings; they take precedence over those of this package.
    report : callable
        Gets a line if a cluster starts no executors.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    remote = master if master and master.startswith("sc://") else os.environ.get("SPARK_REMOTE")
    stated = settings or {}
    if remote:
        return _connect(remote, stated)
    java_home = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("anabranch")
    if master is not None:
        builder = builder.master(master)
    local = _LOCAL_SETTINGS if (master or "local").startswith("local") else {}
    for name, value in {**_SETTINGS, **local, "spark.driver.memory": _driver_memory(), **stated}.items():
        builder = builder.config(name, value)
    if java_home is not None and "spark.driver.extraJavaOptions" not in stated:
        options = java_options(java_home, short)
        builder = builder.config("spark.driver.extraJavaOptions", " ".join(f'"{option}"' for option in options))
        if options:
            atexit.register(write_in_background, java_home)
    spark = builder.getOrCreate() if verbose else _start_quietly(builder)
    watch_executors(spark, report)
    return spark


def _start_quietly(builder: SparkSession.Builder) -> SparkSession:
    """Start Spark without its log."""
    with stderr_to_file() as log:
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise AnabranchError(f"Spark did not start: {_last_line(log) or error}; --verbose shows its log") from error
    silence(spark)
    # These print exceptions that are raised anyway.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    return spark


def _connect(remote: str, settings: Mapping[str, str]) -> SparkSession:
    """A session on a Spark Connect server, with the settings of the server and those stated for the session."""
    builder = SparkSession.builder.remote(remote)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise AnabranchError(f"there is no Spark Connect server at {remote}: {str(error).splitlines()[0]}") from error


def _driver_memory() -> str:
    """A quarter of the memory, 1 to 8 GiB: in local mode, the JVM of the driver has the shuffled packets."""
    return f"{min(max((usable_memory() >> 20) // 4, 1024), 8192)}m"


@contextmanager
def with_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set SQL settings temporarily; a stream keeps those that it was started with."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)


def _last_line(log: Path) -> str:
    """The last line of the log that is not a warning."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith("WARNING")), "")
