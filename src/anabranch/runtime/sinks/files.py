"""Answers as files that can be read at any time.

Files are written to a staging folder and renamed: a reader sees all of them or nothing. A batch run replaces the
answers of an earlier one. A micro-batch of a stream becomes one file; if Spark replays it after a failure, it replaces
its own file, so no answer is lost or duplicated. Folders with files of others are never written to.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from anabranch.binding.targets import FORMATS
from anabranch.columns.statuses import FINAL
from anabranch.errors import AnabranchError, DataError
from anabranch.runtime import atomic
from anabranch.runtime.batch import counted
from anabranch.runtime.finishing import to_frame
from anabranch.runtime.sinks.target import AnswerWriter
from anabranch.runtime.sources.files import is_local, local_folder
from anabranch.runtime.spark import with_settings
from anabranch.runtime.streaming import Answers

#: The file with the id of the checkpoint that an output folder belongs to.
_OWNER = "_checkpoint"
#: The file that marks the answers of a batch run. It may say where they came from, as JSON.
MARK = "_anabranch"
_STAGING = "_staging"


def check_replaceable(folder: str) -> None:
    """Refuse an output folder of a batch run that holds anything but the answers of an earlier batch run.

    Nothing is known about a folder that is not local; there, Spark refuses one that exists.
    """
    target = _local(folder)
    if target is None:
        return
    if (target / _OWNER).exists():
        raise DataError(f"{folder} holds the answers of a stream; use another output folder")
    if _has_files(target) and not (target / MARK).exists():
        raise DataError(f"{folder} holds files that are not answers; use another output folder")


def write_whole(
    frame: DataFrame, folder: str, file_format: str, origin: Mapping[str, object] | None = None
) -> None:
    """Write the answers of a batch run to a folder; replaces those of an earlier batch run, and nothing else.

    `origin` says where they came from, for `anabranch why`: workbook, query and inputs.
    """
    check_replaceable(folder)
    target = _local(folder)
    if target is None:
        _save(frame, file_format, folder)
        return
    staging = target.parent / _STAGING / target.name
    shutil.rmtree(staging, ignore_errors=True)
    _save(frame, file_format, str(staging / "new"))
    (staging / "new" / MARK).write_text("" if origin is None else json.dumps(origin) + "\n", encoding="utf-8")
    if target.exists():
        os.rename(target, staging / "old")
    os.rename(staging / "new", target)
    shutil.rmtree(staging)
    with suppress(OSError):  # another query is writing its answers there
        staging.parent.rmdir()


def _local(folder: str) -> Path | None:
    """The absolute path of a local folder; None for the address of another file system."""
    plain = folder.removeprefix("file://")
    return Path(plain).resolve() if is_local(plain) else None


def _has_files(folder: Path) -> bool:
    """Whether there is anything at a path but hidden files: a killed process leaves drafts."""
    return folder.is_file() or (folder.is_dir() and any(path.name[0] != "." for path in folder.iterdir()))


def _save(frame: DataFrame, file_format: str, folder: str) -> None:
    if file_format == "csv":
        frame = without_structs(frame)
    writer = frame.write.format(file_format).mode("error")
    if file_format == "csv":
        writer = writer.option("header", "true")
    # Spark's default, INT96, is read by others as a time without a zone.
    with with_settings(frame.sparkSession, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        writer.save(folder)


def without_structs(frame: DataFrame) -> DataFrame:
    """The frame with a column `a.key` for each field of a struct `a`, and arrays as JSON: CSV has neither.

    The fields of a struct in a struct, such as the first event of a run, become columns `a.first.key`.
    """
    columns = []
    nested = False
    for field in frame.schema.fields:
        column = F.col(f"`{field.name}`")
        if isinstance(field.dataType, StructType):
            columns += [column[name].alias(f"{field.name}.{name}") for name in field.dataType.names]
            nested |= any(isinstance(inner.dataType, StructType) for inner in field.dataType.fields)
        elif isinstance(field.dataType, ArrayType):
            columns.append(F.to_json(column).alias(field.name))
        else:
            columns.append(column)
    flat = frame.select(*columns)
    return without_structs(flat) if nested else flat


class FolderTarget:
    """The answers of a query as files of a folder: local or shared in streaming, any that Spark writes in batch.

    Parameters
    ----------
    folder : str
    file_format : 'parquet', 'csv' or 'json'
    """

    takes_frames: ClassVar[bool] = True

    def __init__(self, folder: str, file_format: str) -> None:
        if file_format not in FORMATS:
            raise AnabranchError(f"there is no format {file_format}; there are {', '.join(FORMATS)}")
        self._folder = folder
        self._format = file_format

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream, to which the folder then belongs."""
        folder = local_folder(self._folder)
        claim(folder, owner)
        return _BatchFiles(folder, self._format).write_answers

    def write_whole(self, answers: DataFrame) -> None:
        """Write the answers of a batch run; they replace those of an earlier one, and nothing else."""
        write_whole(answers, self._folder, self._format)


