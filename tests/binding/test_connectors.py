"""Options of connectors, FORMAT behind an address, and the columns of messages: checked without data."""

from __future__ import annotations

import pytest

from anabranch.binding.binder import declare
from anabranch.binding.connector_options import option_values, without_secrets
from anabranch.catalog import Catalog
from anabranch.errors import DataError
from anabranch.language import nodes
from anabranch.language.parser import parse

COLUMNS = "KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT"
SERVERS = "bootstrap_servers = 'a:9092'"


def messages(source: str, columns: str = COLUMNS) -> list[str]:
    text = f"CREATE STREAM s {columns} FROM {source};"
    return [finding.line("w.abq") for finding in declare(parse(text, "w.abq"), Catalog())]


def source_of(text: str) -> nodes.ConnectorSource:
    source = parse(f"CREATE STREAM s {COLUMNS} FROM {text};").statements[0].source
    assert isinstance(source, nodes.ConnectorSource)
    return source


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        (f"KAFKA 'at' OPTIONS ({SERVERS})", COLUMNS),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, format = 'CSV', columns = 'person, place, t, p')", COLUMNS),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, format = 'avro', schema = 'at.avsc', schema_id = 0)", "KEY (k) TIME t"),
        (
            f"KAFKA 'at' OPTIONS ({SERVERS}, security_protocol = 'SASL_SSL', sasl_mechanism = 'plain', "
            "sasl_username = 'ann', sasl_password = '${KAFKA_PASSWORD}', ssl_ca = 'ca.pem')",
            COLUMNS,
        ),
        (f"KAFKA 'at' OPTIONS ({SERVERS})", "KEY (message_key AS k) TIME message_timestamp AS t"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, columns = 'v DOUBLE')", "KEY (k STRING) TIME t INTEGER WHERE v > 3"),
        (f"KAFKA 'at' OPTIONS ({SERVERS})", "KEY (k STRING) TIME t FORMAT 'yyyy-MM-dd'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS})", "KEY (k STRING) TIME t ZONE 'Europe/Zurich'"),
        ("SOURCE 'jdbc' OPTIONS (url = 'jdbc:x:y?user=ann', dbtable = 't', password = '${PG}')", COLUMNS),
        ("SOURCE 'kafka' OPTIONS (`kafka.sasl.jaas.config` = 'user=a password=\"${P}\";')", COLUMNS),
        ("SOURCE 'rate' OPTIONS (rowsPerSecond = 5)", COLUMNS),
        ("'s3a://lake/events/' FORMAT parquet", COLUMNS),
        ("'dbfs:/events' FORMAT csv OPTIONS (sep = ';')", COLUMNS),
        ("'hdfs://host/events/*.json'", COLUMNS),
    ],
)
def test_these_sources_are_allowed(source: str, columns: str) -> None:
    assert messages(source, columns) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("KAFKA 'at'", "FROM KAFKA needs the option bootstrap_servers"),
        ("KAFKA '' OPTIONS (bootstrap_servers = 'a')", "FROM KAFKA needs a name; write the name of a topic"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, offset = 'x')", "FROM KAFKA has no option 'offset'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, {SERVERS})", "option 'bootstrap_servers' is given twice"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, format = 'xml')", "write 'json', 'csv' or 'avro'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, on_loss = 'ignore')", "write 'fail' or 'quarantine'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, max_rows_per_batch = 0)", "write a whole number of at least 1"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, group_id = 3)", "write a text in single quotes"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, format = 'csv')", "CSV messages need the option columns"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, format = 'csv', columns = 'person, place, t')", "has no column 'p'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, columns = 'p STRNG')", "cannot be read at 'p STRNG'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, columns = 'p, P')", "cannot be read at 'P'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, format = 'avro')", "schema = 'event.avsc'"),
        (f"KAFKA 'at' OPTIONS ({SERVERS}, schema = 'x')", "the option schema is for AVRO messages"),
        (
            f"KAFKA 'at' OPTIONS ({SERVERS}, sasl_username = 'ann')",
            "the option sasl_username has no effect with the protocol plaintext",
        ),
        ("SOURCE 'text' OPTIONS (cleanSource = 'delete')", "a query never deletes or moves its input"),
        ("SOURCE 'jdbc' OPTIONS (sessionInitStatement = 'DROP TABLE x')", "a query runs no statements on its input"),
        ("SOURCE 'xml' OPTIONS (mode = 'DropMalformed')", "rows would be lost without a count"),
        ("SOURCE 'csv' OPTIONS (path = 'x')", "write FROM 'path' FORMAT csv, which quarantines them"),
        ("SOURCE ''", "write the name of a source of Spark"),
        ("'s3a://lake/events/'", "write FORMAT csv, json or parquet"),
        ("'s3a://lake/events/' FORMAT paquet", "did you mean 'parquet'?"),
        ("'lake/' FORMAT parquet OPTIONS (sep = ';')", "the option 'sep' is not allowed for PARQUET files"),
    ],
)
def test_these_sources_are_refused_in_one_line(source: str, message: str) -> None:
    (line,) = messages(source)
    assert message in line
    assert len(line.splitlines()) == 1


