"""Answers of a micro-batch that are too many for the driver: buckets leave them with the executors, which finish them.

Buckets write them to files in the checkpoint folder, which all executors mount. They are removed when the micro-batch
is delivered; one that is repeated makes its own. Python workers cannot write to a checkpoint on another file system,
such as an object store: there, Spark caches the outcomes of the buckets until the micro-batch is delivered.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.transport.state import read_tables, write_tables

#: A bucket with more answers in a micro-batch leaves them with the executors. Sixteen buckets with fewer fit into any
#: driver.
MOST_ROWS = 100_000

_NAME = "answers"

#: Instead of the path of a file: the answers are in the outcome of the bucket, which is cached.
CACHED = "cached"


@dataclass(frozen=True, slots=True)
class LargeAnswers:
    """How the buckets of a stream leave answers. Picklable.

    Parameters
    ----------
    folder : of the files; None if the outcomes are cached
    most_rows : how many answers of a bucket are sent to the driver
    """

    folder: str | None
    most_rows: int

    def kept(self, answers: pa.Table) -> tuple[bytes | None, str | None]:
        """The answers of a bucket as bytes, or the path of the file that has them; both if they are to be cached."""
        if not answers.num_rows:
            return None, None
        blob = write_tables({_NAME: answers})
        if answers.num_rows <= self.most_rows:
            return blob, None
        if self.folder is None:
            return blob, CACHED
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{uuid.uuid4().hex}.arrow"
        path.write_bytes(blob)
        return None, str(path)

    def collect(self, outcomes: DataFrame) -> tuple[pa.Table, LeftAnswers | None]:
        """The outcomes of the buckets, and the answers that they have left; None if there are none.

        The stateful plan is evaluated once: what is left is read from files or from the cache.
        """
        if self.folder is None:
            outcomes = outcomes.persist()
            small = F.when(F.col("file").isNull(), F.col("answers"))
            collected = outcomes.withColumn("answers", small).toArrow()
        else:
            collected = outcomes.toArrow()
        files = collected["file"].drop_null().to_pylist()
        return collected, LeftAnswers(outcomes, None if self.folder is None else files) if files else None

    def clear(self, outcomes: DataFrame | None = None) -> None:
        """Remove all files, or the cache of a micro-batch."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif outcomes is not None:
            outcomes.unpersist()


@dataclass(frozen=True, slots=True)
class LeftAnswers:
    """The answers that the buckets of a micro-batch have left.

    Parameters
    ----------
    outcomes : of the buckets
    files : the paths of the files; None if the outcomes are cached
    """

    outcomes: DataFrame
    files: Sequence[str] | None

    def tables(self) -> list[pa.Table]:
        """The answers, in the driver."""
        if self.files is not None:
            return read_files(self.files)
        return [_table(blob) for blob in self._cached().toArrow()["answers"].to_pylist()]

    def frame(self, schema: pa.Schema) -> DataFrame:
        """The answers as a DataFrame; those of a bucket are read by one task."""
        if self.files is None:
            left = self._cached()
        else:
            named = self.outcomes.sparkSession.createDataFrame([(path,) for path in self.files], "path string")
            left = named.repartition(len(self.files))
        return left.mapInArrow(partial(_rows, schema), from_arrow_schema(schema))

    def _cached(self) -> DataFrame:
        return self.outcomes.where(F.col("file").isNotNull()).select("answers")


def read_files(paths: Iterable[str]) -> list[pa.Table]:
    """The answers in files."""
    return [_table(Path(path).read_bytes()) for path in paths]


def _table(blob: bytes) -> pa.Table:
    return read_tables(blob)[_NAME].replace_schema_metadata(None)


def _rows(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers in files, or in cached outcomes: a batch has paths or bytes."""
    for batch in batches:
        for left in batch.column(0).to_pylist():
            table = _table(left if isinstance(left, bytes) else Path(left).read_bytes())
            yield from table.cast(schema).to_batches(max_chunksize=100_000)
