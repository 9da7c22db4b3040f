"""A Kafka cluster in another process: librdkafka's mock cluster, or a real one that an environment variable names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

#: The bootstrap servers of a real cluster on which the tests may create topics.
REAL = "ANABRANCH_TEST_KAFKA"

#: Prints the address of the cluster, which lives until its standard input is closed.
_SERVER = """
import sys
from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
(broker,) = producer.list_topics(timeout=30).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


@contextmanager
def mock_cluster() -> Iterator[str]:
    """The address of a cluster, which ends with the context. Its topics have four partitions, and keep 5 MB each."""
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            server.wait(timeout=30)


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
