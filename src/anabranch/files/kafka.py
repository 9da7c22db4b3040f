"""Reads ranges of a Kafka topic with librdkafka, and finds the offsets that the broker has."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from anabranch.clients.extras import optional_module
from anabranch.errors import DataError
from anabranch.files.messages import Messages, ValueFormat, read_messages
from anabranch.files.text import joined
from anabranch.transport.checks import QUARANTINE, quarantine
from anabranch.transport.layout import Layout

#: The columns of a task: a range of offsets of a partition, without `stop`. `path` is its name in messages.
TASKS = pa.schema([("path", pa.string()), ("partition", pa.int32()), ("start", pa.int64()), ("stop", pa.int64())])

#: A task reads at most this many messages, so that the cores of a batch run get equal shares.
_MOST_PER_TASK = 500_000

#: Messages that are decoded at once.
_MOST_AT_ONCE = 20_000

#: How long one call waits for messages, in seconds; it returns at once when it has all that it was asked for.
_WAIT = 0.5

#: Why a range is quarantined.
LOST = "the broker no longer has these messages"

_MICROSECONDS = 1000  # per millisecond, the unit of Kafka

#: Offsets by partition.
Offsets = dict[int, int]


class LostMessages(Exception):
    """The broker has deleted messages that were not read yet; the message of the exception is complete."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, and how its brokers are reached.

    `settings` are those of librdkafka. They have passwords, so they are left out of every text.
    """

    name: str
    settings: Mapping[str, Any] = field(repr=False)
    timeout: float = 60.0

    @property
    def servers(self) -> str:
        """The addresses of the brokers."""
        return str(self.settings["bootstrap.servers"])

    def partitions(self) -> list[int]:
        """The partitions of the topic."""
        with self._errors():
            described = self.consumer().list_topics(self.name, timeout=self.timeout).topics[self.name]
        if described.error is not None:
            raise DataError(f"there is no topic '{self.name}' at {self.servers}: {described.error.str()}")
        return sorted(described.partitions)

    def bounds(self, partitions: Sequence[int] | None = None) -> dict[int, tuple[int, int]]:
        """For each partition, the first offset that the brokers have, and the one after the last that can be read."""
        return {number: self.bounds_of(number) for number in partitions or self.partitions()}

    def bounds_of(self, partition: int) -> tuple[int, int]:
        """The same for one partition."""
        place = optional_module("confluent_kafka").TopicPartition(self.name, partition)
        with self._errors():
            low, high = self.consumer().get_watermark_offsets(place, timeout=self.timeout, cached=False)
        return low, high

    def consumer(self) -> Any:
        """A consumer of this process, which later tasks use again."""
        with self._errors():
            return _consumer(tuple(sorted(self.settings.items())))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of librdkafka as `DataError`."""
        try:
            yield
        except optional_module("confluent_kafka").KafkaException as error:
            raise self.failed(error.args[0]) from error

    def failed(self, error: Any) -> DataError:
        """The error for one of librdkafka, which has no passwords in its text."""
        return DataError(f"topic '{self.name}' cannot be read from {self.servers}: {error.str()}")


@lru_cache(maxsize=4)
def _consumer(settings: tuple[tuple[str, Any], ...]) -> Any:
    # Offsets are those of Spark's checkpoint: none are stored at the broker, and a missing one is an error.
    own = {
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # Errors are raised; librdkafka would also print them.
        "log_level": 0,
    }
    return optional_module("confluent_kafka").Consumer({"group.id": "anabranch", **dict(settings), **own})


def tasks_of(topic: str, starts: Offsets, stops: Offsets) -> list[dict[str, Any]]:
    """The tasks that read from some offsets to others; a partition without a start is read from its beginning."""
    tasks = []
    for partition, stop in sorted(stops.items()):
        start = starts.get(partition, 0)
        while start < stop:
            end = min(stop, start + _MOST_PER_TASK)
            path = f"{topic}[{partition}] from offset {start}"
            tasks.append({"path": path, "partition": partition, "start": start, "stop": end})
            start = end
    return tasks


