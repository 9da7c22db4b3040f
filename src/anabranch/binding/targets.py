"""The targets of queries (`TO KAFKA 'alerts' OPTIONS (...)`): what is checked without a connection."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from anabranch.binding.secrets import refuse_literal_secrets
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.unparse import unparse

#: The formats of a folder.
FORMATS = ("parquet", "csv", "json")

_MQTT_OPTIONS = ("server", "client_id", "username", "password", "tls", "ca_file", "keepalive")
_POSTGRES_OPTIONS = (
    "host", "hostaddr", "port", "dbname", "user", "password", "passfile", "service", "connect_timeout", "sslmode",
    "sslrootcert", "sslcert", "sslkey", "sslpassword", "application_name", "target_session_attrs", "gssencmode",
    "krbsrvname", "channel_binding", "options",
)  # fmt: skip

#: Properties of librdkafka on which the promise of the target depends.
_OWN_PROPERTIES = ("transactional.id", "enable.idempotence", "acks", "request.required.acks")

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
    allows : whether an option is known
    needs : options without which there is no connection
    promise : what holds after a restart, for the plan
    """

    what: str
    name: re.Pattern[str]
    allows: Callable[[str], bool]
    needs: tuple[str, ...]
    promise: str


SYSTEMS = {
    "KAFKA": System(
        "a topic",
        _KAFKA_TOPIC,
        # Other properties are known to librdkafka only.
        lambda name: name == "transactions" or (name not in _OWN_PROPERTIES and "." in name) or name == "log_level",
        ("bootstrap.servers",),
        "one transaction per micro-batch; one that is repeated after a failure has the same keys",
    ),
    "MQTT": System("a topic", _MQTT_TOPIC, _MQTT_OPTIONS.__contains__, ("server",), "QoS 1, at least once"),
    "POSTGRES": System(
        "a table", _POSTGRES_NAME, _POSTGRES_OPTIONS.__contains__, (),
        "one transaction per micro-batch with its number, exactly once",
    ),
    "TABLE": System(
        "a table", _TABLE_NAME, lambda name: name == "format", (),
        "rows have the number of their micro-batch, exactly once",
    ),
}  # fmt: skip


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
    _check_options(target, system, findings)


def _check_options(target: nodes.Target, system: System, findings: Findings) -> None:
    names = [option.name.lower() for option in target.options]
    for number, option in enumerate(target.options):
        if names[number] in names[:number]:
            message = f"option {shown(option.name)} is given twice"
            findings.add("name-twice", message, option.span, "remove one of them")
        elif not system.allows(names[number]):
            message = f"the option {shown(option.name)} is not allowed for {target.system}"
            hint = "it is set so that answers are stored once" if names[number] in _OWN_PROPERTIES else _known(target)
            findings.add("target-option", message, option.span, hint)
    for name in system.needs:
        if name not in names:
            message = f"TO {target.system} needs the option {name}"
            findings.add("target-option", message, target.span, f"write OPTIONS ({name} = 'host:port')")
    refuse_literal_secrets(target.options, findings)


def _known(target: nodes.Target) -> str:
    if target.system == "KAFKA":
        return "the options are 'transactions' and the properties of librdkafka, such as bootstrap.servers"
    names = {"MQTT": _MQTT_OPTIONS, "POSTGRES": _POSTGRES_OPTIONS, "TABLE": ("format",)}[str(target.system)]
    return f"the options are {listed(names, 'and')}"


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
