"""Targets of queries (`TO ...`) and their secrets, without a connection."""

from __future__ import annotations

import pytest
from tests.language.workbooks import declared

from anabranch.binding.binder import declare
from anabranch.binding.secrets import redacted, resolve
from anabranch.binding.targets import target_options
from anabranch.catalog import Catalog
from anabranch.errors import AnabranchError, DataError, WorkbookError
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from anabranch.planning.planner import Planner

STREAM = "CREATE STREAM door KEY (id STRING) VALUE (side STRING) TIME t INTEGER;\n"


def workbook(target: str) -> str:
    return f"{STREAM}CREATE QUERY q TO {target} AS PATTERN door(x, 'in') THEN door(x, 'out') GROUP BY x;"


def messages(target: str) -> list[str]:
    return [finding.line("w.abq") for finding in declare(parse(workbook(target), "w.abq"), Catalog())]


@pytest.mark.parametrize(
    "target",
    [
        "'answers/'",
        "'answers/' FORMAT csv",
        "KAFKA 'alerts' OPTIONS (bootstrap_servers = 'a:1,b:1', transactions = FALSE, compression = 'zstd')",
        "MQTT 'shop/alerts' OPTIONS (server = 'host:1883', username = 'ana', password = '${KEY}', tls = TRUE)",
        "POSTGRES 'public.answers' OPTIONS (host = 'db', port = 5432, password = '${PGPASSWORD}')",
        "TABLE 'lake.shop.alerts' OPTIONS (format = 'delta')",
    ],
)
def test_a_target_is_kept_as_written(target: str) -> None:
    assert messages(target) == []
    (_, statement) = parse(workbook(target)).statements
    assert parse(unparse(statement)).statements == (statement,)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("KAFKAA 'x'", "there is no target 'KAFKAA'; did you mean 'KAFKA'?"),
        ("PG 'x'", "there is no target 'PG'; write TO KAFKA, MQTT, POSTGRES, TABLE or a folder"),
        ("'x/' FORMAT xml", "there is no format 'xml'; the formats are parquet, csv and json"),
        ("''", "the path is empty; write the path of a folder"),
        ("KAFKA 'a b' OPTIONS (bootstrap_servers = 'h:1')", "'a b' is not the name of a topic"),
        ("MQTT 'a/#' OPTIONS (server = 'h')", "'a/#' is not the name of a topic"),
        ("POSTGRES 'a.b.c'", "'a.b.c' is not the name of a table"),
        ("TABLE 'a;b'", "'a;b' is not the name of a table"),
        ("KAFKA 'x'", "TO KAFKA needs the option bootstrap_servers; write OPTIONS (bootstrap_servers = ...)"),
        ("MQTT 'x'", "TO MQTT needs the option server"),
        (
            "MQTT 'x' OPTIONS (server = 'h', qos = 0)",
            "TO MQTT has no option 'qos'; the options are ca_file, client_id",
        ),
        ("KAFKA 'x' OPTIONS (bootstrap_servers = 'h:1', acks = 1)", "TO KAFKA has no option 'acks'"),
        ("KAFKA 'x' OPTIONS (bootstrap_servers = 'h:1', transactions = 'no')", "wrong value; write TRUE or FALSE"),
        ("KAFKA 'x' OPTIONS (bootstrap_servers = 'h', ssl_ca = 'x')", "write security_protocol = 'ssl' or 'sasl_ssl'"),
        ("POSTGRES 'x' OPTIONS (host = 'a', host = 'b')", "option 'host' is given twice"),
        (
            "POSTGRES 'x' OPTIONS (password = 'sesame')",
            "the option 'password' has a secret in the text of the workbook; "
            "write '${PASSWORD}' instead of the secret, and set PASSWORD in the environment",
        ),
        ("KAFKA 'x' OPTIONS (bootstrap_servers = 'sasl://ana:sesame@h')", "has a secret in the text of the workbook"),
    ],
)
def test_what_is_wrong_with_a_target_is_one_line(target: str, message: str) -> None:
    lines = messages(target)
    assert len(lines) == 1
    assert message in lines[0]
    assert "sesame" not in lines[0]


def test_a_line_with_a_secret_is_not_shown() -> None:
    text = workbook("POSTGRES 'x' OPTIONS (password = 'open sesame', host = 'a', host = 'b')")
    with pytest.raises(WorkbookError) as caught:
        raise WorkbookError(declare(parse(text), Catalog()), text, "w.abq")
    assert "given twice" in caught.value.report()
    assert "sesame" not in caught.value.report()


def test_the_plan_names_the_target_and_its_promise_without_options() -> None:
    planner = Planner()
    planner.declare(parse(workbook("POSTGRES 'answers' OPTIONS (user = 'ana', password = '${PW}')")))
    (query,) = planner.catalog.queries()
    plan = planner.prepare(query).plan
    assert plan.steps[-1].id == "write"
    assert plan.steps[-1].does == (
        "the answers to POSTGRES 'answers': one transaction per micro-batch with its number, exactly once"
    )
    assert declared(workbook("'folder/'")).queries()[0].declaration.target == nodes.Target(None, "folder/")


def test_secrets_come_from_the_environment_and_leave_messages() -> None:
    options = [nodes.Option("password", "${PW}"), nodes.Option("url", "sasl://${WHO}:${PW}@host"), nodes.Option("n", 3)]
    environ = {"PW": "sesame", "WHO": "ana"}
    assert resolve(options, environ) == {"password": "sesame", "url": "sasl://ana:sesame@host", "n": "3"}
    assert redacted("cannot log in with sesame", options, environ) == "cannot log in with ***"
    with pytest.raises(AnabranchError, match="the environment has no PW, which the option password needs"):
        resolve(options, {"WHO": "ana"})


def test_flags_and_numbers_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    options = (
        nodes.Option("server", "h"), nodes.Option("tls", "${TEST_TLS}"), nodes.Option("keepalive", "${TEST_SECONDS}"),
    )  # fmt: skip
    target = nodes.Target("MQTT", "x", options)
    monkeypatch.setenv("TEST_TLS", "TRUE")
    monkeypatch.setenv("TEST_SECONDS", "30")
    assert target_options(target) == {"server": "h", "tls": "true", "keepalive": "30"}
    monkeypatch.setenv("TEST_TLS", "perhaps")
    with pytest.raises(DataError, match="wrong value for the option tls: write TRUE or FALSE"):
        target_options(target)
