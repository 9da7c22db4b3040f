"""The two modes of a Spark session: classic, with a JVM next to this process, and Connect, with a remote server.

Connect has no SparkContext: no accumulators, no job properties, no access to the JVM. This is the only module that uses
them (a test of the source enforces it). Every function here works in both modes.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

#: The number of cores of each server, which needs a Spark job to find out.
_remote_parallelism: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


class RowCounter:
    """Counts rows as the workers read them, for a progress bar. On Connect it stays 0: workers cannot report to it."""

    def __init__(self, accumulator: Any = None) -> None:
        self._accumulator = accumulator

    def add(self, n_rows: int) -> None:
        """Add rows, on a worker."""
        if self._accumulator is not None:
            self._accumulator.add(n_rows)

    @property
    def value(self) -> int:
        """The number of rows so far, on the driver."""
        return 0 if self._accumulator is None else self._accumulator.value


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark Connect server."""
    return not isinstance(spark, SparkSession)


def exception_module(spark: SparkSession) -> ModuleType:
    """The module of pyspark that turns an error of this session into a Python exception."""
    name = "connect" if is_connect(spark) else "captured"
    return import_module(f"pyspark.errors.exceptions.{name}")


def parallelism(spark: SparkSession) -> int:
    """How many tasks Spark runs at the same time."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    if spark not in _remote_parallelism:
        # Spark splits a range into as many partitions as it has cores.
        partitions = spark.range(1 << 20).selectExpr("spark_partition_id() AS partition").distinct()
        _remote_parallelism[spark] = partitions.count()
    return _remote_parallelism[spark]


def setting_of_context(spark: SparkSession, name: str) -> str | None:
    """A setting with which the SparkContext was started; None if there is none, and on Connect."""
    if is_connect(spark):
        return None
    value: str | None = spark.sparkContext.getConf().get(name)
    return value


def executor_count(spark: SparkSession) -> int | None:
    """How many executors have registered with the driver; None if Spark has been stopped, and on Connect."""
    context = None if is_connect(spark) else spark.sparkContext._jsc
    # The driver is listed with them.
    return None if context is None else context.sc().getExecutorMemoryStatus().size() - 1


def java_view(spark: SparkSession) -> tuple[Any, Any] | None:
    """The classes of the JVM, and the settings of Hadoop in this session; None on Connect, which has no JVM."""
    if is_connect(spark):
        return None
    return spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()


def row_counter(spark: SparkSession) -> RowCounter:
    """A counter for `Session.run`."""
    return RowCounter(None if is_connect(spark) else spark.sparkContext.accumulator(0))


def use_scheduler_pool(spark: SparkSession, name: str) -> None:
    """Run the jobs of this thread in a fair scheduler pool; a server schedules the jobs of its clients itself."""
    if not is_connect(spark):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def silence(spark: SparkSession) -> None:
    """Switch Spark's log off; the log of a server stays as it is."""
    if not is_connect(spark):
        spark.sparkContext.setLogLevel("OFF")
