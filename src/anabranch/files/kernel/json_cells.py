"""The cells of JSON lines."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I64, U8, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.files.kernel.bytes import (
    BACKSLASH,
    CLOSE,
    COLON,
    COMMA,
    ESCAPED,
    FRACTION,
    INTEGER,
    LITERAL,
    MINUS,
    NINE,
    NULL,
    OPEN,
    PLUS,
    POINT,
    QUOTE,
    SLASH,
    SPACE,
    TAB,
    TEXT,
    ZERO,
    first_of,
    is_line_end,
    line_end,
    most_lines,
    next_line,
    set_of,
)

#: How many fields of a line are compared with those of the lines before.
_FIELDS = 64

# The last byte of the data is a line end, which no loop here passes. So they need not look for the end of the data.


@compiled_inline
def _byte(data: U8, at: int) -> int:
    """The byte at an index. Unsigned, because Numba checks the sign of others."""
    byte: int = data[np.uint64(at)]
    return byte


@compiled_inline
def _after_space(data: U8, at: int) -> int:
    while _byte(data, at) == SPACE or _byte(data, at) == TAB:
        at += 1
    return at


@compiled_inline
def _is_digit(data: U8, at: int) -> bool:
    byte: int = _byte(data, at)
    return ZERO <= byte <= NINE


@compiled_inline
def _after_digits(data: U8, at: int) -> int:
    while _is_digit(data, at):
        at += 1
    return at


@compiled_inline
def _is_word(data: U8, at: int, word: bytes) -> bool:
    for i in range(len(word)):
        if _byte(data, at + i) != word[i]:
            return False
    return True


@compiled_inline
def _is_escape(data: U8, at: int) -> bool:
    """Whether the byte after a backslash stands for one character; not of Unicode escapes, which may be half of one."""
    byte: int = _byte(data, at)
    return (
        byte == QUOTE or byte == BACKSLASH or byte == SLASH
        or byte == 98 or byte == 102 or byte == 110 or byte == 114 or byte == 116
    )  # fmt: skip


@compiled_inline
def _is_unicode_escape(data: U8, at: int) -> bool:
    if _byte(data, at) != 117:
        return False
    for i in range(at + 1, at + 5):
        lower = _byte(data, i) | 32
        if not (_is_digit(data, i) or 97 <= lower <= 102):
            return False
    return True


@compiled_inline
def _json_string(data: U8, at: int, ends: Bools) -> tuple[int, int]:
    """The index of the closing quote, or -1, and the kind: TEXT or ESCAPED.

    `ends` are the bytes that are not text: quotes, backslashes and control characters, such as the last byte.
    """
    at = first_of(data, at, ends)
    kind = ESCAPED if _byte(data, at) == BACKSLASH else TEXT
    while _byte(data, at) == BACKSLASH:
        at += 1
        if _is_unicode_escape(data, at):
            at += 4
        elif not _is_escape(data, at):
            return -1, kind
        at = first_of(data, at + 1, ends)
    return (at if _byte(data, at) == QUOTE else -1), kind


@compiled_inline
def _json_number(data: U8, at: int) -> tuple[int, int]:
    """The end of a number, or -1, and the kind: INTEGER or FRACTION."""
    kind = INTEGER
    if _byte(data, at) == MINUS:
        at += 1
    if not _is_digit(data, at):
        return -1, kind
    at = at + 1 if _byte(data, at) == ZERO else _after_digits(data, at)
    if _byte(data, at) == POINT:
        kind = FRACTION
        if not _is_digit(data, at + 1):
            return -1, kind
        at = _after_digits(data, at + 1)
    if _byte(data, at) | 32 == 101:
        kind = FRACTION
        at += 1
        if _byte(data, at) == PLUS or _byte(data, at) == MINUS:
            at += 1
        if not _is_digit(data, at):
            return -1, kind
        at = _after_digits(data, at)
    return at, kind


@compiled_inline
def _json_value(data: U8, at: int, ends: Bools) -> tuple[int, int, int, int]:
    """The start, the end and the kind of a value, and the index after it; an end of -1 if it is not plain."""
    if _byte(data, at) == QUOTE:
        stop, kind = _json_string(data, at + 1, ends)
        return at + 1, stop, kind, stop + 1
    if _byte(data, at) <= NINE:
        stop, kind = _json_number(data, at)
        return at, stop, kind, stop
    if _is_word(data, at, b"null"):
        return at, at + 4, NULL, at + 4
    if _is_word(data, at, b"true"):
        return at, at + 4, LITERAL, at + 4
    if _is_word(data, at, b"false"):
        return at, at + 5, LITERAL, at + 5
    return at, -1, NULL, at


@compiled_inline
def _slot_of(data: U8, start: int, stop: int, names: U8, name_ends: I64) -> int:
    """The column with the name of a field, or -1."""
    for slot in range(len(name_ends) - 1):
        first = name_ends[slot]
        if name_ends[slot + 1] - first == stop - start:
            same = True
            for i in range(stop - start):
                if names[first + i] != data[start + i]:
                    same = False
                    break
            if same:
                return slot
    return -1


@compiled_inline
def _field_name(data: U8, at: int, text_ends: Bools, names: U8, name_ends: I64) -> tuple[int, int]:
    """The column of a field, or -1, and the index after its colon, or -1; `at` is that of the brace or comma before."""
    start = _after_space(data, at + 1)
    if _byte(data, start) != QUOTE:
        return -1, -1
    stop, kind = _json_string(data, start + 1, text_ends)
    if stop < 0 or kind == ESCAPED:
        return -1, -1
    colon = _after_space(data, stop + 1)
    if _byte(data, colon) != COLON:
        return -1, -1
    return _slot_of(data, start + 1, stop, names, name_ends), colon + 1


@compiled_inline
def _is_repeated(data: U8, at: int, earlier: int, size: int) -> bool:
    """Whether some bytes are the same as earlier ones; not if there are none."""
    if size == 0 or at + size > len(data):
        return False
    difference = np.uint8(0)
    for i in range(size):
        difference |= _byte(data, at + i) ^ _byte(data, earlier + i)
    same: bool = difference == 0
    return same


@compiled_inline
def _split_object(
    data: U8, at: int, text_ends: Bools, names: U8, name_ends: I64, fields: I64,
    starts: I64, ends: I64, kinds: U8, line: int,
) -> int:  # fmt: skip
    """Find the cells of an object; returns the index after it, or -1 if it is not plain.

    The kind of a cell that was not found yet is 255. `fields` are, for each field of the last lines, where it starts,
    how many bytes its name and punctuation have, and its column: usually, all lines have the same fields.
    """
    first: int = _after_space(data, at + 1)
    if _byte(data, first) == CLOSE:
        return first + 1
    field = 0
    while True:
        known = min(field, len(fields) - 1)
        slot, value = fields[known, 2], at + fields[known, 1]
        if not _is_repeated(data, at, fields[known, 0], fields[known, 1]):
            slot, value = _field_name(data, at, text_ends, names, name_ends)
            if value < 0:
                return -1
            fields[known, 0], fields[known, 1], fields[known, 2] = at, value - at, slot
        start, stop, kind, at = _json_value(data, _after_space(data, value), text_ends)
        if stop < 0:
            return -1
        if slot >= 0:
            if kinds[slot, line] != 255:
                return -1
            starts[slot, line] = start
            ends[slot, line] = stop
            kinds[slot, line] = kind
        at = _after_space(data, at)
        if _byte(data, at) == CLOSE:
            return at + 1
        if _byte(data, at) != COMMA:
            return -1
        field += 1


@compiled
def split_json(data: U8, names: U8, name_ends: I64) -> tuple[int, I64, Bools, I64, I64, U8]:
    """Find the cells of all lines that are not blank; takes and returns the same as `split_csv`.

    `names` are those of the columns, one after the other, and `name_ends` where they end, after a 0. A line is odd if
    it is not a flat object, has a name twice, or is not JSON.
    """
    n_slots = len(name_ends) - 1
    most = most_lines(data)
    lines = np.empty((2, most), np.int64)
    odd = np.zeros(most, np.bool_)
    starts = np.zeros((n_slots, most), np.int64)
    ends = np.zeros((n_slots, most), np.int64)
    kinds = np.full((n_slots, most), 255, np.uint8)
    fields = np.zeros((_FIELDS, 3), np.int64)
    text_ends = set_of(QUOTE, BACKSLASH)
    for byte in range(SPACE):
        text_ends[byte] = True
    line, at = 0, 0
    while at < len(data):
        first = at
        at = _after_space(data, at)
        if not is_line_end(data[at]):
            end = -1
            if data[at] == OPEN:
                end = _split_object(data, at, text_ends, names, name_ends, fields, starts, ends, kinds, line)
            if end >= 0:
                end = _after_space(data, end)
            at = line_end(data, max(at, end))
            lines[0, line] = first
            lines[1, line] = at
            odd[line] = end != at
            for slot in range(n_slots):
                if kinds[slot, line] == 255:
                    kinds[slot, line] = NULL
            line += 1
        at = next_line(data, at)
    return line, lines, odd, starts, ends, kinds
