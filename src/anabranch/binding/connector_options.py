"""The options of connectors (`FROM KAFKA`, `FROM SOURCE`): which are allowed, and where secrets come from.

A connector of this package has named options only. A source of Spark may have any, except those that delete or move
data, or that run statements. A value such as '${NAME}' is read from the environment when a query runs, so a secret is
never in a workbook, in `explain` or in a checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.binding.secrets import has_variable, redacted, refuse_literal_secrets, resolve
from anabranch.errors import DataError, Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, did_you_mean, listed, shown


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values of an option: one of `words`, a whole number of at least `least`, TRUE or FALSE, or any text."""

    words: tuple[str, ...] = ()
    least: int | None = None
    is_flag: bool = False
    required: bool = False
    secret: bool = False

    def fault(self, value: str | int | float | bool) -> str:
        """What the value should be; empty if it is allowed."""
        if self.least is not None:
            is_number = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
            return "" if is_number else f"write a whole number of at least {self.least}"
        if self.is_flag:
            return "" if isinstance(value, bool) else "write TRUE or FALSE"
        if not isinstance(value, str) or not value.strip():
            return "write a text in single quotes"
        if self.words and value.lower() not in map(str.lower, self.words):
            return f"write {listed(map(repr, self.words))}"
        return ""

    def typed(self, text: str) -> str | int | bool:
        """A text of the environment as the type of the option, if it has this form."""
        if self.least is not None and text.isdecimal():
            return int(text)
        if self.is_flag and text.lower() in ("true", "false"):
            return text.lower() == "true"
        return text


_TEXT = Allowed()

#: The options of values that are messages.
_MESSAGE_OPTIONS = {
    "columns": _TEXT,
    "format": Allowed(("json", "csv", "avro")),
    "schema": _TEXT,
    "schema_id": Allowed(least=0),
    "separator": _TEXT,
}

#: The options of a connection to an MQTT broker.
MQTT_OPTIONS = {
    "ca_file": _TEXT,
    "client_id": _TEXT,
    "keepalive": Allowed(least=1),
    "password": Allowed(secret=True),
    "server": Allowed(required=True),
    "tls": Allowed(is_flag=True),
    "username": _TEXT,
}

