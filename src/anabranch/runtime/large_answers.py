"""Answers of a micro-batch that are too many for the driver: buckets leave them in files, and executors finish them.

The files are in the checkpoint folder, which all executors mount. They are removed when the micro-batch is delivered;
one that is repeated makes its own.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.transport.state import read_tables, write_tables

#: A bucket with more answers in a micro-batch leaves them in a file. Sixteen buckets with fewer fit into any driver.
MOST_ROWS = 100_000

_NAME = "answers"


@dataclass(frozen=True, slots=True)
class LargeAnswers:
    """The folder of the files of a stream. Picklable.

    Parameters
    ----------
    most_rows : how many answers of a bucket are sent to the driver
    """

    folder: str
    most_rows: int

    def kept(self, answers: pa.Table) -> tuple[bytes | None, str | None]:
        """The answers of a bucket as bytes for the driver, or the path of the file that has them."""
        if not answers.num_rows:
            return None, None
        blob = write_tables({_NAME: answers})
        if answers.num_rows <= self.most_rows:
            return blob, None
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{uuid.uuid4().hex}.arrow"
        path.write_bytes(blob)
        return None, str(path)

    def clear(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read_files(paths: Sequence[str]) -> list[pa.Table]:
    """The answers in files."""
    return [read_tables(Path(path).read_bytes())[_NAME].replace_schema_metadata(None) for path in paths]


def frame_of(spark: SparkSession, paths: Sequence[str], schema: pa.Schema) -> DataFrame:
    """The answers in files as a DataFrame; each file is read by one task."""
    named = spark.createDataFrame([(path,) for path in paths], "path string").repartition(len(paths))
    return named.mapInArrow(partial(_rows, schema), from_arrow_schema(schema))


def _rows(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for table in read_files(batch.column(0).to_pylist()):
            yield from table.cast(schema).to_batches(max_chunksize=100_000)
