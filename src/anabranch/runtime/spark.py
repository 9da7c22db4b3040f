"""A Spark session as Anabranch wants it: workers on this Python, times in UTC, state in RocksDB, a quiet log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from anabranch.errors import AnabranchError
from anabranch.patches.stderr_redirect import stderr_to_file
from anabranch.runtime.java import ensure_java

#: What a stream needs of any session, also of one that the user brings.
STREAM_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # One blob of Arrow per bucket makes shuffles small; Spark's default of 200 partitions would be mostly empty tasks.
    "spark.sql.shuffle.partitions": "4",
    **STREAM_SETTINGS,
    # Workers are forked from a daemon that has the kernels loaded already. Spark tells those that keep state nothing of
    # simple tracebacks, and starts one more daemon for another environment: so the environment tells all of them.
    "spark.python.daemon.module": "anabranch.runtime.daemon",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
}


def make_session(master: str | None = None, verbose: bool = False, **settings: str) -> SparkSession:
    """A new session, or the one that runs already (its settings are then left as they are).

    Parameters
    ----------
    master : str, optional
        A cluster's address. The default is Spark's own choice, or all cores of this machine.
    verbose : bool
        Let Spark log as it likes; otherwise what its JVM prints goes to a file that is removed in the end.
    settings : str
        Further Spark settings, with `__` for the dots of a name.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("anabranch")
    if master is not None:
        builder = builder.master(master)
    for name, value in {**_SETTINGS, "spark.driver.memory": _driver_memory()}.items():
        builder = builder.config(name, value)
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    if verbose:
        return builder.getOrCreate()
    with stderr_to_file() as log:
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise AnabranchError(f"Spark did not start: {_last_line(log) or error}; --verbose shows its log") from error
    spark.sparkContext.setLogLevel("OFF")
    # These print an exception that is raised anyway, and said in one line where it is caught.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    return spark


def _driver_memory() -> str:
    """A quarter of the machine's memory, within reason: in local mode the driver's JVM holds the shuffled packets."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return f"{min(max(total // 4, 1024), 8192)}m"


@contextmanager
def with_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set SQL settings for a while; a stream keeps those it was started with."""
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
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