def test_columns_of_messages_need_types() -> None:
    (line,) = messages(f"KAFKA 'at' OPTIONS ({SERVERS})", "KEY (k) TIME t INTEGER WHERE v > 3")
    assert "the types of k and v are not known, because messages have no schema; declare them" in line


@pytest.mark.parametrize(
    "option",
    [
        "sasl_password = 'hunter2', security_protocol = 'sasl_ssl'",
        "bootstrap_servers = 'x://ann:hunter2@host'",
    ],
)
def test_a_secret_of_a_topic_is_never_written_in_the_workbook(option: str) -> None:
    servers = "" if "bootstrap" in option else f"{SERVERS}, "
    (line,) = messages(f"KAFKA 'at' OPTIONS ({servers}{option})")
    assert "has a secret in the text of the workbook; write '${" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "option",
    [
        "password = 'hunter2'",
        "url = 'jdbc:postgresql://host/db?user=ann&password=hunter2'",
        "url = 'mongodb://ann:hunter2@host/db'",
        "`fs.s3a.secret.key` = 'hunter2'",
        "`kafka.sasl.jaas.config` = 'hunter2'",
        "accessToken = 'hunter2'",
    ],
)
def test_a_secret_of_a_source_is_never_written_in_the_workbook(option: str) -> None:
    (line,) = messages(f"SOURCE 'x' OPTIONS ({option})")
    assert "has a secret in the text of the workbook" in line
    assert "hunter2" not in line


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of("SOURCE 'x' OPTIONS (url = 'a?password=${TEST_PASSWORD}', n = 3, header = TRUE)")
    monkeypatch.delenv("TEST_PASSWORD", raising=False)
    with pytest.raises(DataError, match="the environment has no TEST_PASSWORD, which the option url needs"):
        option_values(source)
    monkeypatch.setenv("TEST_PASSWORD", "hunter2")
    assert option_values(source) == {"url": "a?password=hunter2", "n": "3", "header": "true"}
    assert without_secrets("no access to a?password=hunter2", source) == "no access to a?password=***"


def test_values_of_the_environment_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(f"KAFKA 'x' OPTIONS ({SERVERS}, max_rows_per_batch = '${{TEST_ROWS}}', FORMAT = 'json')")
    monkeypatch.setenv("TEST_ROWS", "many")
    with pytest.raises(DataError, match="option max_rows_per_batch: write a whole number of at least 1"):
        option_values(source)
    monkeypatch.setenv("TEST_ROWS", "10")
    assert option_values(source)["max_rows_per_batch"] == "10"
    assert option_values(source)["format"] == "json"
