"""Topics of Kafka as inputs: offsets of partitions are Spark's offsets, and workers read the messages.

Spark gets ranges of offsets, not rows: a row of the data source says what a worker reads in the next stage, as paths do
for files. Therefore messages never pass through the JVM, and are decoded and quarantined as the lines of files are.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from anabranch.binding.connector_options import option_values
from anabranch.binding.message_columns import message_columns, message_format, metadata_columns
from anabranch.catalog import Column, Relation, Stream
from anabranch.clients.extras import optional_module
from anabranch.clients.kafka import kafka_settings
from anabranch.errors import DataError, WorkbookError
from anabranch.files.avro import AvroValues, avro_types, read_schema
from anabranch.files.csv_lines import Dialect
from anabranch.files.formats import Columns, CsvFormat, JsonFormat
from anabranch.files.kafka import TASKS, KafkaReader, Offsets, Topic, limited, tasks_of
from anabranch.files.messages import LineValues, ValueFormat
from anabranch.files.reader import TaskReader
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.types import Type
from anabranch.runtime.sources.files import resolve
from anabranch.runtime.sources.schema import CORRUPT, SPARK_TYPES
from anabranch.runtime.sources.tasks import TaskSource, TaskStreamReader, read_tasks

#: How long a broker may take to answer, in seconds.
_TIMEOUT = 30

#: How often brokers are asked for new messages while there are none, and for new partitions.
_SECONDS_BETWEEN_QUESTIONS, _SECONDS_BETWEEN_LISTS = 0.1, 30.0


class MessageInput(ABC):
    """The messages of one declaration, by their broker's name for them."""

    #: The name of the topic, for errors.
    name: str

    def __init__(
        self, spark: SparkSession, entry: Stream | Relation, source: nodes.ConnectorSource, base: str,
        needed: Sequence[Column],
    ) -> None:  # fmt: skip
        self.name = source.address
        self._spark = spark
        self._entry = entry
        self._options = options = option_values(source)
        self.format = message_format(source)
        self._avro_schema = read_schema(resolve(options["schema"], base)) if self.format == "avro" else ""
        values, metadata = self._column_types(source, needed)
        self._value_types, self._types = values, values | metadata

    @property
    def options(self) -> dict[str, str]:
        """How values are written, in the words of the reader of files."""
        return {"sep": self._options.get("separator", ",")}

    @property
    def schema(self) -> spark_types.StructType:
        """The columns of the rows, and of the text of messages that cannot be read."""
        fields = [spark_types.StructField(name, SPARK_TYPES[kind]) for name, kind in self._types.items()]
        return spark_types.StructType([*fields, spark_types.StructField(CORRUPT, spark_types.StringType())])

    @abstractmethod
    def reader(self, columns: Sequence[str]) -> TaskReader:
        """How workers read these columns."""

    @abstractmethod
    def tasks(self) -> pa.Table:
        """Tasks for all messages that there are now."""

    @abstractmethod
    def stream_tasks(self) -> DataFrame:
        """Tasks for the messages that there are and those that will arrive."""

    @abstractmethod
    def batch(self) -> DataFrame:
        """The rows of all messages that there are now."""

    def _column_types(
        self, source: nodes.ConnectorSource, needed: Sequence[Column]
    ) -> tuple[dict[str, Type], dict[str, Type]]:
        """The columns of the values, and those of the messages."""
        findings = Findings()
        values = (
            avro_types(self._avro_schema)
            if self.format == "avro"
            else message_columns(self._entry, source, needed, findings)
        )
        if findings:
            raise WorkbookError(findings.in_order())
        return values, metadata_columns(source, {column.name.lower() for column in needed}, values)

    def _values(self) -> ValueFormat:
        types = self._value_types
        if self.format == "avro":
            schema_id = self._options.get("schema_id")
            return AvroValues(self._avro_schema, types, None if schema_id is None else int(schema_id))
        columns = Columns(list(types), list(types.values()))
        if self.format == "csv":
            return LineValues(CsvFormat(columns, list(types), Dialect(self._options.get("separator", ","))))
        return LineValues(JsonFormat(columns))


class TopicInput(MessageInput):
    """A topic of Kafka."""

    def __init__(
        self, spark: SparkSession, entry: Stream | Relation, source: nodes.ConnectorSource, base: str,
        needed: Sequence[Column],
    ) -> None:  # fmt: skip
        optional_module("confluent_kafka")
        super().__init__(spark, entry, source, base, needed)
        timeout = float(self._options.get("timeout_seconds", _TIMEOUT))
        self.topic = Topic(source.address, kafka_settings(self._options, base), timeout)

    def reader(self, columns: Sequence[str]) -> KafkaReader:
        """How workers read these columns."""
        return KafkaReader(
            self.topic, self._values(), columns, self._options.get("on_loss", "").lower() == "quarantine"
        )

    def tasks(self) -> pa.Table:
        """Tasks for all messages that the brokers have now."""
        bounds = self.topic.bounds()
        tasks = tasks_of(self.topic.name, _firsts(bounds), _ends(bounds))
        return pa.Table.from_pylist(tasks, schema=TASKS)

    def stream_tasks(self) -> DataFrame:
        """Tasks for the messages that the brokers have and those that will arrive."""
        starts_at_end = self._options.get("starting_offsets", "").lower() == "latest"
        most = int(self._options["max_rows_per_batch"]) if "max_rows_per_batch" in self._options else None
        return read_tasks(self._spark, TopicSource, topic=self.topic, starts_at_end=starts_at_end, most=most)

    def batch(self) -> DataFrame:
        """The rows of all messages that the brokers have now."""
        schema = to_arrow_schema(self.schema)
        stage = partial(_rows_of, self.reader(list(self._types)), self._entry.name, schema)
        return self._spark.createDataFrame(self.tasks()).mapInArrow(stage, self.schema)


