"""Conditions on several events as programs of a stack machine for numbers.

A row of a program is (code, component, column, other). Values of events, and constants, are columns of one matrix, so
a program only loads and combines numbers. TRUE is 1, FALSE is 0, and NULL is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled_inline

#: LOAD loads a column of the event of a component; if the component is missing, it loads the column `other` of any
#: event instead. OTHERWISE does the same, but only if the row before it has found no event and its `other` is
#: NEXT_ROW. CONSTANT loads a column of any event. MEMBER tests whether a number is in `members[column:other]`. APART
#: subtracts two times.
(
    LOAD, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, APART, NEGATE, ABSOLUTE,
    EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, NOT, IS_NULL, MEMBER, OTHERWISE,
) = range(20)  # fmt: skip

#: Used as the column `other` of LOAD and OTHERWISE: there is no default, or the next row loads it.
NO_DEFAULT, NEXT_ROW = -1, -2

#: The codes of the operators of typed conditions that take one number per argument.
CODES = {
    "+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "%": REMAINDER, "negate": NEGATE, "abs": ABSOLUTE,
    "=": EQUAL, "<>": UNEQUAL, "<": LESS, "<=": AT_MOST, ">": GREATER, ">=": AT_LEAST, "not": NOT, "is_null": IS_NULL,
}  # fmt: skip

#: The result of a condition: it fails, it holds, or it is skipped because a component is missing.
FAILS, HOLDS, SKIPPED = 0, 1, 2


@compiled_inline
def truth(programs: I64, start: int, stop: int, bound: I64, anchor: int, matrix: F64, members: F64, stack: F64) -> int:
    """The result of one condition for the events that are bound to components (-1: missing).

    `anchor` is any event: constants are loaded from its row. `stack` is at least as long as the program.
    """
    top, is_missing = -1, False
    for row in range(start, stop):
        code = programs[row, 0]
        if code == LOAD or (code == OTHERWISE and is_missing):
            event, column = bound[programs[row, 1]], programs[row, 2]
            if event < 0:
                event, column = anchor, programs[row, 3]
            is_missing = column == NEXT_ROW
            if is_missing:
                continue
            if column < 0:
                return SKIPPED
            top += 1
            stack[top] = matrix[event, column]
        elif code == CONSTANT:
            top += 1
            stack[top] = matrix[anchor, programs[row, 2]]
        elif code == OTHERWISE:
            continue  # the row before it has loaded a value
        elif code in (NEGATE, ABSOLUTE, NOT, IS_NULL):
            stack[top] = _unary(code, stack[top])
        elif code == MEMBER:
            stack[top] = _is_member(members, programs[row, 2], programs[row, 3], stack[top])
        else:
            top -= 1
            stack[top] = _binary(code, stack[top], stack[top + 1])
    return HOLDS if stack[0] == 1.0 else FAILS


@compiled_inline
def _unary(code: int, number: Any) -> float:
    if code == NEGATE:
        return -number
    if code == ABSOLUTE:
        return abs(number)
    if code == NOT:
        return 1.0 - number
    return 1.0 if np.isnan(number) else 0.0


@compiled_inline
def _binary(code: int, left: float, right: float) -> float:
    if code >= EQUAL:
        return _compared(code, left, right)
    if code == ADD:
        return left + right
    if code == SUBTRACT:
        return left - right
    if code == MULTIPLY:
        return left * right
    if code == APART:
        return _apart(left, right)
    if right == 0.0:  # NULL, as in Spark
        return np.nan
    return left / right if code == DIVIDE else np.fmod(left, right)


@compiled_inline
def _apart(left: float, right: float) -> float:
    """The difference of two decimals: rounded to 15 digits of the larger one, so that 0.4 - 0.1 is 0.3."""
    apart, largest = left - right, max(abs(left), abs(right))
    if not 1e-7 <= largest <= 1e14:
        return apart
    scale = 10.0 ** (14 - np.floor(np.log10(largest)))
    return np.rint(apart * scale) / scale


@compiled_inline
def _compared(code: int, left: float, right: float) -> float:
    if np.isnan(left) or np.isnan(right):
        return np.nan
    if code == EQUAL:
        result = left == right
    elif code == UNEQUAL:
        result = left != right
    elif code == LESS:
        result = left < right
    elif code == AT_MOST:
        result = left <= right
    elif code == GREATER:
        result = left > right
    else:
        result = left >= right
    return 1.0 if result else 0.0


@compiled_inline
def _is_member(members: F64, start: int, stop: int, number: float) -> float:
    if np.isnan(number):
        return np.nan
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if members[middle] < number:
            low = middle + 1
        else:
            high = middle
    return 1.0 if low < stop and members[low] == number else 0.0
