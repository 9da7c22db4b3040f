"""Reads the state of a stream from its checkpoint, with Spark's reader of state stores. A running stream may go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.columns.times import TimeKind
from anabranch.errors import StateError
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.file_system import Folder
from anabranch.transport.inspection import Found, StoredStream, rows_about
from anabranch.transport.state import unseal


@dataclass(frozen=True, slots=True)
class StoredBucket:
    """The state of a bucket: the tables that every micro-batch reads, pages, and the bytes of both."""

    number: int
    tables: Mapping[str, pa.Table]
    pages: Mapping[int, pa.Table]
    n_bytes: int
    page_bytes: int


@dataclass(frozen=True, slots=True)
class StoredState:
    """The state of a stream after its last complete micro-batch."""

    streams: tuple[StoredStream, ...]
    buckets: tuple[StoredBucket, ...]

    def about(self, key: Mapping[str, str]) -> Iterator[tuple[int, StoredStream, Found]]:
        """The rows about keys with these values, by lower-case name of the column, with bucket and stream."""
        for bucket in self.buckets:
            for stream in self.streams:
                if stream.has_key(key):
                    for found in rows_about(key, stream, bucket.tables, bucket.pages, len(self.streams)):
                        yield bucket.number, stream, found


def read_state(spark: SparkSession, folder: Folder) -> StoredState:
    """Read the state of the stream with this checkpoint folder."""
    checkpoint = Checkpoint(folder)
    if not checkpoint.spark.exists("commits"):
        raise StateError(f"the stream of {folder} has no complete micro-batch")
    pages: dict[int, dict[int, bytes]] = {}
    for row in _variable(spark, checkpoint, "pages").collect():
        number, page = row["key"]["bucket"], row["user_map_key"]["page"]
        pages.setdefault(number, {})[page] = bytes(row["user_map_value"]["data"])
    buckets = []
    for row in sorted(_variable(spark, checkpoint, "bucket").collect(), key=lambda row: row["key"]["bucket"]):
        number, state = row["key"]["bucket"], bytes(row["value"]["operator"])
        own = pages.get(number, {})
        tables = {page: next(iter(unseal(data).values())) for page, data in own.items()}
        buckets.append(StoredBucket(number, unseal(state), tables, len(state), sum(map(len, own.values()))))
    return StoredState(_streams(checkpoint), tuple(buckets))


def _variable(spark: SparkSession, checkpoint: Checkpoint, name: str) -> DataFrame:
    return spark.read.format("statestore").option("stateVarName", name).load(checkpoint.spark.address)


def _streams(checkpoint: Checkpoint) -> tuple[StoredStream, ...]:
    return tuple(
        StoredStream(number, layout["name"], tuple(name for name, _ in layout["keys"]), TimeKind(layout["time"][1]))
        for number, layout in enumerate(checkpoint.layouts)
    )
