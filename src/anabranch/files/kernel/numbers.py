"""The values of integers, decimal numbers and booleans."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64, U8, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.files.kernel.bytes import KNOWN, LONG, MINUS, NINE, PLUS, POINT, UNDECIDED, ZERO

#: The powers of ten that are exact as doubles.
_POWERS = np.array([float(10**exponent) for exponent in range(23)])


@compiled_inline
def _parse_integer(data: U8, at: int, stop: int) -> tuple[int, int]:
    """The value and the state of an integer of up to 18 digits."""
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    value = 0
    good = 0 < stop - at <= 18
    while good and at < stop:
        digit = data[at] - ZERO
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
    return np.uint64(data[at]) - np.uint64(ZERO)


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
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    first, exponent = at, 0
    while at < min(stop, first + 4) and ZERO <= data[at] <= NINE:
        exponent = exponent * 10 + (data[at] - ZERO)
        at += 1
    return (-exponent if negative else exponent), (at if at > first else -1)


@compiled_inline
def _parse_double(data: U8, start: int, stop: int) -> tuple[float, int]:
    """The value and the state of a decimal number. A byte that is no digit follows it."""
    signed = data[start] == PLUS or data[start] == MINUS
    at = np.uint64(start + signed)
    one, ten = np.uint64(1), np.uint64(10)
    mantissa = np.uint64(0)
    while _digit(data, at) < ten:
        mantissa = mantissa * ten + _digit(data, at)
        at += one
    n_digits = np.int64(at) - start - signed
    scale = np.int64(0)
    if data[at] == POINT:
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
        usual = -250 < exponent < 250 and stop - start < 40 and data[start] != PLUS
        return 0.0, LONG if usual else UNDECIDED
    value, state = _scaled(np.int64(mantissa), scale)
    return -value if data[start] == MINUS else value, state


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
