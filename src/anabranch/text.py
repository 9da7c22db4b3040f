"""Values as text that is safe to display: one line, without control characters.

Keys and values come from the data, which can contain anything: an escape sequence, a line break or a right-to-left
mark in the name of a tag is written as an escape. (The modules that draw escape Rich markup and SVG.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

LONGEST = 60
"""The maximum length of a displayed value; a hostile one can have millions of characters."""


def safe(text: str, *, ascii_only: bool = False) -> str:
    r"""Return text on one line, with characters that are not printable as escapes.

    Examples
    --------
    >>> print(safe("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return as_ascii(printable) if ascii_only else printable


def short(text: str, longest: int = LONGEST) -> str:
    """Return the text, truncated where it is longer than `longest`."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def as_ascii(text: str) -> str:
    """Return the text for a terminal that can only display ASCII."""
    return text.replace("…", "...").encode("ascii", "backslashreplace").decode("ascii")


def value_text(scalar: pa.Scalar) -> str:
    """Return one value of an Arrow table as safe text of any length."""
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):  # An instant that no Python datetime can hold.
        value = scalar.cast(pa.string()).as_py()
    return safe(_literal(value))


def cell(scalar: pa.Scalar, longest: int = LONGEST, *, ascii_only: bool = False) -> str:
    """Return one value of an Arrow table as the text of a table cell."""
    text = short(value_text(scalar), longest)
    return as_ascii(text) if ascii_only else text


def probability_text(probability: float) -> str:
    """Return a probability with three decimals; a value between 0 and 1 is never rounded to 0 or 1.

    Examples
    --------
    >>> [probability_text(p) for p in (0.0, 1e-9, 0.25, 0.99999, 1.0)]
    ['0.000', '<0.001', '0.250', '>0.999', '1.000']
    """
    if 0 < probability < 0.0005:
        return "<0.001"
    if 0.9995 <= probability < 1:
        return ">0.999"
    return f"{probability:.3f}"


def size_text(n_bytes: float) -> str:
    """A number of bytes with a unit and two digits.

    >>> size_text(850), size_text(12_345), size_text(3_200_000_000)
    ('850 bytes', '12 kB', '3.2 GB')
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    size, units = n_bytes / 1000, iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 1000 and unit != "TB":
        size, unit = size / 1000, next(units)
    return f"{size:.1f} {unit}" if size < 10 else f"{size:.0f} {unit}"


def can_draw(encoding: str) -> bool:
    """Return whether an encoding has the block and line characters of the terminal charts."""
    try:
        "█▁▏│└┬─┄▲…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.6g}" if math.isfinite(value) else str(value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case bytes():
            return "0x" + value.hex()
        case Mapping():
            return "{" + ", ".join(f"{name}: {_literal(part)}" for name, part in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_literal, value)) + "]"
        case _:
            return str(value)
