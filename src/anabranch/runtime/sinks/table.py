"""Answers as rows of a Spark table. A stream adds the columns `_run` and `_batch`, by which a repetition is found."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.errors import DataError
from anabranch.language import nodes
from anabranch.runtime.batch import counted
from anabranch.runtime.finishing import to_frame
from anabranch.runtime.sinks.target import AnswerWriter
from anabranch.runtime.streaming import Answers

#: The property of a table that says who writes to it: `run` or `stream`.
_OWNER = "anabranch.written_by"


class TableTarget:
    """A table, which is created if it does not exist."""

    takes_frames: ClassVar[bool] = True

    def __init__(self, target: nodes.Target) -> None:
        self._name = target.name
        options = {option.name.lower(): str(option.value) for option in target.options}
        self._format = options.get("format", "parquet")

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream."""
        return _TableWriter(self, owner)

    def write_whole(self, answers: DataFrame) -> None:
        """Write the answers of a batch run; they replace those of an earlier one, and nothing else."""
        if self._create(answers, "run"):
            return
        answers.write.insertInto(self._name, overwrite=True)

    def append(self, rows: DataFrame, is_first: bool) -> None:
        """Append the rows of a micro-batch; the first one after a start may be there already."""
        if self._create(rows, "stream"):
            return
        if is_first:
            (sample,) = rows.select("_run", "_batch").limit(1).collect()
            written = rows.sparkSession.table(self._name)
            there = written.where((F.col("_run") == sample["_run"]) & (F.col("_batch") == sample["_batch"])).count()
            n_rows = rows.count() if there else 0
            if there and there == n_rows:
                return
            if there:
                # Only formats without transactions can be left with a part.
                raise DataError(
                    f"TO TABLE '{self._name}': {there:,} of the {n_rows:,} rows of micro-batch {sample['_batch']} are "
                    f"there, because its commit was interrupted; delete those with this _batch, and start again"
                )
        rows.write.insertInto(self._name)

    def _create(self, rows: DataFrame, written_by: str) -> bool:
        """Create the table with these rows; False if it exists. Refuses a table of others, or with other columns."""
        spark = rows.sparkSession
        if not spark.catalog.tableExists(self._name):
            rows.writeTo(self._name).using(self._format).tableProperty(_OWNER, written_by).create()
            return True
        properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {self._name}").collect()}
        if properties.get(_OWNER) != written_by:
            kind = "a batch run" if written_by == "run" else "a stream"
            raise DataError(f"TO TABLE '{self._name}': the table has rows that are not of {kind}; use another table")
        if spark.table(self._name).columns != rows.columns:
            raise DataError(f"TO TABLE '{self._name}': the table has other columns than the answers; use another table")
        return False


class _TableWriter:
    """Appends each micro-batch as one file, unless it is large."""

    def __init__(self, target: TableTarget, owner: str) -> None:
        self._target, self._owner = target, owner
        self._is_first = True

    def __call__(self, spark: SparkSession, answers: Answers, batch: int) -> int:
        if isinstance(answers, DataFrame):
            rows, n_rows = counted(answers)
        else:
            rows, n_rows = to_frame(spark, answers), lambda: answers.num_rows
            if not answers.num_rows:
                return 0
        own = rows.select("*", F.lit(self._owner).alias("_run"), F.lit(batch).cast("long").alias("_batch"))
        # One file is committed as a whole, in every format.
        self._target.append(own.repartition(1), self._is_first)
        self._is_first = False
        return n_rows()
