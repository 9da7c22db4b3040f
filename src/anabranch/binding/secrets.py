"""Secrets of a workbook's options: they are named as `'${NAME}'`, and read from the environment when a query runs.

A workbook is text that is shared. Therefore a secret that is written in it is refused. What is read from the
environment is passed to the client of the other system, and to nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from anabranch.errors import LITERAL_SECRET, AnabranchError
from anabranch.language import nodes
from anabranch.language.findings import Findings, shown

Value = str | int | float | bool

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"password|passwd|passphrase|secret|token|credential|jaas|private.?key|key[._]pem", re.I)
#: The password in an address such as postgresql://user:password@host.
_IN_ADDRESS = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")


def resolve(options: Iterable[nodes.Option], environ: Mapping[str, str]) -> dict[str, Value]:
    """The options by name, with every `${NAME}` replaced by the variable of the environment.

    Raises
    ------
    AnabranchError
        If a variable is not set.

    Examples
    --------
    >>> resolve([nodes.Option("user", "${WHO}"), nodes.Option("port", 5432)], {"WHO": "ana"})
    {'user': 'ana', 'port': 5432}
    """

    def value_of(option: nodes.Option, name: str) -> str:
        if name not in environ:
            raise AnabranchError(f"the option {option.name} needs the environment variable {name}, which is not set")
        return environ[name]

    return {
        option.name: _REFERENCE.sub(lambda match, option=option: value_of(option, match[1]), option.value)  # type: ignore[misc]
        if isinstance(option.value, str)
        else option.value
        for option in options
    }


def redacted(text: str, options: Iterable[nodes.Option], environ: Mapping[str, str]) -> str:
    """A message of another system, without the values that were read from the environment."""
    names = {name for option in options for name in _REFERENCE.findall(str(option.value))}
    for value in sorted((environ.get(name, "") for name in names), key=len, reverse=True):
        text = text.replace(value, "***") if value else text
    return text


def refuse_literal_secrets(options: Iterable[nodes.Option], findings: Findings) -> None:
    """Report secrets that are written in the workbook."""
    for option in options:
        text = str(option.value)
        address = _IN_ADDRESS.search(text)
        secret = address[1] if address else text if _SECRET_NAME.search(option.name) else ""
        if secret and not _REFERENCE.fullmatch(secret):
            variable = re.sub(r"\W", "_", option.name).upper()
            findings.add(
                LITERAL_SECRET,
                f"the option {shown(option.name)} has a secret, which must not be written in a workbook",
                option.span,
                f"write '${{{variable}}}', and set this environment variable",
            )
