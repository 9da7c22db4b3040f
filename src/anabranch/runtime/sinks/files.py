"""Answers as files that every reader may read at any time.

A micro-batch becomes one file, written aside and renamed into place: a reader sees all of it or nothing, and a
batch that Spark replays
after a failure replaces its own file, so no answer is lost or there twice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from anabranch.errors import DataError
from anabranch.runtime.sources.files import is_local
from anabranch.runtime.spark import with_settings

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


class BatchFiles:
    """A folder with one file a micro-batch.

    Parameters
    ----------
    folder : str
        A local or shared folder.
    file_format : 'parquet', 'csv' or 'json'
    """

    def __init__(self, folder: str, file_format: str) -> None:
        self._folder = Path(folder).absolute()
        self._format = file_format
        self._folder.mkdir(parents=True, exist_ok=True)
        # What a killed run left half-written is never read, and never needed.
        shutil.rmtree(self._folder / "_staging", ignore_errors=True)

    def write(self, frame: DataFrame, batch: int) -> int:
        """Put the rows of a micro-batch in place; says how many there are."""
        counted = Observation()
        frame = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
        staging = self._folder / "_staging" / str(batch)
        _save(frame.coalesce(1), self._format, str(staging))
        written = [path for path in staging.iterdir() if path.name.startswith("part-")]
        target = self._folder / f"part-{batch:010d}.{self._format}"
        if written:
            _flush(written[0])
            os.replace(written[0], target)
        else:
            # Without rows Spark may write no file; a batch that is replayed must then leave none behind.
            target.unlink(missing_ok=True)
        shutil.rmtree(staging.parent)
        return int(counted.get["rows"])


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
