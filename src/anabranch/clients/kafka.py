"""Sends messages to Kafka topics and waits until the brokers have stored them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from anabranch.clients.extras import optional_module
from anabranch.errors import AnabranchError

#: How long brokers may take to answer, in seconds.
TIMEOUT = 30.0

#: An idempotent producer: a message that is sent again after a lost connection is stored once. Errors are raised, so
#: the client need not print them.
_DEFAULTS: Mapping[str, object] = {"enable.idempotence": True, "linger.ms": 5, "log_level": 0}


#: The settings of librdkafka for options.
_SETTINGS = {
    "bootstrap_servers": "bootstrap.servers",
    "client_id": "client.id",
    "compression": "compression.type",
    "group_id": "group.id",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_password": "sasl.password",
    "sasl_username": "sasl.username",
    "security_protocol": "security.protocol",
    "ssl_key_password": "ssl.key.password",
}
_PATHS = {"ssl_ca": "ssl.ca.location", "ssl_certificate": "ssl.certificate.location", "ssl_key": "ssl.key.location"}


def kafka_settings(options: Mapping[str, str], base: str) -> dict[str, str]:
    """The settings of librdkafka for options of a workbook; paths are relative to the folder `base`."""
    settings = {setting: options[name] for name, setting in _SETTINGS.items() if name in options}
    return settings | {
        setting: os.path.join(base, options[name]) for name, setting in _PATHS.items() if name in options
    }


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a topic."""

    topic: str
    value: bytes
    key: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class KafkaSender:
    """A producer.

    Parameters
    ----------
    settings : of librdkafka, such as `bootstrap.servers`
    transactional_id : the same after each restart, so that the brokers abort what an earlier process has left open;
        None to send without transactions
    """

    def __init__(self, settings: Mapping[str, object], transactional_id: str | None = None) -> None:
        kafka = optional_module("confluent_kafka")
        self._exception: type[Exception] = kafka.KafkaException
        self._is_transactional = transactional_id is not None
        identity = {"transactional.id": transactional_id} if transactional_id else {}
        self._failures: list[str] = []
        #: How many messages the brokers have stored.
        self.sent = 0
        with self._one_line():
            self._producer: Any = kafka.Producer({**_DEFAULTS, **settings, **identity})
            # Without a broker, this fails at once; sending would try for minutes.
            self._producer.list_topics(timeout=TIMEOUT)
            if self._is_transactional:
                self._producer.init_transactions(TIMEOUT)

    def send(self, messages: Iterable[Message]) -> None:
        """Send messages, in one transaction if the producer has any; returns when all are stored."""
        with self._one_line():
            if not self._is_transactional:
                self._store(messages)
                return
            self._producer.begin_transaction()
            try:
                self._store(messages)
                self._producer.commit_transaction(TIMEOUT)
            except BaseException:
                self._producer.abort_transaction(TIMEOUT)
                raise

    def _store(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._queue(message)
        left = self._producer.flush(TIMEOUT)
        if left or self._failures:
            reason = self._failures[0] if self._failures else f"{left:,} messages were not stored in {TIMEOUT:g} s"
            self._failures.clear()
            raise AnabranchError(f"Kafka: {reason}")

    def _queue(self, message: Message) -> None:
        headers = [(name, text.encode()) for name, text in message.headers.items()]
        while True:
            try:
                self._producer.produce(
                    message.topic, message.value, message.key, headers=headers, on_delivery=self._delivered
                )
                self._producer.poll(0)
                return
            except BufferError:  # the queue of the client is full
                self._producer.poll(1)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.sent += 1
        else:
            self._failures.append(error.str())

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Errors of the client as one line."""
        try:
            yield
        except self._exception as error:
            raise AnabranchError(f"Kafka: {error.args[0].str()}") from error

    def close(self) -> None:
        """Wait for messages that are on their way."""
        self._producer.flush(TIMEOUT)
