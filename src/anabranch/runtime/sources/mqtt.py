"""Topics of MQTT as inputs: messages are written to a log in the checkpoint, whose positions are Spark's offsets.

The subscriber runs in the process in which Spark plans micro-batches. Workers read the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from anabranch.catalog import Column, Relation, Stream
from anabranch.clients.extras import optional_module
from anabranch.clients.message_log import MessageLog, remove_before
from anabranch.clients.mqtt_subscriber import Subscriber
from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.files.mqtt import TASKS, MqttReader, tasks_of
from anabranch.language import nodes
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.sources.tasks import TaskSource, TaskStreamReader, read_tasks
from anabranch.runtime.sources.topics import MessageInput

#: With --once, the input has ended when no message has come for this long, in seconds; and how long to wait at most.
_QUIET, _LONGEST = 2.0, 60.0

#: The subscribers of this process, by the folder of their log. Spark copies readers to workers, so they have none.
_subscribers: dict[str, Subscriber] = {}


class MqttInput(MessageInput):
    """The topic of one declaration; only streams read it."""

    def __init__(
        self, spark: SparkSession, entry: Stream | Relation, source: nodes.ConnectorSource, base: str,
        needed: Sequence[Column], checkpoint: Checkpoint | None,
    ) -> None:  # fmt: skip
        optional_module("paho.mqtt.client")
        if checkpoint is None or not isinstance(entry, Stream):
            message = "FROM MQTT has live messages only"
            raise WorkbookError([Finding("source", message, "use anabranch stream, or read a file", source.span)])
        super().__init__(spark, entry, source, base, needed)
        name = entry.name.lower()
        self._folder = checkpoint.messages(name)
        # The same after each restart, so that the broker knows the session.
        self._settings = {"client_id": f"anabranch-{checkpoint.id}-{name}", **self._options}

    def reader(self, columns: Sequence[str]) -> MqttReader:
        """How workers read these columns."""
        return MqttReader(self._values(), columns)

    def tasks(self) -> pa.Table:
        """Refused: there is no archive."""
        raise DataError("FROM MQTT has live messages only")

    def stream_tasks(self) -> DataFrame:
        """Tasks for the messages that arrive."""
        return read_tasks(self._spark, MqttSource, topic=self.name, folder=self._folder, settings=self._settings)

    def batch(self) -> DataFrame:
        """Refused: there is no archive."""
        raise DataError("FROM MQTT has live messages only")


class MqttSource(TaskSource):
    """The ranges of a log that a stream reads."""

    tasks = TASKS
    topic: ClassVar[str]
    folder: ClassVar[str]
    settings: ClassVar[Mapping[str, str]]

    def streamReader(self, schema: spark_types.StructType) -> DataSourceStreamReader:
        """The reader of the positions."""
        return MqttStreamReader(self.topic, self.folder, self.settings)


class MqttStreamReader(TaskStreamReader):
    """Gives Spark the positions of a log, and the ranges between two of them.

    An offset of Spark is `{"topic": name, "position": number}`: the name, so that a checkpoint is not used for another
    topic.
    """

    def __init__(self, topic: str, folder: str, settings: Mapping[str, str]) -> None:
        self._topic, self._folder, self._settings = topic, folder, settings
        self._last: int | None = None

    def initialOffset(self) -> dict:
        """Where a new stream starts."""
        return self._written(0)

    def latestOffset(self, start: dict | None = None, limit: Any = None) -> dict:
        """Where the next micro-batch ends; Spark 4.1 passes neither argument."""
        end = self._subscriber().end() if self._last is None else self._last
        if start is not None and self._read(start) > end:
            raise DataError(
                f"the log of messages ends at position {end}, but {self._read(start)} was read before: the folder "
                f"{self._folder} has lost files; start with a new checkpoint"
            )
        return self._written(end)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take what the broker has kept, and nothing that arrives later."""
        subscriber = self._subscriber()
        subscriber.settle(_QUIET, _LONGEST)
        self._last = subscriber.end()

    def partitions(self, start: dict, end: dict) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        tasks = tasks_of(Path(self._folder), self._read(start), self._read(end))
        return [InputPartition(task) for task in tasks]

    def commit(self, end: dict) -> None:
        """Remove the messages that no micro-batch will read again."""
        remove_before(Path(self._folder), self._read(end))

    def stop(self) -> None:
        """End the connection to the broker."""
        subscriber = _subscribers.pop(self._folder, None)
        if subscriber is not None:
            subscriber.stop()

    def _subscriber(self) -> Subscriber:
        if self._folder not in _subscribers:
            log = MessageLog(Path(self._folder))
            _subscribers[self._folder] = Subscriber(self._settings, self._topic, log)
        return _subscribers[self._folder]

    def _written(self, position: int) -> dict:
        return {"topic": self._topic, "position": position}

    def _read(self, written: dict) -> int:
        if written["topic"] != self._topic:
            raise DataError(
                f"the checkpoint has positions of topic '{written['topic']}', not of '{self._topic}'; "
                "start with a new checkpoint"
            )
        return int(written["position"])
