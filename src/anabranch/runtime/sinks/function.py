"""Answers as frames that a function of the user's takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.runtime.streaming import Output, Sink, to_frame


def to_function(function: Callable[[DataFrame, int], None]) -> Output:
    """An output that calls a function with the answers of each micro-batch, and its number."""

    def call(spark: SparkSession, answers: pa.Table, rejected: pa.Table, batch: int) -> int:
        function(to_frame(spark, answers), batch)
        return answers.num_rows

    def sink(owner: str, job: Any, n_queries: int) -> Sink:
        return call

    return sink
