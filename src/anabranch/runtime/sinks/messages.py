"""Answers as messages: of Kafka and MQTT topics."""

from __future__ import annotations

import json
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.binding.targets import target_options
from anabranch.clients.kafka import KafkaSender, Message, kafka_settings
from anabranch.clients.mqtt import MqttSender
from anabranch.columns.json_rows import json_rows
from anabranch.language import nodes
from anabranch.runtime.sinks.target import BATCH_RUN, AnswerWriter, answer_ids, without_secrets


class KafkaTarget:
    """A topic. The key of a message is the id of its answer; headers have the query, the run and the micro-batch.

    A micro-batch is one transaction. If it is repeated after a failure, the same messages follow with the same keys.
    """

    takes_frames: ClassVar[bool] = False

    def __init__(self, query: str, target: nodes.Target, base: str) -> None:
        self._query, self._target, self._base = query, target, base

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream."""
        with without_secrets(self._target):
            self._sender(None)
        return _KafkaWriter(self, owner)

    def write_whole(self, answers: DataFrame) -> None:
        """Send the answers of a batch run; a second run sends them again, with the same keys."""
        _KafkaWriter(self, BATCH_RUN)(answers.sparkSession, answers.toArrow(), 0)

    def sender(self, owner: str) -> KafkaSender:
        """A producer for the answers of a run."""
        return self._sender(f"anabranch-{owner}-{self._query}")

    def _sender(self, transactional_id: str | None) -> KafkaSender:
        options = target_options(self._target)
        uses_transactions = options.get("transactions") != "false"
        return KafkaSender(kafka_settings(options, self._base), transactional_id if uses_transactions else None)

    def messages(self, run: str, answers: pa.Table, batch: int) -> list[Message]:
        """The messages of a micro-batch."""
        rows = json_rows(answers)
        headers = {"query": self._query, "run": run, "batch": str(batch)}
        ids = answer_ids(self._query, run, batch, rows)
        return [
            Message(self._target.name, row.encode(), id_.encode(), headers) for row, id_ in zip(rows, ids, strict=True)
        ]

    @property
    def node(self) -> nodes.Target:
        """The declaration."""
        return self._target


class _KafkaWriter:
    """Connects when it is first called, so that it can be sent to a Spark Connect server before."""

    def __init__(self, target: KafkaTarget, owner: str) -> None:
        self._target, self._owner = target, owner
        self._sender: KafkaSender | None = None

    def __call__(self, spark: SparkSession, answers: pa.Table, batch: int) -> int:
        if answers.num_rows:
            with without_secrets(self._target.node):
                if self._sender is None:
                    self._sender = self._target.sender(self._owner)
                self._sender.send(self._target.messages(self._owner, answers, batch))
        return answers.num_rows


class MqttTarget:
    """A topic. The payload is the answer with its id, as `_id`. QoS 1: each arrives at least once."""

    takes_frames: ClassVar[bool] = False

    def __init__(self, query: str, target: nodes.Target, base: str) -> None:
        self._query, self._target = query, target

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream."""
        with without_secrets(self._target):
            MqttSender(target_options(self._target)).close()
        return _MqttWriter(self._query, self._target, owner)

    def write_whole(self, answers: DataFrame) -> None:
        """Publish the answers of a batch run; a second run publishes them again, with the same ids."""
        _MqttWriter(self._query, self._target, BATCH_RUN)(answers.sparkSession, answers.toArrow(), 0)


class _MqttWriter:
    """Connects for each micro-batch that has answers: an idle connection may be lost without notice."""

    def __init__(self, query: str, target: nodes.Target, owner: str) -> None:
        self._query, self._target, self._owner = query, target, owner

    def __call__(self, spark: SparkSession, answers: pa.Table, batch: int) -> int:
        if not answers.num_rows:
            return 0
        rows = json_rows(answers)
        ids = answer_ids(self._query, self._owner, batch, rows)
        # Every answer has columns, so a comma follows.
        payloads = [f'{{"_id":{json.dumps(id_)},{row[1:]}'.encode() for row, id_ in zip(rows, ids, strict=True)]
        with without_secrets(self._target):
            sender = MqttSender(target_options(self._target))
            try:
                sender.send(self._target.name, payloads)
            finally:
                sender.close()
        return answers.num_rows
