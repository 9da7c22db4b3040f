"""A stream that writes to PostgreSQL and Kafka is killed with kill -9, and restarted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.recovery.killing import Killable
from tests.runtime.office import write_parquet
from tests.servers.kafka import kafka_cluster, read_topic
from tests.servers.postgres import PASSWORD, Postgres, postgres

pytestmark = pytest.mark.slow

_FILES, _PEOPLE = 8, 5


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgres]:
    monkeypatch.setenv("PGTEST_PASSWORD", PASSWORD)
    with postgres() as server:
        yield server


def test_after_a_kill_postgres_has_each_answer_once_and_kafka_repeats_with_the_same_ids(
    tmp_path: Path, database: Postgres, spark: SparkSession, anabranch: Command
) -> None:
    command = ("stream", tmp_path / "cafe.abq", "--checkpoint", tmp_path / "checkpoint", "--max-files", "1")
    with kafka_cluster() as kafka:
        pattern = "PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x"
        (tmp_path / "cafe.abq").write_text(
            "CREATE STREAM at KEY (person) VALUE (place) TIME t MODEL INDEPENDENT FROM 'in/*.parquet';\n"
            f"CREATE QUERY stored TO POSTGRES 'stored' OPTIONS {database.options} AS {pattern};\n"
            f"CREATE QUERY sent TO KAFKA 'sent' OPTIONS (bootstrap_servers = '{kafka}') AS {pattern};\n"
        )
        expected = set()
        for number in range(_FILES):
            people = [f"person{number}-{index}" for index in range(_PEOPLE)]
            rows = [
                (person, place, 2 * number + t, 0.5) for t, place in enumerate(("hall", "coffee")) for person in people
            ]
            write_parquet(tmp_path / "in" / f"{number}.parquet", rows)
            expected |= {(2 * number + 1, person) for person in people}

        def stored() -> int:
            there = database.rows("SELECT to_regclass('stored') IS NOT NULL")[0][0]
            return database.rows("SELECT count(*) FROM stored")[0][0] if there else 0

        running = Killable(tmp_path, *command, "--master", "local[2]")
        running.wait_until(lambda: stored() > 0)
        running.kill("all", random.Random(1))
        assert stored() < len(expected), "killed before the end"
        assert PASSWORD not in running.log
        resumed = anabranch(*command, "--once")
        assert resumed.status == 0, resumed.err
        rows = database.rows("SELECT t, x, probability FROM stored")
        assert len(rows) == len(expected)
        assert {row[:2] for row in rows} == expected
        assert {row[2] for row in rows} == {0.25}
        messages = read_topic(kafka, "sent", len(expected))
    by_id = {}
    for message in messages:
        assert by_id.setdefault(message.key(), message.value()) == message.value(), "one id is one answer"
    answers = [json.loads(value) for value in by_id.values()]
    assert len(answers) == len(expected), "without repetitions, each answer is there once"
    assert {(answer["t"], answer["x"]) for answer in answers} == expected
