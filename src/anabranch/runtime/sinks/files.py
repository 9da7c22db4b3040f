"""Answers as files that every reader may read at any time.

A micro-batch becomes one file, written aside and renamed into place: a reader sees all of it or nothing, and a batch
that Spark replays after a failure replaces its own file, so no answer is lost or there twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from anabranch.errors import AnabranchError, DataError
from anabranch.runtime.sources.files import is_local, local_folder
from anabranch.runtime.spark import with_settings
from anabranch.runtime.streaming import Sink, to_frame
from anabranch.transport.operator import FINAL

FORMATS = ("parquet", "csv", "json")

#: Says which checkpoint an output folder belongs to.
_OWNER = "_checkpoint"


def write_whole(frame: DataFrame, folder: str, file_format: str) -> None:
    """Write the answers of a batch run to a folder, in the place of what was there, but never of a stream's."""
    if (Path(folder) / _OWNER).exists():
        raise DataError(f"{folder} holds the answers of a stream; use another output folder")
    # Spark's own current folder is that of its start.
    _save(frame, file_format, os.path.abspath(folder) if is_local(folder) else folder)


def _save(frame: DataFrame, file_format: str, folder: str) -> None:
    if file_format == "csv":
        frame = _without_structs(frame)
    writer = frame.write.format(file_format).mode("overwrite")
    if file_format == "csv":
        writer = writer.option("header", "true")
    # Spark's default, INT96, is read by others as a time without a zone.
    with with_settings(frame.sparkSession, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        writer.save(folder)


def _without_structs(frame: DataFrame) -> DataFrame:
    """The frame with a column `a.key` for each field of a struct `a`, and arrays as JSON: CSV has neither."""
    columns = []
    for field in frame.schema.fields:
        column = F.col(f"`{field.name}`")
        if isinstance(field.dataType, StructType):
            columns += [column[name].alias(f"{field.name}.{name}") for name in field.dataType.names]
        elif isinstance(field.dataType, ArrayType):
            columns.append(F.to_json(column).alias(field.name))
        else:
            columns.append(column)
    return frame.select(*columns)


class AnswerFiles:
    """The answers of a stream as files, a folder for each of its queries; what is set aside lies beside the first.

    Parameters
    ----------
    folders : str
        Local or shared ones, one a query.
    file_format : 'parquet', 'csv' or 'json'
    """

    def __init__(self, folders: Sequence[str], file_format: str) -> None:
        if file_format not in FORMATS:
            raise AnabranchError(f"there is no format {file_format}; there are {', '.join(FORMATS)}")
        self._folders = [local_folder(folder) for folder in folders]
        self._format = file_format

    def __call__(self, owner: str, job: Any, n_queries: int) -> Sink:
        """The sink of a stream that may use the folders: see `streaming.Output`."""
        for folder in self._folders:
            claim(folder, owner)
        files = [_BatchFiles(folder, self._format) for folder in self._folders]

        def write(spark: SparkSession, answers: pa.Table, rejected: pa.Table, batch: int) -> int:
            if rejected.num_rows:
                folder, name = os.path.split(self._folders[0])
                _BatchFiles(os.path.join(folder, "_quarantine", name), "json").write(spark, rejected, batch)
            if n_queries == 1:
                return self._write(files[0], spark, answers, batch)
            # A query without answers needs no file, unless a batch is replayed that had some: the answers are the same.
            present = pc.unique(answers["query"]).to_pylist()
            return sum(files[each].write(spark, job.answers_in(answers, each), batch) for each in present)

        return write

    def _write(self, files: _BatchFiles, spark: SparkSession, answers: pa.Table, batch: int) -> int:
        """The answers of the only query; those that are not final yet are written to a folder of their own."""
        if "status" not in answers.column_names:
            return files.write(spark, answers, batch)
        final = pc.is_in(answers["status"], value_set=pa.array(FINAL))
        provisional = answers.filter(pc.invert(final))
        if provisional.num_rows:
            aside = _BatchFiles(os.path.join(self._folders[0], "_provisional"), self._format)
            aside.write(spark, provisional, batch)
        return files.write(spark, answers.filter(final), batch)


class _BatchFiles:
    """A folder with one file a micro-batch."""

    def __init__(self, folder: str, file_format: str) -> None:
        self._folder = Path(folder).absolute()
        self._format = file_format
        self._folder.mkdir(parents=True, exist_ok=True)
        # What a killed run left half-written is never read, and never needed.
        shutil.rmtree(self._folder / "_staging", ignore_errors=True)

    def write(self, spark: SparkSession, table: pa.Table, batch: int) -> int:
        """Put the rows of a micro-batch in place; says how many there are."""
        target = self._folder / f"part-{batch:010d}.{self._format}"
        if table.num_rows:
            staging = self._folder / "_staging" / str(batch)
            written = self._stage(spark, table, staging)
            _flush(written)
            os.replace(written, target)
            shutil.rmtree(staging.parent)
        else:
            # A batch that is replayed must leave nothing behind.
            target.unlink(missing_ok=True)
        return table.num_rows

    def _stage(self, spark: SparkSession, table: pa.Table, staging: Path) -> Path:
        """Write a file that nobody reads yet. Arrow writes Parquet as Spark does, without the time that a job takes."""
        if self._format == "parquet":
            staging.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, staging / "part.parquet")
            return staging / "part.parquet"
        _save(to_frame(spark, table).coalesce(1), self._format, str(staging))
        return next(path for path in staging.iterdir() if path.name.startswith("part-"))


def _flush(path: Path) -> None:
    """The rows are on disk before the rename is, whatever happens to the machine."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def claim(folder: str, owner: str) -> None:
    """Mark an output folder as belonging to one checkpoint, and refuse one that belongs to another.

    Files are named by micro-batch: two checkpoints writing to one folder would overwrite each other.
    """
    mark = Path(folder) / _OWNER
    Path(folder).mkdir(parents=True, exist_ok=True)
    if mark.exists() and mark.read_text() != owner:
        raise DataError(
            f"{folder} holds the answers of another checkpoint; use a new output folder, "
            "or the checkpoint they came from"
        )
    mark.write_text(owner)