def _firsts(bounds: dict[int, tuple[int, int]]) -> Offsets:
    return {partition: first for partition, (first, _) in bounds.items()}


def _ends(bounds: dict[int, tuple[int, int]]) -> Offsets:
    return {partition: end for partition, (_, end) in bounds.items()}


def _rows_of(
    reader: KafkaReader, stream: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of tasks, and for each message that cannot be read a row with its text."""
    for batch in batches:
        for task in batch.to_pylist():
            for rows, rejected in reader.rows(task, stream):
                yield from rows.append_column(CORRUPT, pa.nulls(rows.num_rows, pa.string())).cast(schema).to_batches()
                texts = {name: pa.nulls(rejected.num_rows, schema.field(name).type) for name in schema.names}
                yield from pa.table(texts | {CORRUPT: rejected["row"]}, schema=schema).to_batches()


# ---------------------------------------------------------------- the data source of a stream


class TopicSource(TaskSource):
    """The ranges of a topic that a stream reads."""

    tasks = TASKS
    topic: ClassVar[Topic]
    starts_at_end: ClassVar[bool]
    most: ClassVar[int | None]

    def streamReader(self, schema: spark_types.StructType) -> DataSourceStreamReader:
        """The reader of the offsets."""
        return TopicStreamReader(self.topic, self.starts_at_end, self.most)


class TopicStreamReader(TaskStreamReader):
    """Gives Spark the offsets of a topic, and the ranges between two of them.

    An offset of Spark is `{"topic": name, "offsets": {partition: offset}}`: the name, so that a checkpoint is not used
    for another topic.
    """

    def __init__(self, topic: Topic, starts_at_end: bool, most: int | None) -> None:
        self._topic, self._starts_at_end, self._most = topic, starts_at_end, most
        self._reached: Offsets | None = None
        self._last: Offsets | None = None
        self._seen: Offsets | None = None
        self._partitions: list[int] = []
        self._listed = self._asked = -math.inf

    def initialOffset(self) -> dict:
        """Where a new stream starts."""
        bounds = self._topic.bounds()
        return self._written(_ends(bounds) if self._starts_at_end else _firsts(bounds))

    def getDefaultReadLimit(self) -> Any:
        """The limit of a micro-batch; Spark 4.1 does not ask for it."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        return ReadAllAvailable() if self._most is None else ReadMaxRows(self._most)

    def latestOffset(self, start: dict | None = None, limit: Any = None) -> dict:
        """Where the next micro-batch ends.

        Spark 4.1 passes neither argument. It plans the last micro-batch again after a restart, so `partitions` has seen
        where that one ended.
        """
        if start is not None:
            reached = self._read(start)
        else:
            reached = self._reached if self._reached is not None else self._read(self.initialOffset())
        most = self._most if limit is None else getattr(limit, "max_rows", None)
        ends = self._available(reached) if self._last is None else self._last
        self._check_same_topic(reached, ends)
        self._reached = limited(reached, ends, most)
        return self._written(self._reached)

    def _available(self, reached: Offsets) -> Offsets:
        """The offsets behind the messages that the brokers have; waits a moment before it asks again for new ones.

        Spark asks a hundred times per second, as long as nothing arrives.
        """
        if self._reached == reached == self._seen:
            time.sleep(max(0.0, self._asked + _SECONDS_BETWEEN_QUESTIONS - time.monotonic()))
        self._asked = time.monotonic()
        if self._asked - self._listed > _SECONDS_BETWEEN_LISTS:
            self._partitions, self._listed = self._topic.partitions(), self._asked
        self._seen = _ends(self._topic.bounds(self._partitions))
        return self._seen

    def prepareForTriggerAvailableNow(self) -> None:
        """Do not read what arrives from now on."""
        self._last = _ends(self._topic.bounds())

    def partitions(self, start: dict, end: dict) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        if self._reached is None:
            self._reached = self._read(end)
        return [InputPartition(task) for task in tasks_of(self._topic.name, self._read(start), self._read(end))]

    def _written(self, offsets: Offsets) -> dict:
        # Spark compares offsets as text.
        return {"topic": self._topic.name, "offsets": {str(key): offsets[key] for key in sorted(offsets)}}

    def _read(self, written: dict) -> Offsets:
        if written["topic"] != self._topic.name:
            raise DataError(
                f"the checkpoint has offsets of topic '{written['topic']}', not of '{self._topic.name}'; "
                "start with a new checkpoint"
            )
        return {int(partition): offset for partition, offset in written["offsets"].items()}

    def _check_same_topic(self, reached: Offsets, ends: Offsets) -> None:
        """Raise if the brokers have fewer messages than were read."""
        for partition, offset in reached.items():
            if offset > ends.get(partition, 0):
                raise DataError(
                    f"partition {partition} of topic '{self._topic.name}' ends at offset {ends.get(partition, 0)}, but "
                    f"offset {offset} was read before: the topic was created again; start with a new checkpoint"
                )
