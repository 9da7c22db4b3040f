"""The targets of queries (`TO KAFKA 'alerts' OPTIONS (...)`): what is checked without a connection."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch.binding.connector_options import (
    CONNECTOR_OPTIONS,
    MQTT_OPTIONS,
    Allowed,
    check_named_options,
    check_protocol,
    checked_values,
)
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.unparse import unparse

#: The formats of a folder.
FORMATS = ("parquet", "csv", "json")

#: The options of a connection to Kafka, which FROM KAFKA has too.
_KAFKA_CONNECTION = (
    "bootstrap_servers", "client_id", "sasl_mechanism", "sasl_password", "sasl_username", "security_protocol", "ssl_ca",
    "ssl_certificate", "ssl_key", "ssl_key_password",
)  # fmt: skip
#: The parameters of libpq that are texts.
_LIBPQ = (
    "application_name", "channel_binding", "dbname", "gssencmode", "host", "hostaddr", "krbsrvname", "passfile",
    "service", "sslcert", "sslkey", "sslmode", "sslrootcert", "target_session_attrs", "user",
)  # fmt: skip
_TEXT, _SECRET, _NUMBER = Allowed(), Allowed(secret=True), Allowed(least=1)

#: The options of each system.
TARGET_OPTIONS: dict[str, dict[str, Allowed]] = {
    "KAFKA": {
        **{name: CONNECTOR_OPTIONS["KAFKA"][name] for name in _KAFKA_CONNECTION},
        "compression": Allowed(("none", "gzip", "snappy", "lz4", "zstd")),
        "transactions": Allowed(is_flag=True),
    },
    "MQTT": MQTT_OPTIONS,
    "POSTGRES": {
        **dict.fromkeys(_LIBPQ, _TEXT),
        "connect_timeout": _NUMBER, "password": _SECRET, "port": _NUMBER, "sslpassword": _SECRET,
    },
    "TABLE": {"format": _TEXT},
}  # fmt: skip

_TABLE_PART = r"(\w+|`[^`]+`)"
_TABLE_NAME = re.compile(rf"{_TABLE_PART}(\.{_TABLE_PART}){{0,2}}")
_POSTGRES_NAME = re.compile(r"\w+(\.\w+)?")
#: Wildcards of MQTT are for subscribers.
_MQTT_TOPIC = re.compile(r"[^#+\0]+")
_KAFKA_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class System:
    """A system that answers are written to.

    Attributes
    ----------
    what : what the name of the target is, for messages
    name : the names that are valid
    promise : what holds after a restart, for the plan
    """

    what: str
    name: re.Pattern[str]
    promise: str


SYSTEMS = {
    "KAFKA": System(
        "a topic",
        _KAFKA_TOPIC,
        "one transaction per micro-batch; one that is repeated after a failure has the same keys",
    ),
    "MQTT": System("a topic", _MQTT_TOPIC, "QoS 1, at least once"),
    "POSTGRES": System("a table", _POSTGRES_NAME, "one transaction per micro-batch with its number, exactly once"),
    "TABLE": System("a table", _TABLE_NAME, "rows have the number of their micro-batch, exactly once"),
}


def check_target(target: nodes.Target, findings: Findings) -> None:
    """Report what is wrong with a target."""
    if target.system is None:
        if not target.name.strip():
            findings.add("empty-path", "the path is empty", target.span, "write the path of a folder")
        if target.format is not None and target.format not in FORMATS:
            findings.unknown("format", target.format, FORMATS, target.span, f"the formats are {listed(FORMATS, 'and')}")
        return
    system = SYSTEMS.get(target.system)
    if system is None:
        hint = f"write TO {listed([*SYSTEMS, 'a folder'], 'or')}"
        findings.unknown("target", target.system, SYSTEMS, target.span, hint)
        return
    if not system.name.fullmatch(target.name):
        message = f"{shown(target.name)} is not the name of {system.what}"
        findings.add("invalid-name", message, target.span, f"write TO {target.system} 'name'")
    allowed = TARGET_OPTIONS[target.system]
    check_named_options(f"TO {target.system}", target.options, allowed, target.span, findings)
    if target.system == "KAFKA":
        check_protocol(target.options, findings)


def target_options(target: nodes.Target) -> dict[str, str]:
    """The options of a target in lower case, with its secrets from the environment."""
    return checked_values(target.options, TARGET_OPTIONS[str(target.system)])


def target_name(target: nodes.Target) -> str:
    """The target without its options, which say who connects how.

    >>> target_name(nodes.Target("KAFKA", "alerts", (nodes.Option("sasl.username", "ana"),)))
    "KAFKA 'alerts'"
    """
    return unparse(nodes.Target(target.system, target.name, (), target.format)).removeprefix("TO ")


def described_target(target: nodes.Target) -> str:
    """The target and its promise, for the plan."""
    where = target_name(target)
    if target.system is None:
        return f"the answers to the folder {where}, one file per micro-batch, exactly once"
    # A plan is also made of a query with an unknown target, which is reported.
    system = SYSTEMS.get(target.system)
    return f"the answers to {where}" + (f": {system.promise}" if system else "")
