"""Lines, bytes, and what a cell is: shared by the loops over CSV and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.arrays import U8, Bools
from anabranch.compiled import compiled, compiled_inline

#: What a cell is, by its notation. A CSV cell is NULL or TEXT. ESCAPED is a text with escapes, FRACTION a number with a
#: point or an exponent, LITERAL true or false.
NULL, TEXT, ESCAPED, INTEGER, FRACTION, LITERAL = range(6)

#: The state of a cell: its value is known, or can be tried; it is NULL; Python must decide; or it is a number that is
#: well-formed, but has too many digits.
KNOWN, EMPTY, UNDECIDED, LONG = range(4)

LF, CR, SPACE, TAB = 10, 13, 32, 9
QUOTE, BACKSLASH, SLASH, COMMA, COLON = 34, 92, 47, 44, 58
OPEN, CLOSE, MINUS, PLUS, POINT, ZERO, NINE = 123, 125, 45, 43, 46, 48, 57


@compiled_inline
def is_line_end(byte: int) -> bool:
    """Whether a byte ends a line."""
    return byte == LF or byte == CR


@compiled_inline
def line_end(data: U8, at: int) -> int:
    """The index of the next line end, or the end of the data."""
    while at < len(data) and not is_line_end(data[at]):
        at += 1
    return at


@compiled_inline
def next_line(data: U8, at: int) -> int:
    """The index after a line end: LF, CR, or both."""
    if at + 1 < len(data) and data[at] == CR and data[at + 1] == LF:
        return at + 2
    return at + 1


@compiled_inline
def most_lines(data: U8) -> int:
    """The number of lines, or more: CR and LF count as two."""
    count = 1
    for byte in data:
        count += byte == LF or byte == CR
    return count


@compiled_inline
def is_blank(data: U8, start: int, stop: int) -> bool:
    """Whether all bytes are spaces or control characters."""
    for at in range(start, stop):
        if data[at] > SPACE:
            return False
    return True


@compiled_inline
def first_of(data: U8, at: int, wanted: Bools) -> Any:
    """The index of the next byte that is wanted; there is one. Unsigned, because Numba checks the sign of others."""
    i = np.uint64(at)
    while not wanted[data[i]]:
        i += np.uint64(1)
    return np.int64(i)


@compiled
def set_of(*bytes_: int) -> Bools:
    """A set of bytes, as an array that tells for each byte whether it is in the set."""
    members = np.zeros(256, np.bool_)
    for byte in bytes_:
        members[byte] = True
    return members
