"""Where an archive is played to: a folder, a Kafka topic or an MQTT topic."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from anabranch.clients.kafka import KafkaSender, Message
from anabranch.clients.mqtt import MqttSender
from anabranch.replay.archive import Archive


class FolderTarget:
    """Small files of the format of the archive. A reader never sees an incomplete one."""

    def __init__(self, archive: Archive, folder: str) -> None:
        self._archive = archive
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        # Unique, so that a second replay adds files; in order, because Spark reads older files first.
        self._prefix = f"replay-{time.time_ns() // 1000}"
        self._number = 0
        self._modified = 0.0
        self.sent = 0

    def send(self, rows: pa.Table) -> None:
        """Write a file under a hidden name, and rename it."""
        name = f"{self._prefix}-{self._number:06d}.{self._archive.suffix}"
        draft = self._folder / f".{name}"
        draft.write_bytes(self._archive.file_text(rows))
        # Spark orders files by their time in milliseconds. Two files of one millisecond would have no order.
        self._modified = max(time.time(), self._modified + 0.002)
        os.utime(draft, (self._modified, self._modified))
        os.replace(draft, self._folder / name)
        self._number += 1
        self.sent += rows.num_rows

    def close(self) -> None:
        """Nothing is open."""


class KafkaTarget:
    """Messages of a topic: the rows as JSON, with a column as the key."""

    def __init__(self, archive: Archive, topic: str, settings: Mapping[str, str], key: str | None) -> None:
        self._archive, self._topic, self._key = archive, topic, key
        self._sender = KafkaSender(settings)

    @property
    def sent(self) -> int:
        """How many messages the brokers have stored."""
        return self._sender.sent

    def send(self, rows: pa.Table) -> None:
        """Send the rows; returns when the brokers have stored them."""
        values = self._archive.messages(rows)
        keys = self._archive.keys(rows, self._key) if self._key else [None] * len(values)
        self._sender.send(Message(self._topic, value, key) for value, key in zip(values, keys, strict=True))

    def close(self) -> None:
        """Wait for messages that are on their way."""
        self._sender.close()


class MqttTarget:
    """Messages of a topic: the rows as JSON."""

    def __init__(self, archive: Archive, topic: str, settings: Mapping[str, str]) -> None:
        self._archive, self._topic = archive, topic
        self._sender = MqttSender(settings)

    @property
    def sent(self) -> int:
        """How many messages the broker has acknowledged."""
        return self._sender.sent

    def send(self, rows: pa.Table) -> None:
        """Publish the rows; returns when the broker has acknowledged them."""
        self._sender.send(self._topic, self._archive.messages(rows))

    def close(self) -> None:
        """End the connection."""
        self._sender.close()