def limited(starts: Offsets, stops: Offsets, most: int | None) -> Offsets:
    """The offsets to read to in one micro-batch of at most about `most` messages, shared in proportion."""
    waiting = {partition: max(0, stop - starts.get(partition, 0)) for partition, stop in stops.items()}
    total = sum(waiting.values())
    if most is None or total <= most:
        return dict(stops)
    # Each partition with messages reads at least one, so that none has to wait for ever.
    shares = {partition: -(-number * most // total) for partition, number in waiting.items()}
    return {partition: starts.get(partition, 0) + share for partition, share in shares.items()}


@dataclass(frozen=True, slots=True)
class KafkaReader:
    """Reads ranges of a topic (a `TaskReader`).

    Attributes
    ----------
    columns : the columns of the rows, in order
    keep_losses : quarantine messages that the broker no longer has, instead of failing
    """

    topic: Topic
    values: ValueFormat
    columns: Sequence[str]
    keep_losses: bool = False

    def tables(self, task: dict[str, Any], layout: Layout) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The rows of a range, and a QUARANTINE table of the messages that cannot be read."""
        for rows, rejected in self.rows(task, layout.name):
            yield joined([(rows, rejected)], layout)

    def rows(self, task: dict[str, Any], stream: str) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The same with the columns of the reader, as the source names them."""
        partition, start, stop = task["partition"], task["start"], task["stop"]
        try:
            for messages in self._messages(partition, start, stop):
                yield read_messages(messages, self.values, self.columns, stream)
        except LostMessages as error:
            first, _ = self.topic.bounds_of(partition)
            if not self.keep_losses or first <= start:
                raise DataError(str(error)) from error
            yield self._lost(partition, start, min(first, stop), stream)
            if first < stop:
                yield from self.rows({**task, "start": first}, stream)

    def _lost(self, partition: int, start: int, stop: int, stream: str) -> tuple[pa.Table, pa.Table]:
        row: dict[str, object] = {"topic": self.topic.name, "partition": partition, "offset": start, "until": stop}
        empty = read_messages(_batch(self.topic.name, []), self.values, self.columns, stream)[0]
        return empty, pa.concat_tables([QUARANTINE.empty_table(), quarantine(stream, LOST, [row])])

    def _messages(self, partition: int, start: int, stop: int) -> Iterator[Messages]:
        """The messages of a range in parts. Offsets may be missing: those of transactions, and in compacted topics."""
        kafka = optional_module("confluent_kafka")
        topic = self.topic
        consumer = topic.consumer()
        position, deadline = start, time.monotonic() + topic.timeout
        consumer.assign([kafka.TopicPartition(topic.name, partition, start)])
        try:
            while position < stop:
                received = consumer.consume(min(stop - position, _MOST_AT_ONCE), _WAIT)
                position = max([position, *(self._position(message, partition, start) for message in received)])
                messages = [each for each in received if each.error() is None and each.offset() < stop]
                if messages:
                    yield _batch(topic.name, messages)
                    deadline = time.monotonic() + topic.timeout
                elif time.monotonic() > deadline:
                    raise DataError(
                        f"no messages of topic '{topic.name}' from {topic.servers} for {topic.timeout:g} seconds: "
                        f"partition {partition} should have offsets {position} to {stop - 1}"
                    )
        except kafka.KafkaException as error:
            raise topic.failed(error.args[0]) from error
        finally:
            consumer.unassign()

    def _position(self, message: Any, partition: int, start: int) -> int:
        """The offset behind a message, or behind the end of the partition."""
        error = message.error()
        if error is None:
            return int(message.offset()) + 1
        codes = optional_module("confluent_kafka").KafkaError
        if error.code() == codes._PARTITION_EOF:
            return int(message.offset())
        if error.code() == codes._AUTO_OFFSET_RESET:
            raise LostMessages(self._loss(partition, start))
        if error.code() in (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT):
            return 0  # librdkafka connects again, until the time is over
        raise self.topic.failed(error)

    def _loss(self, partition: int, start: int) -> str:
        first, stop = self.topic.bounds_of(partition)
        where = f"partition {partition} of topic '{self.topic.name}'"
        if start > stop:
            return (
                f"{where} ends at offset {stop}, but offset {start} was read before: the topic was created again; "
                "start with a new checkpoint"
            )
        return (
            f"{where} has lost the offsets {start} to {first - 1}: the broker deleted them before they were read; "
            "write on_loss = 'quarantine' to go on, and keep messages for longer"
        )


def _batch(topic: str, messages: Sequence[Any]) -> Messages:
    """Messages of librdkafka with their metadata."""
    # A key that is no UTF-8 is found when the rows are checked.
    keys = pa.array([message.key() for message in messages], pa.binary()).view(pa.string())
    times = [_MICROSECONDS * milliseconds if kind else None for kind, milliseconds in map(_timestamp, messages)]
    metadata = {
        "message_key": keys,
        "message_timestamp": pa.array(times, pa.int64()).view(pa.timestamp("us", tz="UTC")),
        "message_topic": pa.array([topic] * len(messages), pa.string()),
        "message_partition": pa.array([message.partition() for message in messages], pa.int64()),
        "message_offset": pa.array([message.offset() for message in messages], pa.int64()),
    }
    places = {"topic": "message_topic", "partition": "message_partition", "offset": "message_offset"}
    return Messages([message.value() for message in messages], metadata, places)


def _timestamp(message: Any) -> tuple[int, int]:
    """The kind of the time of a message, 0 if it has none, and the milliseconds since 1970."""
    kind, milliseconds = message.timestamp()
    return kind, milliseconds
