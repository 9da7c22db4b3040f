"""`anabranch stream` on a Kafka topic, killed and resumed: the answers of a batch run, each exactly once."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.recovery.killing import Killable, micro_batches
from tests.runtime.office import SCHEMA, collect, query, same, written
from tests.servers.kafka import kafka_cluster, send

from anabranch import Session

pytest.importorskip("confluent_kafka")

#: Persons, the instants whose rows are there from the start, and all instants.
PERSONS, FIRST, TIMES = 30, 20, 30


def workbook(servers: str, most: int) -> str:
    columns = "KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT WATERMARK 3"
    options = f"bootstrap_servers = '{servers}', max_rows_per_batch = {most}"
    return f"CREATE STREAM at {columns} FROM KAFKA 'at' OPTIONS ({options});\n{query()}"


def send_times(servers: str, first: int, stop: int) -> None:
    """Send the rows of some instants; each partition has those of a quarter of the persons."""
    for partition in range(4):
        rows = [
            (f"p{person}", place, t, 0.5)
            for t in range(first, stop)
            for person in range(partition, PERSONS, 4)
            for place in ("hall", "coffee")
        ]
        send(servers, "at", [json.dumps(dict(zip(SCHEMA.names, row, strict=True))) for row in rows], partition)


@pytest.mark.slow
def test_a_killed_stream_has_the_answers_of_a_batch_run_each_once(
    spark: SparkSession, anabranch: Command, tmp_path: Path
) -> None:
    with kafka_cluster() as servers:
        (tmp_path / "workbook.abq").write_text(workbook(servers, most=100))
        folders = ("--checkpoint", tmp_path / "checkpoint", "--output", tmp_path / "out")
        arguments = ("stream", tmp_path / "workbook.abq", *folders, "--master", "local[2]")
        checkpoint = tmp_path / "checkpoint" / "coffee"
        send_times(servers, 0, FIRST)
        stream = Killable(tmp_path, *arguments)
        try:
            stream.wait_until(lambda: micro_batches(checkpoint) >= 3)
            send_times(servers, FIRST, TIMES)
            stream.kill("all", random.Random(5))
        finally:
            stream.kill_rest()
        resumed = anabranch(*arguments[:-2], "--once")
        assert resumed.status == 0, resumed.err
        session = Session(spark)
        session.execute(workbook(servers, most=100))
        expected = collect(session.run("coffee"))
    assert len(expected) == PERSONS * (TIMES - 1)
    assert same(written(tmp_path / "out" / "coffee"), expected)
    assert not list((tmp_path / "out").glob("_quarantine/*/*.json"))
