"""Answers as files that can be read at any time.

A micro-batch of a stream becomes one file, which appears as a whole; if Spark replays it after a failure, it replaces
its own file, so no answer is lost or duplicated. A batch run replaces the answers of an earlier one: a local folder is
renamed as a whole, on other file systems the file `_SUCCESS` says that the answers are complete. Folders with files of
others are never written to.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
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
from anabranch.runtime.batch import counted
from anabranch.runtime.file_system import Folder, LocalFolder, address_of, is_address, open_folder
from anabranch.runtime.finishing import to_frame
from anabranch.runtime.sinks.target import AnswerWriter
from anabranch.runtime.spark import with_settings
from anabranch.runtime.spark_mode import is_connect
from anabranch.runtime.streaming import Answers

#: The file with the id of the checkpoint that an output folder belongs to.
_OWNER = "_checkpoint"
#: The file that marks the answers of a batch run. It may say where they came from, as JSON.
MARK = "_anabranch"
_STAGING = "_staging"

#: Spark's defaults round times down to milliseconds, trim texts, and write a quote in a text as `\"`, which only Spark
#: reads. pandas, DuckDB and spreadsheets expect two quotes.
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS[XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_CSV = {"escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
#: Options of Spark for formats that are text.
TEXT_OPTIONS = {"csv": _TIMES | _CSV, "json": _TIMES}


def check_replaceable(path: str, spark: Callable[[], SparkSession]) -> None:
    """Refuse an output folder of a batch run that holds anything but the answers of an earlier batch run.

    With Connect nothing is known about a folder that is not local; there, Spark refuses one that exists.
    """
    if is_address(path) and is_connect(spark()):
        return
    folder = open_folder(path, spark)
    if folder.exists(_OWNER):
        raise DataError(f"{path} holds the answers of a stream; use another output folder")
    if not folder.exists(MARK) and _has_files(folder):
        raise DataError(f"{path} holds files that are not answers; use another output folder")


def write_whole(frame: DataFrame, path: str, file_format: str, origin: Mapping[str, object] | None = None) -> None:
    """Write the answers of a batch run to a folder; replaces those of an earlier batch run, and nothing else.

    `origin` says where they came from, for `anabranch why`: workbook, query and inputs.
    """
    spark = frame.sparkSession
    check_replaceable(path, lambda: spark)
    mark = b"" if origin is None else json.dumps(origin).encode() + b"\n"
    if not is_address(path):
        _replace_local(frame, Path(address_of(path)).resolve(), file_format, mark)
    elif is_connect(spark):
        _save(frame, file_format, path)
    else:
        folder = open_folder(path, lambda: spark)
        folder.delete()
        # Before the answers: a run that was killed is replaced, too.
        folder.write(MARK, mark)
        _save(frame, file_format, folder.address, mode="append")


def _replace_local(frame: DataFrame, target: Path, file_format: str, mark: bytes) -> None:
    """Write a folder next to the target, and rename it: a reader sees all answers or nothing."""
    staging = target.parent / _STAGING / target.name
    shutil.rmtree(staging, ignore_errors=True)
    _save(frame, file_format, str(staging / "new"))
    (staging / "new" / MARK).write_bytes(mark)
    if target.exists():
        os.rename(target, staging / "old")
    os.rename(staging / "new", target)
    shutil.rmtree(staging)
    with suppress(OSError):  # another query is writing its answers there
        staging.parent.rmdir()


def _has_files(folder: Folder) -> bool:
    """Whether there is anything at an address but hidden files: a killed process leaves drafts."""
    if isinstance(folder, LocalFolder) and folder.path.is_file():
        return True
    return any(name[0] != "." for name in folder.names())


def _save(frame: DataFrame, file_format: str, folder: str, mode: str = "error") -> None:
    if file_format == "csv":
        frame = without_structs(frame)
    writer = frame.write.format(file_format).mode(mode).options(**TEXT_OPTIONS.get(file_format, {}))
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
            columns.append(F.to_json(column, TEXT_OPTIONS["json"]).alias(field.name))
        else:
            columns.append(column)
    flat = frame.select(*columns)
    return without_structs(flat) if nested else flat


class FolderTarget:
    """The answers of a query as files of a folder, on any file system that Spark writes to.

    Parameters
    ----------
    folder : path or address
    file_format : 'parquet', 'csv' or 'json'
    spark : gives the session, for an address
    """

    takes_frames: ClassVar[bool] = True

    def __init__(self, folder: str, file_format: str, spark: Callable[[], SparkSession]) -> None:
        if file_format not in FORMATS:
            raise AnabranchError(f"there is no format {file_format}; there are {', '.join(FORMATS)}")
        self._path = folder
        self._format = file_format
        self._spark = spark

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream, to which the folder then belongs."""
        folder = open_folder(self._path, self._spark)
        claim(folder, owner)
        folder.delete(_STAGING)  # what a killed run left incomplete
        return _BatchFiles(folder, self._format).write_answers

    def write_whole(self, answers: DataFrame) -> None:
        """Write the answers of a batch run; they replace those of an earlier one, and nothing else."""
        write_whole(answers, self._path, self._format)


