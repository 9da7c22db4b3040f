"""The kinds of Spark sessions that the cases run on."""

from __future__ import annotations

import os
from collections.abc import Callable

from pyspark.sql import SparkSession

from anabranch.runtime.java import ensure_java
from anabranch.runtime.spark import make_session

#: Settings of a session that somebody else has set up, each of which could change answers if it were ignored.
ORDINARY = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}


def ordinary(master: str, **settings: str) -> SparkSession:
    """A session with its own settings, and workers that run the `python3` of the PATH."""
    ensure_java()
    os.environ.pop("PYSPARK_PYTHON", None)
    builder = SparkSession.builder.appName("somebody else's").master(master)
    for name, value in {**ORDINARY, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def connect(master: str) -> SparkSession:
    """A client of a Spark Connect server, which is started on this machine; or of a server that runs at `sc://`."""
    if master.startswith("sc://"):
        return make_session(master)
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", "python3")
    return SparkSession.builder.remote(master).getOrCreate()


SESSIONS: dict[str, Callable[[str], SparkSession]] = {"own": make_session, "ordinary": ordinary, "connect": connect}
