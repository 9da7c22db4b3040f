"""A failed run in one line: what a worker or the JVM said, without their tracebacks."""

from __future__ import annotations

import re

from anabranch import errors

# A worker's exception comes back as text, inside the exception that Spark raises here.
_OURS = re.compile(r"anabranch\.errors\.(\w+): (.*)")
_PYTHON = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Arrow\w+)): (.*)$", re.MULTILINE)


def translate(error: Exception) -> errors.AnabranchError:
    """The error as one of ours: the same if it is one, else the last thing that was said about it."""
    if isinstance(error, errors.AnabranchError):
        return error
    text = str(error)
    ours = _OURS.search(text)
    if ours:
        kind = getattr(errors, ours.group(1), errors.AnabranchError)
        if issubclass(kind, errors.AnabranchError) and not issubclass(kind, errors.WorkbookError):
            return kind(ours.group(2))
    said = _PYTHON.findall(text)
    if said:
        name, message = said[-1]
        return errors.AnabranchError(f"{name}: {message}")
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return errors.AnabranchError(first)
