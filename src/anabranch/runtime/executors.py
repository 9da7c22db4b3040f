"""A message where a cluster gives no executors: Spark waits for them without end, and says so in its log only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from pyspark.sql import SparkSession

from anabranch.runtime.spark_mode import executor_count, setting_of_context

#: Seconds until a cluster should have started an executor. Spark's own warning comes after 15.
PATIENCE = 30.0


def print_line(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(line + "\n")


def watch_executors(spark: SparkSession, report: Callable[[str], None]) -> None:
    """Report once, from another thread, if a cluster has started no executor after a while."""
    master = setting_of_context(spark, "spark.master")
    if master is None or (master.startswith("local") and not master.startswith("local-cluster")):
        return

    def check() -> None:
        # Without the JVM, an action of the main thread fails, too, and its error is reported.
        with suppress(Exception):
            if executor_count(spark) == 0:
                report(_missing(spark, master))

    timer = threading.Timer(PATIENCE, check)
    timer.daemon = True
    timer.start()


def _missing(spark: SparkSession, master: str) -> str:
    memory = setting_of_context(spark, "spark.executor.memory") or "1g"
    driver = setting_of_context(spark, "spark.driver.host")
    return (
        f"no executor has started after {PATIENCE:g} s: {master} has no free core or less than {memory} of memory "
        f"(spark.executor.memory), or its machines cannot reach this one at {driver} (spark.driver.host); "
        "still waiting; --verbose shows Spark's log"
    )