def to_quarantine(folder: str) -> AnswerWriter:
    """A writer of quarantined rows, which makes the folder when there are some."""

    def write(spark: SparkSession, rejected: pa.Table, batch: int) -> int:
        return _BatchFiles(local_folder(folder), "json").write(spark, rejected, batch)

    return write


class _BatchFiles:
    """A folder with one file per micro-batch."""

    def __init__(self, folder: str, file_format: str) -> None:
        self._folder = Path(folder).absolute()
        self._format = file_format
        self._folder.mkdir(parents=True, exist_ok=True)
        # Files that a killed run left incomplete.
        shutil.rmtree(self._folder / _STAGING, ignore_errors=True)

    def write_answers(self, spark: SparkSession, answers: Answers, batch: int) -> int:
        """Write the answers of a micro-batch; provisional answers go to the subfolder `_provisional`."""
        if isinstance(answers, DataFrame):
            return self._write_large(answers, batch)
        if "status" not in answers.column_names:
            return self.write(spark, answers, batch)
        final = pc.is_in(answers["status"], value_set=pa.array(FINAL))
        provisional = answers.filter(pc.invert(final))
        if provisional.num_rows:
            _BatchFiles(str(self._folder / "_provisional"), self._format).write(spark, provisional, batch)
        return self.write(spark, answers.filter(final), batch)

    def write(self, spark: SparkSession, table: pa.Table, batch: int) -> int:
        """Write the rows of a micro-batch; returns how many there are."""
        target = self._target(batch)
        if table.num_rows:
            staging = self._folder / _STAGING / str(batch)
            written = self._stage(spark, table, staging)
            _flush(written)
            os.replace(written, target)
            shutil.rmtree(staging.parent)
        else:
            # A replayed batch without rows must not leave an old file behind.
            target.unlink(missing_ok=True)
        return table.num_rows

    def _write_large(self, answers: DataFrame, batch: int) -> int:
        """Let an executor write the answers of a micro-batch, as one file, which is then renamed."""
        if "status" in answers.columns:
            final = F.col("status").isin(*FINAL)
            provisional = _BatchFiles(str(self._folder / "_provisional"), self._format)
            provisional._write_frame(answers.where(~final), batch)
            answers = answers.where(final)
        return self._write_frame(answers, batch)

    def _write_frame(self, rows: DataFrame, batch: int) -> int:
        staging = self._folder / _STAGING / str(batch)
        shutil.rmtree(staging, ignore_errors=True)  # of an attempt that failed
        rows, n_rows = counted(rows)
        _save(rows.repartition(1), self._format, str(staging))
        if n_rows():
            written = next(path for path in staging.iterdir() if path.name.startswith("part-"))
            _flush(written)
            os.replace(written, self._target(batch))
        else:
            self._target(batch).unlink(missing_ok=True)
        shutil.rmtree(staging.parent)
        return n_rows()

    def _target(self, batch: int) -> Path:
        return self._folder / f"part-{batch:010d}.{self._format}"

    def _stage(self, spark: SparkSession, table: pa.Table, staging: Path) -> Path:
        """Write a file that nobody reads yet. Arrow writes Parquet without the overhead of a Spark job."""
        if self._format == "parquet":
            staging.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, staging / "part.parquet")
            return staging / "part.parquet"
        shutil.rmtree(staging, ignore_errors=True)  # of an attempt that failed
        _save(to_frame(spark, table).coalesce(1), self._format, str(staging))
        return next(path for path in staging.iterdir() if path.name.startswith("part-"))


def _flush(path: Path) -> None:
    """Make sure that the rows are on disk before the file is renamed."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def claim(folder: str, owner: str) -> None:
    """Mark an output folder as belonging to a checkpoint; refuse one that belongs to another.

    Files are named by micro-batch: two checkpoints with one output folder would overwrite each other's files.
    """
    mark = Path(folder) / _OWNER
    Path(folder).mkdir(parents=True, exist_ok=True)
    if mark.exists() and mark.read_text() != owner:
        raise DataError(
            f"{folder} holds the answers of another checkpoint; use a new output folder, "
            "or the checkpoint they came from"
        )
    if _has_files(mark.parent) and not mark.exists():
        raise DataError(f"{folder} holds files that are not answers of this stream; use a new output folder")
    atomic.write_text(mark, owner)
