"""Secrets of options: they are named as `'${NAME}'`, and read from the environment when a query runs.

A workbook is text that is shared. Therefore a secret that is written in it is refused. What is read from the
environment is passed to the client of the other system, and to nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from anabranch.errors import LITERAL_SECRET, DataError
from anabranch.language import nodes
from anabranch.language.findings import Findings, shown

_VARIABLE = re.compile(r"\$\{([^\W\d]\w*)\}")
_SECRET_NAME = re.compile(
    r"passw|secret|token|credential|jaas|(private|api|sas|account|access)[._]?key(?![._]?(id|location))", re.IGNORECASE
)
#: A password in an address: `password=x`, or `user:x@host`.
_SECRET_VALUE = re.compile(r"passw(or)?d\s*=\s*[\"']?(?!\$\{)[^;&\s\"']|://[^/\s:@]+:(?!\$\{)[^@/\s]+@", re.IGNORECASE)


def has_variable(value: object) -> bool:
    """Whether a value names a variable of the environment."""
    return isinstance(value, str) and _VARIABLE.search(value) is not None


def resolve(options: Iterable[nodes.Option], environ: Mapping[str, str]) -> dict[str, str]:
    """The options by name, as text, with every `${NAME}` replaced by the variable of the environment.

    Raises
    ------
    DataError
        If a variable is not set.

    Examples
    --------
    >>> resolve([nodes.Option("user", "${WHO}"), nodes.Option("tls", True)], {"WHO": "ana"})
    {'user': 'ana', 'tls': 'true'}
    """
    values = {}
    for option in options:
        text = _text(option.value)
        for name in _VARIABLE.findall(text):
            if not environ.get(name):
                raise DataError(
                    f"the environment has no {name}, which the option {option.name} needs; set it, and run again"
                )
        values[option.name] = _VARIABLE.sub(lambda match: environ[match[1]], text)
    return values


def redacted(text: str, options: Iterable[nodes.Option], environ: Mapping[str, str]) -> str:
    """A text, such as an error of another system, in which the values from the environment are replaced."""
    names = {name for option in options for name in _VARIABLE.findall(_text(option.value))}
    for secret in sorted(filter(None, (environ.get(name) for name in names)), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def refuse_literal_secrets(option: nodes.Option, findings: Findings, is_secret: bool | None = None) -> None:
    """Report a secret that is written in the workbook; the message does not repeat it.

    `is_secret` says whether the option has one; None if its name decides.
    """
    is_text = isinstance(option.value, str)
    if is_secret is None:
        is_secret = is_text and bool(_SECRET_NAME.search(option.name))
    if (is_secret and not has_variable(option.value)) or (is_text and _SECRET_VALUE.search(str(option.value))):
        message = f"the option {shown(option.name)} has a secret in the text of the workbook"
        variable = re.sub(r"\W", "_", option.name).upper()
        hint = f"write '${{{variable}}}' instead of the secret, and set {variable} in the environment"
        findings.add(LITERAL_SECRET, message, option.span, hint)


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
