"""Data sources of Spark whose rows are tasks: they say what workers read in the next stage, as paths do for files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """What Spark 4.1 has no name for."""


_numbers = itertools.count()


class TaskSource(DataSource):
    """The tasks of a stream; each stream registers a class of its own, whose attributes are its settings."""

    registered: ClassVar[str]
    tasks: ClassVar[pa.Schema]

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return cls.registered

    def schema(self) -> spark_types.StructType:
        """The columns of a task."""
        return from_arrow_schema(self.tasks)


class TaskStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader whose partitions are tasks: dicts with the columns in their order."""

    def read(self, partition: InputPartition) -> Iterator[tuple]:
        """One task."""
        yield tuple(partition.value.values())


def read_tasks(spark: SparkSession, source: type[TaskSource], **settings: Any) -> DataFrame:
    """The tasks of a source with these settings, as a stream.

    A class carries the settings, because options of Spark would be shown in its pages and logs.
    """
    name = f"anabranch_{source.__name__.lower()}_{next(_numbers)}"
    spark.dataSource.register(type(f"{source.__name__}OfStream", (source,), {"registered": name, **settings}))
    return spark.readStream.format(name).load()
