"""Targets of queries (`TO ...`), with real servers: what they get in batch and as a stream, and after a failure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, answers_of, same, stream, write_parquet
from tests.runtime.streams import NOW
from tests.servers.kafka import kafka_cluster, read_topic
from tests.servers.mosquitto import Subscriber, mosquitto
from tests.servers.postgres import PASSWORD, Postgres, postgres

from anabranch import Session
from anabranch.errors import AnabranchError, DataError
from anabranch.runtime.failures import translate
from anabranch.runtime.sinks import messages
from anabranch.runtime.sinks.postgres import PostgresTarget


@pytest.fixture(autouse=True)
def stopped(spark: SparkSession) -> Iterator[None]:
    yield
    for running in spark.streams.active:
        running.stop()


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with kafka_cluster() as server:
        yield server


@pytest.fixture(scope="module")
def mqtt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with pytest.MonkeyPatch.context() as patch, postgres() as running:
        patch.setenv("PGTEST_PASSWORD", PASSWORD)
        yield running


class Cafe:
    """A query with a target over files."""

    def __init__(self, spark: SparkSession, folder: Path, target: str) -> None:
        self.folder, self.spark = folder, spark
        self.session = Session(spark)
        workbook = folder / "cafe.abq"
        workbook.write_text(
            stream("at", "'in/*.parquet'")
            + f"CREATE QUERY coffee TO {target} AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;"
        )
        for number, part in enumerate((ROWS[:4], ROWS[4:])):
            write_parquet(folder / "in" / f"{number}.parquet", part)
        self.session.execute_file(str(workbook))

    def run(self) -> None:
        self.session.deliver("coffee")

    def stream(self) -> None:
        """All rows, one file per micro-batch, then the end of the input."""
        for _ in range(2):
            running = self.session.start("coffee", str(self.folder / "checkpoint"), trigger=NOW, max_files=1)
            try:
                running.awaitTermination()
            except Exception as error:
                raise translate(error) from error
            self.session.end_input(str(self.folder / "checkpoint"))


def _fail_after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let a method fail after it is done, once: as if the process had ended there."""
    original = getattr(owner, name)

    def fails(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        monkeypatch.setattr(owner, name, original)
        raise AnabranchError("ended here")

    monkeypatch.setattr(owner, name, fails)


# ---------------------------------------------------------------- folders and tables


def test_a_folder_of_the_workbook_gets_the_answers(spark: SparkSession, tmp_path: Path) -> None:
    cafe = Cafe(spark, tmp_path, "'answers/' FORMAT csv")
    cafe.run()
    (tmp_path / "batch").mkdir()
    lines = [line for path in (tmp_path / "answers").glob("*.csv") for line in path.read_text().splitlines()[1:]]
    assert sorted(line.split(",")[:2] for line in lines) == [["2", "ann"], ["2", "bob"], ["3", "007"]]
    live = Cafe(spark, tmp_path / "batch", "'live/' FORMAT json")
    live.stream()
    files = (tmp_path / "batch" / "live").glob("*.json")
    assert same(answers_of([json.loads(line) for f in files for line in f.read_text().splitlines()]), ANSWERS)


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_text_files_have_the_texts_and_times_of_the_answers(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    names = [" ann ", 'the "boss", bob', "two\nlines", "back\\slash", ""]
    instant = pd.Timestamp("2026-03-02 09:00:00.123456", tz="UTC")
    session = Session(spark)
    session.execute(
        "CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t TIMESTAMP MODEL INDEPENDENT;"
        f"CREATE QUERY seen TO '{tmp_path / 'seen'}' FORMAT {file_format} AS PATTERN at(x, 'hall') GROUP BY x;"
    )
    session.bind("at", pd.DataFrame({"person": names, "place": "hall", "t": instant, "p": 0.5}))
    session.deliver("seen")
    paths = [path for path in (tmp_path / "seen").glob(f"*.{file_format}") if path.stat().st_size]
    read = partial(pd.read_csv, keep_default_na=False) if file_format == "csv" else partial(pd.read_json, lines=True)
    answers = pd.concat([rows for rows in map(read, paths) if len(rows)])
    assert sorted(answers["x"]) == sorted(names)
    assert set(pd.to_datetime(answers["t"])) == {instant}


def test_a_spark_table_gets_each_answer_once_after_a_failure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anabranch.runtime.sinks.table import TableTarget

    spark.sql("DROP TABLE IF EXISTS live_coffee")
    cafe = Cafe(spark, tmp_path, "TABLE 'live_coffee'")
    _fail_after(monkeypatch, TableTarget, "append")
    with pytest.raises(AnabranchError, match="ended here"):
        cafe.stream()
    cafe.stream()
    rows = [row.asDict() for row in spark.table("live_coffee").collect()]
    assert all(row.pop("_run") and row.pop("_batch") >= 0 for row in rows)
    assert same(answers_of(rows), ANSWERS)
    with pytest.raises(DataError, match="rows that are not of a batch run; use another table"):
        cafe.run()
    spark.sql("DROP TABLE live_coffee")


def test_a_batch_run_replaces_its_table_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS coffee_table")
    cafe = Cafe(spark, tmp_path, "TABLE 'coffee_table'")
    for _ in range(2):
        cafe.run()
        assert same(answers_of([row.asDict() for row in spark.table("coffee_table").collect()]), ANSWERS)
    spark.sql("DROP TABLE coffee_table")
    spark.sql("CREATE TABLE coffee_table USING parquet AS SELECT 1 AS one")
    with pytest.raises(DataError, match="use another table"):
        cafe.run()
    spark.sql("DROP TABLE coffee_table")


# ---------------------------------------------------------------- Kafka and MQTT


def _options(kafka: str) -> str:
    return f"OPTIONS (bootstrap_servers = '{kafka}')"


def test_kafka_gets_the_answers_with_ids(spark: SparkSession, tmp_path: Path, kafka: str) -> None:
    cafe = Cafe(spark, tmp_path, f"KAFKA 'batch' {_options(kafka)}")
    cafe.run()
    first = read_topic(kafka, "batch", 3)
    assert same(answers_of([json.loads(message.value()) for message in first]), ANSWERS)
    assert dict(first[0].headers()) == {"query": b"coffee", "run": b"run", "batch": b"0"}
    cafe.run()
    again = read_topic(kafka, "batch", 6)
    assert len(again) == 6
    assert {message.key() for message in again} == {message.key() for message in first}, "the same ids"
    assert len({message.key() for message in first}) == 3


def test_a_repeated_micro_batch_sends_the_same_messages_with_the_same_keys(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cafe = Cafe(spark, tmp_path, f"KAFKA 'live' {_options(kafka)}")
    _fail_after(monkeypatch, messages.KafkaSender, "send")
    with pytest.raises(AnabranchError, match="TO KAFKA 'live': ended here"):
        cafe.stream()
    sent = {message.key(): message.value() for message in read_topic(kafka, "live", 1)}
    assert sent
    cafe.stream()
    received = read_topic(kafka, "live", 3 + len(sent))
    assert len(received) == 3 + len(sent), "one micro-batch twice"
    distinct = {message.key(): message.value() for message in received}
    assert sent.items() <= distinct.items()
    assert same(answers_of([json.loads(value) for value in distinct.values()]), ANSWERS)


def test_kafka_without_transactions(spark: SparkSession, tmp_path: Path, kafka: str) -> None:
    options = f"OPTIONS (bootstrap_servers = '{kafka}', transactions = FALSE)"
    Cafe(spark, tmp_path, f"KAFKA 'plain' {options}").run()
    assert len(read_topic(kafka, "plain", 3)) == 3


def test_mqtt_gets_the_answers_with_ids(spark: SparkSession, tmp_path: Path, mqtt: str) -> None:
    cafe = Cafe(spark, tmp_path, f"MQTT 'alerts/coffee' OPTIONS (server = '{mqtt}')")
    subscriber = Subscriber(mqtt, "alerts/#")
    cafe.stream()
    payloads = [json.loads(payload) for payload in subscriber.wait(3)]
    subscriber.close()
    assert len({payload.pop("_id") for payload in payloads}) == 3
    assert same(answers_of(payloads), ANSWERS)
    subscriber = Subscriber(mqtt, "alerts/#")
    cafe.run()
    assert len(subscriber.wait(3)) == 3
    subscriber.close()


# ---------------------------------------------------------------- PostgreSQL


def _stored(server: Postgres, table: str) -> dict[tuple, float]:
    rows = server.rows(f"SELECT t, x, probability FROM {table}")
    assert len({row[:2] for row in rows}) == len(rows)
    return {row[:2]: row[2] for row in rows}


@pytest.mark.parametrize("method", ["write", "_insert"])
def test_postgres_gets_each_answer_once_after_a_failure_before_or_after_the_commit(
    spark: SparkSession, tmp_path: Path, server: Postgres, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    table = f"live{method}"
    cafe = Cafe(spark, tmp_path, f"POSTGRES '{table}' OPTIONS {server.options}")
    _fail_after(monkeypatch, PostgresTarget, method)
    with pytest.raises(AnabranchError, match="ended here"):
        cafe.stream()
    committed = method == "write"
    assert bool(server.rows(f"SELECT 1 FROM pg_tables WHERE tablename = '{table}'")) == committed
    cafe.stream()
    assert same(_stored(server, table), ANSWERS)
    ((batch, answers),) = server.rows(f"SELECT batch, answers FROM anabranch_batches WHERE target = '{table}'")
    assert batch > 0
    assert answers >= 1


def test_a_batch_run_replaces_its_answers_in_postgres_and_no_others(
    spark: SparkSession, tmp_path: Path, server: Postgres
) -> None:
    cafe = Cafe(spark, tmp_path, f"POSTGRES 'public.whole' OPTIONS {server.options}")
    for _ in range(2):
        cafe.run()
        assert same(_stored(server, "whole"), ANSWERS)
    write_parquet(tmp_path / "in" / "0.parquet", ROWS[:2])
    (tmp_path / "in" / "1.parquet").unlink()
    again = Session(spark)
    again.execute_file(str(tmp_path / "cafe.abq"))
    again.deliver("coffee")
    assert _stored(server, "whole").keys() == {(2, "ann")}


def test_events_and_times_are_stored_with_their_types(spark: SparkSession, tmp_path: Path, server: Postgres) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t TIMESTAMP;"
        f"CREATE QUERY pairs TO POSTGRES 'pairs' OPTIONS {server.options} AS"
        " CONSTRAIN a, b FROM e WHERE a.kind = 'A' AND b.kind = 'B' AND b.t - a.t IN [0, 60];"
    )
    times = pa.array([0, 30_000_000], pa.timestamp("us", "UTC"))
    session.bind("e", pa.table({"id": ["x", "y"], "kind": ["A", "B"], "t": times}))
    session.deliver("pairs")
    ((kind, a, second),) = server.rows("SELECT pg_typeof(t)::text, a, extract(epoch FROM t) FROM pairs")
    assert (kind, second) == ("timestamp with time zone", 30)
    assert a == {"id": "x", "kind": "A", "t": "1970-01-01T00:00:00.000Z"}


def test_numbers_that_json_lacks_and_nul_characters_are_stored(spark: SparkSession, server: Postgres) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER;"
        f"CREATE QUERY odd TO POSTGRES 'odd' OPTIONS {server.options} AS"
        " CONSTRAIN a, b FROM e AS a, e AS b WHERE b.t - a.t IN [1, 2];"
        f"CREATE QUERY named TO POSTGRES 'named' OPTIONS {server.options} AS PATTERN e(k, x, y) GROUP BY k;"
    )
    rows = [{"id": "one\0", "x": math.nan, "y": math.inf, "t": 0}, {"id": "two", "x": 0.0, "y": -math.inf, "t": 1}]
    session.bind("e", rows)
    session.deliver("odd")
    ((a, b),) = server.rows("SELECT a, b FROM odd")
    assert a == {"id": "one\ufffd", "x": "NaN", "y": "Infinity", "t": 0}
    assert b == {"id": "two", "x": 0.0, "y": "-Infinity", "t": 1}
    session.deliver("named")
    assert server.rows("SELECT k FROM named ORDER BY t") == [("one\ufffd",), ("two",)]


def test_a_table_with_other_columns_is_refused(spark: SparkSession, tmp_path: Path, server: Postgres) -> None:
    import psycopg

    with psycopg.connect(host="127.0.0.1", port=server.port, dbname="postgres", user="ana", password=PASSWORD) as other:
        other.execute("CREATE TABLE taken (one integer)")
    cafe = Cafe(spark, tmp_path, f"POSTGRES 'taken' OPTIONS {server.options}")
    with pytest.raises(AnabranchError, match="TO POSTGRES 'taken': the table has no column _batch"):
        cafe.run()


# ---------------------------------------------------------------- secrets


def test_a_password_is_in_no_error_plan_or_checkpoint(
    spark: SparkSession, tmp_path: Path, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    cafe = Cafe(spark, tmp_path, f"POSTGRES 'secret' OPTIONS {server.options}")
    cafe.stream()
    assert PASSWORD not in str(cafe.session.explain("coffee"))
    files = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
    # A password that the server repeats in its message: it is the name of the database, too.
    monkeypatch.setenv("PGTEST_PASSWORD", "postgres")
    with pytest.raises(AnabranchError, match="TO POSTGRES 'secret'") as caught:
        cafe.run()
    assert "postgres" not in str(caught.value).replace("POSTGRES", "")
    monkeypatch.delenv("PGTEST_PASSWORD")
    with pytest.raises(AnabranchError, match="the environment has no PGTEST_PASSWORD, which the option password needs"):
        cafe.run()


def test_a_missing_package_says_how_to_install_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for number, (target, extra) in enumerate(
        (("POSTGRES 'x'", "postgres"), ("KAFKA 'x' OPTIONS (bootstrap_servers = 'x:1')", "kafka"))
    ):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(AnabranchError, match=rf"install it with: pip install 'anabranch\[{extra}\]'"):
            Cafe(spark, tmp_path / str(number), target).run()