#: The options of each connector of this package.
CONNECTOR_OPTIONS: dict[str, dict[str, Allowed]] = {
    "MQTT": {**{name: _MESSAGE_OPTIONS[name] for name in ("columns", "format", "separator")}, **MQTT_OPTIONS},
    "KAFKA": {
        **_MESSAGE_OPTIONS,
        "bootstrap_servers": Allowed(required=True),
        "client_id": _TEXT,
        "group_id": _TEXT,
        "max_rows_per_batch": Allowed(least=1),
        "on_loss": Allowed(("fail", "quarantine")),
        "sasl_mechanism": Allowed(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
        "sasl_password": Allowed(secret=True),
        "sasl_username": _TEXT,
        "security_protocol": Allowed(("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
        "ssl_ca": _TEXT,
        "ssl_certificate": _TEXT,
        "ssl_key": _TEXT,
        "ssl_key_password": Allowed(secret=True),
        "starting_offsets": Allowed(("earliest", "latest")),
        "timeout_seconds": Allowed(least=1),
    },
}

#: Options of Spark's sources that are refused, in lower case, and why.
_REFUSED = {
    "badrecordspath": "a query never moves its input",
    "cleansource": "a query never deletes or moves its input",
    "preparequery": "a query runs no statements on its input; create a view in the database",
    "sessioninitstatement": "a query runs no statements on its input; create a view in the database",
    "sourcearchivedir": "a query never deletes or moves its input",
}

#: Formats of files that this package reads itself.
_QUARANTINED_FORMATS = ("csv", "json")


def check_connector(source: nodes.ConnectorSource, findings: Findings) -> None:
    """Report options that a connector does not have or allow, and secrets in the text of the workbook."""
    if not source.address.strip():
        what = "name of a source of Spark" if source.connector == "SOURCE" else "name of a topic"
        findings.add("empty-path", f"FROM {source.connector} needs a name", source.span, f"write the {what}")
    if source.connector == "SOURCE" and source.address.lower() in _QUARANTINED_FORMATS:
        message = f"FROM SOURCE '{source.address}' would take rows that cannot be read as NULL"
        hint = f"write FROM 'path' FORMAT {source.address.lower()}, which quarantines them"
        findings.add("source", message, source.span, hint)
    allowed = CONNECTOR_OPTIONS.get(source.connector)
    if allowed is None:
        for option in source.options:
            _check_spark_option(option, findings)
    else:
        check_named_options(f"FROM {source.connector}", source.options, allowed, source.span, findings)
    if source.connector == "KAFKA":
        check_protocol(source.options, findings)


def check_named_options(
    what: str, options: Sequence[nodes.Option], allowed: Mapping[str, Allowed], span: Span, findings: Findings
) -> None:
    """Report options that are not allowed, that are missing, or that have a wrong value."""
    for option in options:
        _check_option(option, allowed, what, findings)
    stated = {option.name.lower() for option in options}
    for name, rule in allowed.items():
        if rule.required and name not in stated:
            message = f"{what} needs the option {name}"
            findings.add("option", message, span, f"write OPTIONS ({name} = ...)")


def check_protocol(options: Sequence[nodes.Option], findings: Findings) -> None:
    """Report a user or a certificate that the protocol would not use: the broker would be asked without them."""
    stated = {option.name.lower(): option for option in options}
    protocol = stated.get("security_protocol")
    used = "plaintext" if protocol is None else str(protocol.value).lower()
    for prefix, protocols in (("sasl", "'sasl_ssl' or 'sasl_plaintext'"), ("ssl", "'ssl' or 'sasl_ssl'")):
        option = next((option for name, option in stated.items() if name.startswith(f"{prefix}_")), None)
        if option is not None and prefix not in used and not has_variable(used):
            message = f"the option {option.name} has no effect with the protocol {used}"
            findings.add("option", message, option.span, f"write security_protocol = {protocols}")


def _check_option(option: nodes.Option, allowed: Mapping[str, Allowed], what: str, findings: Findings) -> None:
    rule = allowed.get(option.name.lower())
    if rule is None:
        message = f"{what} has no option {shown(option.name)}"
        hint = did_you_mean(option.name, allowed) or f"the options are {listed(sorted(allowed), 'and')}"
        findings.add("option", message, option.span, hint)
        return
    refuse_literal_secrets(option, findings, rule.secret)
    # What the environment says is checked when the query runs.
    fault = "" if has_variable(option.value) else rule.fault(option.value)
    if fault:
        findings.add("option", f"the option {option.name} has a wrong value", option.span, fault)


def _check_spark_option(option: nodes.Option, findings: Findings) -> None:
    why = _REFUSED.get(option.name.lower())
    if option.name.lower() == "mode" and str(option.value).lower() == "dropmalformed":
        why = "rows would be lost without a count"
    if why is not None:
        findings.add("option", f"the option {shown(option.name)} is not allowed for an input", option.span, why)
    refuse_literal_secrets(option, findings)


def option_values(source: nodes.ConnectorSource) -> dict[str, str]:
    """The options as Spark takes them, by their names as written, with the values of the environment.

    Raises
    ------
    DataError
        If the environment lacks a variable, or has a value that the option does not allow.
    """
    return checked_values(source.options, CONNECTOR_OPTIONS.get(source.connector, {}))


def checked_values(options: Sequence[nodes.Option], allowed: Mapping[str, Allowed]) -> dict[str, str]:
    """The same for options with these rules."""
    resolved = resolve(options, os.environ)
    values = {}
    for option in options:
        value = resolved[option.name]
        rule = allowed.get(option.name.lower())
        if rule is not None and has_variable(option.value):
            if fault := rule.fault(rule.typed(value)):
                raise DataError(f"the environment has a wrong value for the option {option.name}: {fault}")
        if rule is None:
            values[option.name] = value
        else:
            values[option.name.lower()] = value.lower() if rule.is_flag else value
    return values


def without_secrets(text: str, source: nodes.ConnectorSource) -> str:
    """A text, such as an error of Spark, in which the values from the environment are replaced."""
    return redacted(text, source.options, os.environ)
