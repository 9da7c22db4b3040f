"""A Kafka cluster: the mock cluster of librdkafka, in a process of its own, over TCP; or a real one.

The mock cluster speaks Kafka's protocol, with idempotent producers and transactions, but it does not hide the messages
of transactions that were aborted. Its topics have four partitions, and keep 5 MB each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

#: The bootstrap servers of a real cluster on which the tests may create topics.
REAL = "ANABRANCH_TEST_KAFKA"

_CLUSTER = """
import sys
from confluent_kafka import Producer
cluster = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
broker = next(iter(cluster.list_topics(timeout=30).brokers.values()))
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


@contextmanager
def kafka_cluster() -> Iterator[str]:
    """The address of a broker, which runs until the block ends."""
    pytest.importorskip("confluent_kafka")
    with subprocess.Popen(
        [sys.executable, "-c", _CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def real_cluster() -> str | None:
    """The address of a real cluster, if the environment names one."""
    return os.environ.get(REAL)


def send(
    servers: str, topic: str, values: Sequence[bytes | str | None], partition: int = 0,
    keys: Sequence[bytes | str] | None = None, times: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Send messages in order to one partition, and wait until they are there; times are in milliseconds."""
    from confluent_kafka import Producer

    errors: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, "linger.ms": 0})
    for number, value in enumerate(values):
        producer.produce(
            topic, value, None if keys is None else keys[number], partition,
            lambda error, _: errors.append(error) if error else None, None, 0 if times is None else times[number],
        )  # fmt: skip
        producer.poll(0)
    assert producer.flush(30) == 0
    assert not errors, errors


def read_topic(server: str, topic: str, n_messages: int, seconds: float = 30.0) -> list:
    """The messages of a topic, by partition and offset; waits until there are `n_messages`."""
    from confluent_kafka import Consumer, TopicPartition

    from tests.servers.ports import wait_for

    consumer = Consumer({"bootstrap.servers": server, "group.id": "test", "enable.auto.commit": False, "log_level": 0})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        messages: list = []

        def enough() -> bool:
            messages.extend(m for m in consumer.consume(500, timeout=0.2) if m.error() is None)
            return len(messages) >= n_messages

        wait_for(enough, f"reading {n_messages} messages of {topic}", seconds)
        messages.extend(m for m in consumer.consume(500, timeout=0.5) if m.error() is None)
        return sorted(messages, key=lambda message: (message.partition(), message.offset()))
    finally:
        consumer.close()
