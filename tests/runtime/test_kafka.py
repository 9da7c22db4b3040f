"""Topics of Kafka as inputs, over TCP: the same answers as from files, in batch and as a stream that is restarted."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, collect, query, same, written
from tests.servers.kafka import REAL, kafka_cluster, real_cluster, send

from anabranch import Session
from anabranch.errors import AnabranchError, DataError

pytest.importorskip("confluent_kafka")

#: Each partition has the rows of other persons.
PARTITIONS = {"ann": 0, "bob": 1, "007": 3}


@pytest.fixture(scope="module")
def mock() -> Iterator[str]:
    with kafka_cluster() as servers:
        yield servers


@pytest.fixture(params=["mock", "real"])
def servers(request: pytest.FixtureRequest) -> str:
    """The mock cluster, and a real one if the environment names it."""
    if request.param == "mock":
        return request.getfixturevalue("mock")
    address = real_cluster()
    if address is None:
        pytest.skip(f"{REAL} does not name the bootstrap servers of a real cluster")
    return address


@pytest.fixture
def topic(servers: str) -> str:
    """The name of a new topic with four partitions."""
    name = f"at-{uuid.uuid4().hex}"
    if servers == real_cluster():
        from confluent_kafka.admin import AdminClient, NewTopic

        created = AdminClient({"bootstrap.servers": servers}).create_topics([NewTopic(name, 4, 1)])
        created[name].result(30)
    return name


def values(rows: list[tuple]) -> list[str]:
    return [json.dumps(dict(zip(SCHEMA.names, row, strict=True))) for row in rows]


def send_rows(servers: str, topic: str, rows: list[tuple] = ROWS) -> None:
    for person, partition in PARTITIONS.items():
        send(servers, topic, values([row for row in rows if row[0] == person]), partition)


COLUMNS = "KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT"


def session_on(
    spark: SparkSession, servers: str, topic: str, options: str = "", columns: str = COLUMNS, **declared: Any
) -> Session:
    session = Session(spark, **declared)
    source = f"FROM KAFKA '{topic}' OPTIONS (bootstrap_servers = '{servers}', timeout_seconds = 10{options})"
    session.execute(f"CREATE STREAM at {columns} WATERMARK 2 {source};\n{query()}")
    return session


def rejected(session: Session) -> list[tuple[str, dict]]:
    rows = session.validate("at").collect()
    return sorted(((row["reason"], json.loads(row["row"])) for row in rows), key=str)


def test_a_topic_has_the_answers_of_a_file(spark: SparkSession, servers: str, topic: str) -> None:
    send_rows(servers, topic)
    assert same(collect(session_on(spark, servers, topic).run("coffee")), ANSWERS)


def test_csv_and_avro_messages_have_the_answers_of_json(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    fastavro = pytest.importorskip("fastavro")
    send(servers, f"{topic}-csv", [";".join(map(str, row)) for row in ROWS])
    options = ", format = 'csv', separator = ';', columns = 'person, place, t, p'"
    assert same(collect(session_on(spark, servers, f"{topic}-csv", options).run("coffee")), ANSWERS)

    types = ["string", {"type": "enum", "name": "place", "symbols": ["hall", "coffee"]}, "long", ["null", "double"]]
    fields = [{"name": name, "type": kind} for name, kind in zip(SCHEMA.names, types, strict=True)]
    schema = {"type": "record", "name": "at", "fields": fields}
    (tmp_path / "at.avsc").write_text(json.dumps(schema))
    written_values = []
    for row in ROWS:
        value = io.BytesIO()
        fastavro.schemaless_writer(value, fastavro.parse_schema(schema), dict(zip(SCHEMA.names, row, strict=True)))
        written_values.append(b"\0" + (7).to_bytes(4, "big") + value.getvalue())
    send(servers, f"{topic}-avro", [*written_values, b"\0\0\0\0\x08" + written_values[0][5:], written_values[0] + b"x"])
    options = f", format = 'avro', schema = '{tmp_path}/at.avsc', schema_id = 7"
    session = session_on(spark, servers, f"{topic}-avro", options)
    assert same(collect(session.run("coffee")), ANSWERS)
    reasons = {row["reason"] for row in session.quarantine("coffee").collect()}
    assert reasons == {
        "the message was not written with the schema of this id", "the message does not fit the Avro schema",
    }  # fmt: skip


def test_the_key_and_the_time_of_a_message_are_columns(spark: SparkSession, servers: str, topic: str) -> None:
    rows = [json.dumps({"place": place, "p": p}) for _, place, _, p in ROWS]
    send(servers, topic, rows, keys=[row[0] for row in ROWS], times=[row[2] * 1000 for row in ROWS])
    columns = "KEY (message_key AS person) VALUE (place STRING) TIME message_timestamp AS t MODEL INDEPENDENT"
    session = session_on(spark, servers, topic, columns=columns)
    found = {(t.second, person): p for (t, person), p in collect(session.run("coffee")).items()}
    assert same(found, ANSWERS)


def test_messages_that_cannot_be_read_are_quarantined_with_their_place(
    spark: SparkSession, servers: str, topic: str
) -> None:
    send_rows(servers, topic)
    send(servers, topic, ["{", None, '{"person": "eve", "place": "hall", "t": "x", "p": 1}'], partition=2)
    session = session_on(spark, servers, topic)
    assert same(collect(session.run("coffee")), ANSWERS)
    place = {"topic": topic, "partition": 2}
    found = {json.loads(row["row"])["offset"]: row for row in session.quarantine("coffee").collect()}
    assert {offset: row["reason"] for offset, row in found.items()} == {
        0: "a cell does not fit its column's type", 1: "the message has no value",
        2: "a cell does not fit its column's type",
    }  # fmt: skip
    assert all(place.items() <= json.loads(row["row"]).items() for row in found.values())
    assert len(rejected(session)) == 3


def test_a_stream_that_is_restarted_loses_and_repeats_nothing(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    persons = [f"p{number}" for number in range(20)]
    rows = [(person, place, t, 0.5) for t in range(1, 13) for person in persons for place in ("hall", "coffee")]
    parts = [[row for row in rows if row[2] // 4 == part] for part in range(4)]
    send_all(servers, topic, parts[0])
    output, n_read = tmp_path / "out" / "coffee", 0
    for part in range(4):
        # A new session for each part, and a micro-batch for a few messages.
        session = session_on(spark, servers, topic, ", max_rows_per_batch = 60")
        running = session.start("coffee", str(tmp_path / "checkpoint"), str(output))
        try:
            if part:
                send_all(servers, topic, parts[part])
            running.processAllAvailable()
            if part == 3:
                session.end_input(str(tmp_path / "checkpoint"))
                running.processAllAvailable()
        finally:
            running.stop()
        n_read += session.counts("coffee").read
        assert session.counts("coffee").quarantined == 0
    assert n_read == len(rows)
    batch = collect(session_on(spark, servers, topic).run("coffee"))
    assert len(batch) > 200
    assert same(written(output), batch)


def send_all(servers: str, topic: str, rows: list[tuple]) -> None:
    """Send rows to all partitions in the order of their times."""
    for partition in range(4):
        send(servers, topic, values([row for row in rows if hash_of(row[0]) == partition]), partition)


def hash_of(person: str) -> int:
    return int(person[1:]) % 4


def test_all_messages_that_are_there_are_read_once_by_available_now(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    send_rows(servers, topic)
    session = session_on(spark, servers, topic, ", max_rows_per_batch = 1")
    for _ in range(2):
        stopped = session.start("coffee", str(tmp_path / "c"), str(tmp_path / "out"), trigger={"availableNow": True})
        assert stopped.awaitTermination(120)
        session.end_input(str(tmp_path / "c"))
    assert session.counts("coffee").read == len(ROWS)
    assert same(written(tmp_path / "out"), ANSWERS)


def test_a_new_stream_can_start_at_the_end(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    send_rows(servers, topic)
    session = session_on(spark, servers, topic, ", starting_offsets = 'latest'")
    running = session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    try:
        running.processAllAvailable()
        send(servers, topic, values([("eve", "hall", 5, 1.0), ("eve", "coffee", 6, 1.0)]), 2)
        session.end_input(str(tmp_path / "checkpoint"))
        running.processAllAvailable()
    finally:
        running.stop()
    assert session.counts("coffee").read == 2


def test_messages_that_the_broker_has_deleted_are_never_lost_silently(
    spark: SparkSession, mock: str, tmp_path: Path
) -> None:
    # The mock cluster keeps 5 MB of a partition.
    topic = f"at-{uuid.uuid4().hex}"
    send(mock, topic, values(ROWS))
    session = session_on(spark, mock, topic)
    running = session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    running.processAllAvailable()
    running.stop()
    filler = json.dumps({"person": "eve", "place": "desk", "t": 1, "p": 0.5, "filler": "x" * 50_000})
    send(mock, topic, [filler] * 300)

    running = session_on(spark, mock, topic).start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    with pytest.raises(Exception, match=r"has lost the offsets 6 to \d+: the broker deleted them"):
        running.processAllAvailable()
    running.stop()

    session = session_on(spark, mock, topic, ", on_loss = 'quarantine'")
    running = session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    running.processAllAvailable()
    running.stop()
    files = (tmp_path / "_quarantine" / "out").glob("*.json")
    lost = [json.loads(line) for file in files for line in file.read_text().splitlines() if "no longer" in line]
    (row,) = [json.loads(each["row"]) if isinstance(each["row"], str) else each["row"] for each in lost]
    assert row["offset"] == 6
    # The rest of the topic, and one row for all that was lost.
    assert session.counts("coffee").read == (306 - row["until"]) + 1


def test_a_checkpoint_is_not_used_for_another_topic(spark: SparkSession, mock: str, tmp_path: Path) -> None:
    first, second = (f"at-{uuid.uuid4().hex}" for _ in range(2))
    for topic in (first, second):
        send(mock, topic, values(ROWS))
    running = session_on(spark, mock, first).start("coffee", str(tmp_path / "c"), str(tmp_path / "out"))
    running.processAllAvailable()
    running.stop()
    running = session_on(spark, mock, second).start("coffee", str(tmp_path / "c"), str(tmp_path / "out"))
    with pytest.raises(Exception, match=f"the checkpoint has offsets of topic '{first}', not of '{second}'"):
        running.processAllAvailable()
    running.stop()


@pytest.mark.parametrize(
    ("servers", "topic", "message"),
    [
        ("127.0.0.1:1", "at", "topic 'at' cannot be read from 127.0.0.1:1: "),
        ("", "none", "there is no topic 'none' at "),
    ],
)
def test_a_broker_or_topic_that_is_missing_is_one_line(
    spark: SparkSession, mock: str, servers: str, topic: str, message: str
) -> None:
    session = session_on(spark, servers or mock, topic, "")
    with pytest.raises(DataError) as refused:
        session.run("coffee").collect()
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1


def test_a_secret_is_read_from_the_environment_and_shown_nowhere(
    spark: SparkSession, mock: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    topic, secret = f"at-{uuid.uuid4().hex}", "not-shown-anywhere"
    send(mock, topic, values(ROWS))
    # Without SASL, librdkafka ignores the password, but it is passed to it.
    options = (
        ", sasl_username = 'ann', sasl_password = '${TEST_KAFKA_PASSWORD}', security_protocol = '${TEST_PROTOCOL}'"
    )
    session = session_on(spark, mock, topic, options)
    with pytest.raises(DataError, match="the environment has no TEST_KAFKA_PASSWORD, which the option sasl_password"):
        session.run("coffee")
    monkeypatch.setenv("TEST_KAFKA_PASSWORD", secret)
    monkeypatch.setenv("TEST_PROTOCOL", "plaintext")
    frame = session.run("coffee")
    assert same(collect(frame), ANSWERS)
    running = session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    running.processAllAvailable()
    plans = running._jsq.explainInternal(True)
    running.stop()
    texts = [str(session.explain("coffee")), plans, frame._jdf.queryExecution().toString()]
    texts += [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in text for text in texts)


def test_without_the_package_one_line_says_how_to_install_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(AnabranchError, match=r"install it with: pip install 'anabranch\[kafka\]'"):
        session_on(spark, "localhost:9092", "at").run("coffee")
