"""Answers as DataFrames that are passed to a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.runtime.finishing import to_frame
from anabranch.runtime.streaming import Answers, Output, Sink


def to_function(function: Callable[[DataFrame, int], None]) -> Output:
    """An output that calls a function with the answers of each micro-batch and its number."""

    def call(spark: SparkSession, answers: Mapping[int, Answers], rejected: pa.Table, batch: int) -> int:
        rows = answers[0]
        if isinstance(rows, DataFrame):
            function(rows, batch)
            return rows.count()
        function(to_frame(spark, rows), batch)
        return rows.num_rows

    def sink(owner: str) -> Sink:
        return call

    return sink
