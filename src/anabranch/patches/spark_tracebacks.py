"""The text of Spark's exceptions: find the exception of a Python worker in it.

What is patched
    Nothing is replaced. Spark sends the exception of a worker to the driver as text, a Python traceback inside the
    message of its own exception. Regular expressions look for the lines `module.ClassName: message`.
Why
    Spark has no structured form of a worker's exception. The whole text has dozens of lines, of which one tells the
    user what to do.
Tried on
    PySpark 4.1.4, 4.2.1 and 4.3.0.
Where it does not fit
    In a text of another shape nothing is found. The message is then the first line of the text: less exact, never
    empty.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ANABRANCH = re.compile(r"anabranch\.errors\.(\w+): (.*)")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_PYTHON = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Arrow\w+)): (.*)$", re.MULTILINE)


class WorkerError(NamedTuple):
    """An exception as a traceback prints it: the name of its class, without the module, and its message."""

    class_name: str
    message: str


def anabranch_error(text: str) -> WorkerError | None:
    """Return the first exception of `anabranch.errors` in a text, if there is one."""
    match = _ANABRANCH.search(text)
    return WorkerError(*match.groups()) if match else None


def missing_module(text: str) -> str | None:
    """Return the module that a Python process could not import, if the text is about one."""
    match = _MISSING.search(text)
    return match[1] if match else None


def python_error(text: str) -> WorkerError | None:
    """Return the last Python exception in a text, if there is one."""
    matches = _PYTHON.findall(text)
    return WorkerError(*matches[-1]) if matches else None


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank; empty where there is none."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
