"""Values as text that is safe to show: one line, nothing in it is obeyed by a terminal.

Keys and values come from the data, and the data from anywhere: an escape sequence, a line break or a
right-to-left mark in a tag's name is shown as what it is. (Rich markup and SVG are the drawing modules' part.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

LONGEST = 60
"""Characters of a value that are shown; a hostile one can have millions."""


def safe(text: str, *, ascii_only: bool = False) -> str:
    r"""Text on one line, with what is not printable written as an escape.

    Examples
    --------
    >>> print(safe("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return as_ascii(shown) if ascii_only else shown


def short(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning where it is long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def as_ascii(text: str) -> str:
    """The text for a terminal that knows ASCII alone."""
    return text.replace("…", "...").encode("ascii", "backslashreplace").decode("ascii")


def value_text(scalar: pa.Scalar) -> str:
    """One value of an Arrow table as text, however long."""
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):  # An instant that no Python datetime can hold.
        value = scalar.cast(pa.string()).as_py()
    return safe(_words(value))


def cell(scalar: pa.Scalar, *, ascii_only: bool = False) -> str:
    """One value of an Arrow table, as a table shows it."""
    shown = short(value_text(scalar))
    return as_ascii(shown) if ascii_only else shown


def probability_text(probability: float) -> str:
    """Three decimals; what is neither 0 nor 1 is never rounded to them.

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


def can_draw(encoding: str) -> bool:
    """Whether a terminal of this encoding has the blocks and lines that charts are drawn with."""
    try:
        "█▁▏│└┬─┄▲…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _words(value: Any) -> str:
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
            return "{" + ", ".join(f"{name}: {_words(part)}" for name, part in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_words, value)) + "]"
        case _:
            return str(value)
