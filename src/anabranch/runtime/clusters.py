"""The check of CLUSTERED BY: the workers read the declared columns of all files, before the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.arrays import U64
from anabranch.errors import DataError
from anabranch.files.clusters import value_hashes
from anabranch.files.reader import FileReader, UnreadableFile
from anabranch.transport.layout import Layout


def clustered_values(
    spark: SparkSession, reader: FileReader, layout: Layout, tasks: Sequence[pa.Table]
) -> list[tuple[str, U64]]:
    """Each file, with the hashes of its distinct keys; the layout has no other columns."""
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    read = numbers.mapInArrow(partial(_hashed, reader, layout, tasks), "path string, hashes binary")
    return [(row["path"], np.frombuffer(row["hashes"], np.uint64)) for row in read.collect()]


def _hashed(
    reader: FileReader, layout: Layout, tasks: Sequence[pa.Table], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for task in tasks[number].to_pylist():
                try:
                    parts = [value_hashes(table, layout.keys) for table, _ in reader.tables(task, layout)]
                except UnreadableFile as error:
                    raise DataError(f"{task['path']} {error}") from error
                hashes = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
                yield pa.record_batch([[task["path"]], [hashes.tobytes()]], ["path", "hashes"])
