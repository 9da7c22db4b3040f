"""Compiled loops over the bytes of CSV and JSON lines: where the cells are, and what they hold.

A loop decides what is plain. It leaves everything else to Python, which is slow and exact: the line is odd, or the cell
undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.arrays import F64, I32, I64, U8, Bools
from anabranch.compiled import compiled, compiled_inline

#: What a cell is, by its notation. A CSV cell is NULL or TEXT. ESCAPED is a text with escapes, FRACTION a number with a
#: point or an exponent, LITERAL true or false.
NULL, TEXT, ESCAPED, INTEGER, FRACTION, LITERAL = range(6)

#: The state of a cell: its value is known, or can be tried; it is NULL; Python must decide; or it is a number that is
#: well-formed, but has too many digits.
KNOWN, EMPTY, UNDECIDED, LONG = range(4)

_LF, _CR, _SPACE, _TAB = 10, 13, 32, 9
_QUOTE, _BACKSLASH, _SLASH, _COMMA, _COLON = 34, 92, 47, 44, 58
_OPEN, _CLOSE, _MINUS, _PLUS, _POINT, _ZERO, _NINE = 123, 125, 45, 43, 46, 48, 57

#: The powers of ten that are exact as doubles.
_POWERS = np.array([float(10**exponent) for exponent in range(23)])
_MICROS_PER_DAY = 86_400_000_000


# ---------------------------------------------------------------- lines


@compiled_inline
def _is_line_end(byte: int) -> bool:
    return byte == _LF or byte == _CR


@compiled_inline
def _line_end(data: U8, at: int) -> int:
    """The index of the next line end, or the end of the data."""
    while at < len(data) and not _is_line_end(data[at]):
        at += 1
    return at


@compiled_inline
def _next_line(data: U8, at: int) -> int:
    """The index after a line end: LF, CR, or both."""
    if at + 1 < len(data) and data[at] == _CR and data[at + 1] == _LF:
        return at + 2
    return at + 1


@compiled_inline
def _most_lines(data: U8) -> int:
    count = 1
    for byte in data:
        count += byte == _LF or byte == _CR
    return count


@compiled_inline
def _is_blank(data: U8, start: int, stop: int) -> bool:
    for at in range(start, stop):
        if data[at] > _SPACE:
            return False
    return True


# ---------------------------------------------------------------- the cells of CSV lines


@compiled_inline
def _first_of(data: U8, at: int, wanted: Bools) -> Any:
    """The index of the next byte that is wanted; there is one. Unsigned, because Numba checks the sign of others."""
    i = np.uint64(at)
    while not wanted[data[i]]:
        i += np.uint64(1)
    return np.int64(i)


@compiled_inline
def _csv_cell(data: U8, at: int, ends: Bools, quoted_ends: Bools) -> tuple[int, int, int]:
    """The start and the end of a cell, and the index after it; an end of -1 if quotes or escapes need more care.

    `ends` are the bytes that end a cell, and `quoted_ends` those that end a quoted one or need more care.
    """
    if data[at] != _QUOTE:
        stop = _first_of(data, at, ends)
        return at, stop, stop
    stop = _first_of(data, at + 1, quoted_ends)
    if data[stop] == _QUOTE and ends[data[stop + 1]]:
        return at + 1, stop, stop + 1
    return at + 1, -1, stop


@compiled
def _wanted(*bytes_: int) -> Bools:
    wanted = np.zeros(256, np.bool_)
    for byte in bytes_:
        wanted[byte] = True
    return wanted


@compiled
def split_csv(data: U8, slots: I64, n_slots: int, separator: int, fixed: bool) -> tuple[int, I64, Bools, I64, I64, U8]:
    """Find the cells of all lines that are not blank; the last line must end with LF.

    Parameters
    ----------
    slots : for each column of the file, the index of the column to read, or -1
    fixed : whether each line must have all cells; otherwise, cells that a line lacks are NULL

    Returns
    -------
    n_lines : the number of lines; the arrays may be longer
    lines : the starts and the ends of the lines
    odd : whether the cells of a line are not known: quotes need more care, or there are too few or too many cells
    starts, ends : of each cell, by column and line
    kinds : TEXT, or NULL for an empty cell
    """
    most = _most_lines(data)
    lines = np.empty((2, most), np.int64)
    odd = np.zeros(most, np.bool_)
    starts = np.zeros((n_slots, most), np.int64)
    ends = np.zeros((n_slots, most), np.int64)
    kinds = np.zeros((n_slots, most), np.uint8)
    cell_ends = _wanted(separator, _LF, _CR)
    quoted_ends = _wanted(_QUOTE, _BACKSLASH, _LF, _CR)
    line, at = 0, 0
    while at < len(data):
        first, column = at, 0
        while True:
            start, stop, at = _csv_cell(data, at, cell_ends, quoted_ends)
            if stop < 0:
                column = -1
                break
            if column < len(slots) and slots[column] >= 0:
                slot = slots[column]
                starts[slot, line] = start
                ends[slot, line] = stop
                kinds[slot, line] = TEXT if stop > start else NULL
            column += 1
            if data[at] != separator:
                break
            at += 1
        at = _line_end(data, at)
        if at > first and (data[first] > _SPACE or not _is_blank(data, first, at)):
            lines[0, line] = first
            lines[1, line] = at
            odd[line] = column < 0 or (fixed and column != len(slots))
            for missing in range(max(column, 0), len(slots)):
                if slots[missing] >= 0:
                    kinds[slots[missing], line] = NULL
            line += 1
        at = _next_line(data, at)
    return line, lines, odd, starts, ends, kinds


# ---------------------------------------------------------------- the cells of JSON lines


@compiled_inline
def _after_space(data: U8, at: int) -> int:
    while at < len(data) and (data[at] == _SPACE or data[at] == _TAB):
        at += 1
    return at


@compiled_inline
def _is_digit(data: U8, at: int) -> bool:
    return at < len(data) and _ZERO <= data[at] <= _NINE


@compiled_inline
def _after_digits(data: U8, at: int) -> int:
    while _is_digit(data, at):
        at += 1
    return at


@compiled_inline
def _has_byte(data: U8, at: int, first: int, second: int) -> bool:
    return at < len(data) and (data[at] == first or data[at] == second)


@compiled_inline
def _is_word(data: U8, at: int, word: bytes) -> bool:
    if at + len(word) > len(data):
        return False
    for i in range(len(word)):
        if data[at + i] != word[i]:
            return False
    return True


@compiled_inline
def _is_escape(data: U8, at: int) -> bool:
    """Whether the byte after a backslash stands for one character; not of Unicode escapes, which may be half of one."""
    return at < len(data) and (
        data[at] == _QUOTE or data[at] == _BACKSLASH or data[at] == _SLASH
        or data[at] == 98 or data[at] == 102 or data[at] == 110 or data[at] == 114 or data[at] == 116
    )  # fmt: skip


@compiled_inline
def _is_unicode_escape(data: U8, at: int) -> bool:
    if at + 5 > len(data) or data[at] != 117:
        return False
    for i in range(at + 1, at + 5):
        lower = data[i] | 32
        if not (_ZERO <= data[i] <= _NINE or 97 <= lower <= 102):
            return False
    return True


@compiled_inline
def _json_string(data: U8, at: int, ends: Bools) -> tuple[int, int]:
    """The index of the closing quote, or -1, and the kind: TEXT or ESCAPED.

    `ends` are the bytes that are not text: quotes, backslashes and control characters, such as the last byte.
    """
    at = _first_of(data, at, ends)
    kind = ESCAPED if data[at] == _BACKSLASH else TEXT
    while data[at] == _BACKSLASH:
        at += 1
        if _is_unicode_escape(data, at):
            at += 4
        elif not _is_escape(data, at):
            return -1, kind
        at = _first_of(data, at + 1, ends)
    return (at if data[at] == _QUOTE else -1), kind


@compiled_inline
def _json_number(data: U8, at: int) -> tuple[int, int]:
    """The end of a number, or -1, and the kind: INTEGER or FRACTION."""
    kind = INTEGER
    if data[at] == _MINUS:
        at += 1
    if not _is_digit(data, at):
        return -1, kind
    at = at + 1 if data[at] == _ZERO else _after_digits(data, at)
    if _has_byte(data, at, _POINT, _POINT):
        kind = FRACTION
        if not _is_digit(data, at + 1):
            return -1, kind
        at = _after_digits(data, at + 1)
    if _has_byte(data, at, 101, 69):
        kind = FRACTION
        at += 1
        if _has_byte(data, at, _PLUS, _MINUS):
            at += 1
        if not _is_digit(data, at):
            return -1, kind
        at = _after_digits(data, at)
    return at, kind


@compiled_inline
def _json_value(data: U8, at: int, ends: Bools) -> tuple[int, int, int, int]:
    """The start, the end and the kind of a value, and the index after it; an end of -1 if it is not plain."""
    if at == len(data):
        return at, -1, NULL, at
    if data[at] == _QUOTE:
        stop, kind = _json_string(data, at + 1, ends)
        return at + 1, stop, kind, stop + 1
    if data[at] <= _NINE:
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
def _slot_of(data: U8, start: int, stop: int, names: U8, name_ends: I64, guess: int) -> int:
    """The column with the name of a field, or -1; fields usually have the same order in all lines."""
    n_slots = len(name_ends) - 1
    slot = guess
    for _ in range(n_slots):
        slot = 0 if slot == n_slots else slot
        first = name_ends[slot]
        if name_ends[slot + 1] - first == stop - start:
            same = True
            for i in range(stop - start):
                if names[first + i] != data[start + i]:
                    same = False
                    break
            if same:
                return slot
        slot += 1
    return -1


@compiled_inline
def _split_object(
    data: U8, at: int, text_ends: Bools, names: U8, name_ends: I64, starts: I64, ends: I64, kinds: U8, line: int
) -> int:
    """Find the cells of an object; returns the index after it, or -1 if it is not plain.

    The kind of a cell that was not found yet is 255.
    """
    at = _after_space(data, at + 1)
    if at < len(data) and data[at] == _CLOSE:
        return at + 1
    guess = 0
    while True:
        if at == len(data) or data[at] != _QUOTE:
            return -1
        name_start = at + 1
        name_stop, kind = _json_string(data, name_start, text_ends)
        if name_stop < 0 or kind == ESCAPED:
            return -1
        at = _after_space(data, name_stop + 1)
        if at == len(data) or data[at] != _COLON:
            return -1
        start, stop, kind, at = _json_value(data, _after_space(data, at + 1), text_ends)
        if stop < 0:
            return -1
        slot = _slot_of(data, name_start, name_stop, names, name_ends, guess)
        if slot >= 0:
            if kinds[slot, line] != 255:
                return -1
            starts[slot, line] = start
            ends[slot, line] = stop
            kinds[slot, line] = kind
            guess = slot + 1
        at = _after_space(data, at)
        if at == len(data) or (data[at] != _COMMA and data[at] != _CLOSE):
            return -1
        if data[at] == _CLOSE:
            return at + 1
        at = _after_space(data, at + 1)


@compiled
def split_json(data: U8, names: U8, name_ends: I64) -> tuple[int, I64, Bools, I64, I64, U8]:
    """Find the cells of all lines that are not blank; takes and returns the same as `split_csv`.

    `names` are those of the columns, one after the other, and `name_ends` where they end, after a 0. A line is odd if
    it is not a flat object, has a name twice, or is not JSON.
    """
    n_slots = len(name_ends) - 1
    most = _most_lines(data)
    lines = np.empty((2, most), np.int64)
    odd = np.zeros(most, np.bool_)
    starts = np.zeros((n_slots, most), np.int64)
    ends = np.zeros((n_slots, most), np.int64)
    kinds = np.full((n_slots, most), 255, np.uint8)
    text_ends = _wanted(_QUOTE, _BACKSLASH)
    for byte in range(_SPACE):
        text_ends[byte] = True
    line, at = 0, 0
    while at < len(data):
        first = at
        at = _after_space(data, at)
        if at < len(data) and not _is_line_end(data[at]):
            end = -1
            if data[at] == _OPEN:
                end = _split_object(data, at, text_ends, names, name_ends, starts, ends, kinds, line)
            if end >= 0:
                end = _after_space(data, end)
            at = _line_end(data, at)
            lines[0, line] = first
            lines[1, line] = at
            odd[line] = end != at
            for slot in range(n_slots):
                if kinds[slot, line] == 255:
                    kinds[slot, line] = NULL
            line += 1
        at = _next_line(data, at)
    return line, lines, odd, starts, ends, kinds


# ---------------------------------------------------------------- values


@compiled_inline
def _parse_integer(data: U8, at: int, stop: int) -> tuple[int, int]:
    """The value and the state of an integer of up to 18 digits."""
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    value = 0
    good = 0 < stop - at <= 18
    while good and at < stop:
        digit = data[at] - _ZERO
        good = 0 <= digit <= 9
        value = value * 10 + digit
        at += 1
    return (-value if negative else value), (KNOWN if good else UNDECIDED)


@compiled
def parse_integers(data: U8, starts: I64, ends: I64, states: U8) -> I64:
    """The values of the cells whose state is KNOWN; sets the states of others that it does not know."""
    values = np.zeros(len(states), np.int64)
    for i in range(len(states)):
        if states[i] == KNOWN:
            values[i], states[i] = _parse_integer(data, starts[i], ends[i])
    return values


@compiled_inline
def _digit(data: U8, at: np.uint64) -> np.uint64:
    """The digit at an index, or a number above 9."""
    return np.uint64(data[at]) - np.uint64(_ZERO)


@compiled_inline
def _split_double(value: float) -> tuple[float, float]:
    """Two doubles of half the digits with the same sum."""
    scaled = 134_217_729.0 * value
    high = scaled - (scaled - value)
    return high, value - high


@compiled_inline
def _product_error(a: float, b: float, product: float) -> float:
    """What the rounded product of two doubles lacks, exactly."""
    a_high, a_low = _split_double(a)
    b_high, b_low = _split_double(b)
    lacking: float = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return lacking


@compiled_inline
def _scaled(mantissa: int, scale: int) -> tuple[float, int]:
    """The double nearest to a mantissa of up to 18 digits times a power of ten, or LONG if it is nearly between two.

    The product or quotient is computed as the sum of two doubles, with an error far below that of one.
    """
    high = float(mantissa)
    low = float(mantissa - np.int64(high))
    power = _POWERS[abs(scale)]
    if scale >= 0:
        value = high * power
        rest = _product_error(high, power, value) + low * power
    else:
        value = high / power
        product = value * power
        rest = ((high - product) - _product_error(value, power, product) + low) / power
    margin = abs(rest) * 2.0**-45 + abs(value) * 2.0**-95
    nearest = value + (rest + margin)
    return nearest, KNOWN if nearest == value + (rest - margin) else LONG


@compiled_inline
def _exponent(data: U8, at: int, stop: int) -> tuple[int, int]:
    """The exponent at an index, and the index after it, or -1."""
    at += 1
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    first, exponent = at, 0
    while at < min(stop, first + 4) and _ZERO <= data[at] <= _NINE:
        exponent = exponent * 10 + (data[at] - _ZERO)
        at += 1
    return (-exponent if negative else exponent), (at if at > first else -1)


@compiled_inline
def _parse_double(data: U8, start: int, stop: int) -> tuple[float, int]:
    """The value and the state of a decimal number. A byte that is no digit follows it."""
    signed = data[start] == _PLUS or data[start] == _MINUS
    at = np.uint64(start + signed)
    one, ten = np.uint64(1), np.uint64(10)
    mantissa = np.uint64(0)
    while _digit(data, at) < ten:
        mantissa = mantissa * ten + _digit(data, at)
        at += one
    n_digits = np.int64(at) - start - signed
    scale = np.int64(0)
    if data[at] == _POINT:
        at += one
        point = at
        while _digit(data, at) < ten:
            mantissa = mantissa * ten + _digit(data, at)
            at += one
        scale = -np.int64(at - point)
        n_digits -= scale
    after = np.int64(at)
    exponent = 0
    if n_digits > 0 and after < stop and (data[after] | 32) == 101:
        exponent, after = _exponent(data, after, stop)
    if n_digits == 0 or after != stop:
        return 0.0, UNDECIDED
    scale += exponent
    if n_digits > 18 or scale < -22 or scale > 22:
        usual = -250 < exponent < 250 and stop - start < 40 and data[start] != _PLUS
        return 0.0, LONG if usual else UNDECIDED
    value, state = _scaled(np.int64(mantissa), scale)
    return -value if data[start] == _MINUS else value, state


@compiled
def parse_doubles(data: U8, starts: I64, ends: I64, states: U8) -> F64:
    """The same as `parse_integers` for decimal numbers; a value is the nearest double."""
    values = np.zeros(len(states), np.float64)
    for i in range(len(states)):
        if states[i] == KNOWN:
            values[i], states[i] = _parse_double(data, starts[i], ends[i])
    return values


@compiled_inline
def _parse_boolean(data: U8, start: int, stop: int) -> tuple[bool, int]:
    """The value and the state of true or false, in lower or upper case."""
    word = b"true" if stop - start == 4 else b"false"
    good = stop - start == len(word)
    for k in range(len(word)):
        good = good and (data[start + k] | 32) == word[k]
    return stop - start == 4, (KNOWN if good else UNDECIDED)


@compiled
def parse_booleans(data: U8, starts: I64, ends: I64, states: U8) -> Bools:
    """The same as `parse_integers` for booleans."""
    values = np.zeros(len(states), np.bool_)
    for i in range(len(states)):
        if states[i] == KNOWN:
            values[i], states[i] = _parse_boolean(data, starts[i], ends[i])
    return values


@compiled_inline
def _two_digits(data: U8, at: int) -> int:
    """The number of two digits; a large negative number if they are not digits."""
    tens, ones = data[at] - _ZERO, data[at + 1] - _ZERO
    number: int = tens * 10 + ones
    return number if 0 <= tens <= 9 and 0 <= ones <= 9 else -1_000_000


@compiled_inline
def _parse_day(data: U8, at: int) -> tuple[int, bool]:
    """The days since 1970 of the 10 bytes of a date such as 2026-01-31, and whether they are one."""
    year = 100 * _two_digits(data, at) + _two_digits(data, at + 2)
    month, day = _two_digits(data, at + 5), _two_digits(data, at + 8)
    good = year >= 0 and data[at + 4] == _MINUS and data[at + 7] == _MINUS and 1 <= month <= 12 and day >= 1
    if not good:
        return 0, False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = 31 - (month == 4 or month == 6 or month == 9 or month == 11)
    if month == 2:
        length = 29 if leap else 28
    # Years that start in March, so that the leap day is the last one.
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days, day <= length


@compiled_inline
def _parse_clock(data: U8, at: int, stop: int) -> tuple[int, bool]:
    """The microseconds of a time of day such as 13:05:59.25+01:00, in UTC, and whether it is one."""
    if stop - at < 5 or data[at + 2] != _COLON:
        return 0, False
    hour, minute, second = _two_digits(data, at), _two_digits(data, at + 3), 0
    at += 5
    micros, offset = 0, 0
    if at < stop:
        if stop - at < 3 or data[at] != _COLON:
            return 0, False
        second = _two_digits(data, at + 1)
        at += 3
        if at < stop and data[at] == _POINT:
            at += 1
            first, unit = at, 100_000
            while at < stop and _ZERO <= data[at] <= _NINE:
                micros += unit * (data[at] - _ZERO)
                unit //= 10
                at += 1
            if at == first:
                return 0, False
        if at + 1 == stop and data[at] == 90:
            at += 1
        elif at + 6 == stop and (data[at] == _PLUS or data[at] == _MINUS) and data[at + 3] == _COLON:
            hours, minutes = _two_digits(data, at + 1), _two_digits(data, at + 4)
            if not (0 <= hours <= 17 and 0 <= minutes <= 59):
                return 0, False
            offset = (hours * 60 + minutes) * (-60 if data[at] == _MINUS else 60)
            at += 6
    good = at == stop and 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59
    return ((hour * 60 + minute) * 60 + second - offset) * 1_000_000 + micros, good


@compiled
def parse_days(data: U8, starts: I64, ends: I64, states: U8) -> I32:
    """The same as `parse_integers` for dates such as 2026-01-31, as days since 1970."""
    values = np.zeros(len(states), np.int32)
    for i in range(len(states)):
        if states[i] == KNOWN:
            states[i] = UNDECIDED
            if ends[i] - starts[i] == 10:
                days, good = _parse_day(data, starts[i])
                values[i] = days
                states[i] = KNOWN if good else UNDECIDED
    return values


@compiled_inline
def _parse_timestamp(data: U8, start: int, stop: int) -> tuple[int, int]:
    """The microseconds since 1970 in UTC, and the state, of a time such as 2026-01-31T13:05:59.25+01:00."""
    if stop - start < 10:
        return 0, UNDECIDED
    days, good = _parse_day(data, start)
    micros = 0
    if good and stop - start > 10:
        micros, good = _parse_clock(data, start + 11, stop)
        good = good and (data[start + 10] == _SPACE or data[start + 10] == 84)
    return days * _MICROS_PER_DAY + micros, (KNOWN if good else UNDECIDED)


@compiled
def parse_timestamps(data: U8, starts: I64, ends: I64, states: U8) -> I64:
    """The same as `parse_integers` for times, as microseconds since 1970 in UTC."""
    values = np.zeros(len(states), np.int64)
    for i in range(len(states)):
        if states[i] == KNOWN:
            values[i], states[i] = _parse_timestamp(data, starts[i], ends[i])
    return values


@compiled
def gather_texts(data: U8, starts: I64, ends: I64, kinds: U8) -> tuple[I32, U8]:
    """The bytes of cells, one after the other, and where they end, after a 0; a cell that is NULL has none."""
    n = len(kinds)
    offsets = np.zeros(n + 1, np.int32)
    for i in range(n):
        size = 0 if kinds[i] == NULL else ends[i] - starts[i]
        offsets[i + 1] = offsets[i] + size
    texts = np.empty(offsets[n], np.uint8)
    for i in range(n):
        to, start = offsets[i], starts[i]
        for k in range(offsets[i + 1] - to):
            texts[to + k] = data[start + k]
    return offsets, texts