def to_quarantine(path: str) -> AnswerWriter:
    """A writer of quarantined rows, which makes the folder when there are some."""

    def write(spark: SparkSession, rejected: pa.Table, batch: int) -> int:
        return _BatchFiles(open_folder(path, lambda: spark), "json").write(spark, rejected, batch)

    return write


class _BatchFiles:
    """A folder with one file per micro-batch."""

    def __init__(self, folder: Folder, file_format: str) -> None:
        self._folder = folder
        self._format = file_format

    def write_answers(self, spark: SparkSession, answers: Answers, batch: int) -> int:
        """Write the answers of a micro-batch; provisional answers go to the subfolder `_provisional`."""
        provisional = _BatchFiles(self._folder.folder("_provisional"), self._format)
        if isinstance(answers, DataFrame):
            if "status" in answers.columns:
                is_final = F.col("status").isin(*FINAL)
                provisional._write_large(answers.where(~is_final), batch)
                answers = answers.where(is_final)
            return self._write_large(answers, batch)
        if "status" in answers.column_names:
            final = pc.is_in(answers["status"], value_set=pa.array(FINAL))
            tentative = answers.filter(pc.invert(final))
            if tentative.num_rows:
                provisional.write(spark, tentative, batch)
            answers = answers.filter(final)
        return self.write(spark, answers, batch)

    def write(self, spark: SparkSession, table: pa.Table, batch: int) -> int:
        """Write the rows of a micro-batch; returns how many there are."""
        if not table.num_rows:
            # A replayed batch without rows must not leave an old file behind.
            self._folder.delete(self._name(batch))
        elif self._format == "parquet":
            # Arrow writes Parquet without the overhead of a Spark job.
            content = pa.BufferOutputStream()
            pq.write_table(table, content)
            self._folder.write(self._name(batch), content.getvalue())
        else:
            self._write_frame(to_frame(spark, table).coalesce(1), batch, lambda: table.num_rows)
        return table.num_rows

    def _write_large(self, rows: DataFrame, batch: int) -> int:
        """Write the rows of a micro-batch, which are with the executors."""
        rows, n_rows = counted(rows)
        self._write_frame(rows.repartition(1), batch, n_rows)
        return n_rows()

    def _write_frame(self, rows: DataFrame, batch: int, n_rows: Callable[[], int]) -> None:
        """Let an executor write the rows of one partition, as one file, which then gets its name.

        `n_rows` says how many rows were written.
        """
        staging = f"{_STAGING}/{batch}"
        self._folder.delete(_STAGING)  # of an attempt that failed
        _save(rows, self._format, f"{self._folder}/{staging}")
        if n_rows():
            written = next(name for name in self._folder.names(staging) if name.startswith("part-"))
            self._folder.move(f"{staging}/{written}", self._name(batch))
        else:
            self._folder.delete(self._name(batch))
        self._folder.delete(_STAGING)

    def _name(self, batch: int) -> str:
        return f"part-{batch:010d}.{self._format}"


def claim(folder: Folder, owner: str) -> None:
    """Mark an output folder as belonging to a checkpoint; refuse one that belongs to another.

    Files are named by micro-batch: two checkpoints with one output folder would overwrite each other's files.
    """
    if not folder.exists(_OWNER):
        if _has_files(folder):
            raise DataError(f"{folder} holds files that are not answers of this stream; use a new output folder")
        with suppress(FileExistsError):  # another stream was faster
            folder.create(_OWNER, owner.encode())
    if folder.read(_OWNER) != owner.encode():
        raise DataError(
            f"{folder} holds the answers of another checkpoint; use a new output folder, "
            "or the checkpoint they came from"
        )
