"""Spark SQL over a view of the file, on the same Spark as Anabranch."""

from __future__ import annotations

from collections.abc import Callable

from protocol import answer
from pyspark.sql import SparkSession


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that runs the SQL of a request."""
    spark = (
        SparkSession.builder.master(f"local[{request['cores']}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", request["cores"])
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    if request["path"].endswith(".csv"):
        events = spark.read.csv(request["path"], schema=request["schema"], header=True)
    else:
        events = spark.read.parquet(request["path"])
    events.createOrReplaceTempView("events")
    return lambda: list(spark.sql(request["sql"]).first())


answer(make)
