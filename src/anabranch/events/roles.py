"""Which variables each row can be: what many queries ask of single rows, by property.

Demands on one column are not asked of its rows. A column is coded once: text by its distinct values, numbers by where
they lie among all constants that they are compared with. Each code has a set of bits, one a variable: those whose
demands on this column it meets. A row can be the variables that are in the sets of all its columns. So what a hundred
queries ask costs little more than what one asks.

A demand on several columns, or on a place, is asked of all rows, and counts as a column of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I32, I64, U64, Bools
from anabranch.binding.typed import Constant, Operation, Reference, Typed, conjuncts, references, walk
from anabranch.columns.numbers import EXACT, is_exact, numbers_of
from anabranch.compiled import compiled
from anabranch.language.types import Type

#: Where a condition holds of some columns, of so many rows.
Ask = Callable[[Typed, Mapping[str, pa.Array], int], Bools]

_COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")

#: The place of a bit in a word, by the product of the bit with this number: six bits of it differ for each place.
_DE_BRUIJN = 0x022FDD63CC95386D
_PLACES = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACES[((_DE_BRUIJN << _bit) & (2**64 - 1)) >> 58] = _bit


@dataclass(frozen=True, slots=True)
class Property:
    """A column coded: the code of each row, and for each code a value that stands for it."""

    codes: I32
    columns: Mapping[str, pa.Array]
    n_codes: int


def roles_of(columns: Mapping[str, pa.Array], demands: Sequence[tuple[int, Typed | None]], ask: Ask) -> tuple[I64, I64]:
    """Where the roles of each row begin, and the variable of each role; the variables of one row rise.

    Parameters
    ----------
    columns : of the rows, by lower-case name
    demands : (variable, what is asked of it alone), in rising order
    ask : where a condition holds of some columns
    """
    n = len(next(iter(columns.values())))
    asked: dict[str, dict[Typed, list[int]]] = {}
    for number, (_, demand) in enumerate(demands):
        for part in conjuncts(demand):
            asked.setdefault(_property_of(part), {}).setdefault(part, []).append(number)
    # Every variable is allowed where nothing is asked.
    codes, tables = [np.zeros(n, np.int32)], [_bits(1, len(demands))]
    for name, parts in asked.items():
        for coded, own in _properties(name, parts, columns, ask, n):
            codes.append(coded.codes)
            tables.append(_allowed(coded, own, ask, len(demands)))
    starts = np.cumsum([0, *(len(table) for table in tables)]).astype(np.int64)
    first = _count(np.stack(codes), np.concatenate(tables), starts)
    numbers = _write(np.stack(codes), np.concatenate(tables), starts, first, _PLACES)
    return first, np.array([variable for variable, _ in demands], np.int64)[numbers]


def _property_of(part: Typed) -> str:
    """The one column that a demand is about, or "" where it is about more."""
    names = {name for _, name in references(part)}
    return names.pop() if len(names) == 1 and "*" not in names else ""


def _bits(n_codes: int, n_variables: int) -> U64:
    """(codes, words): the bits of all variables, for each code."""
    table = np.full((n_codes, (n_variables + 63) // 64), ~np.uint64(0))
    if n_variables % 64:
        table[:, -1] = np.uint64((1 << n_variables % 64) - 1)
    return table


Parts = dict[Typed, list[int]]


def _properties(
    name: str, parts: Parts, columns: Mapping[str, pa.Array], ask: Ask, n: int
) -> list[tuple[Property, Parts]]:
    """Properties that decide some demands: the column that all of them are about, or the demands themselves."""
    column = columns.get(name)
    if column is not None and pa.types.is_string(column.type):
        return [(_texts(name, column), parts)]
    found: list[tuple[Property, Parts]] = []
    compared = {part: of for part, of in parts.items() if column is not None and _compares_numbers(part)}
    if compared and column is not None and is_exact(column):
        found.append((_numbers(name, column, list(compared)), compared))
    else:
        compared = {}
    for part, of in parts.items():
        if part not in compared:
            truth = ask(part, columns, n)
            # Two codes, FALSE and TRUE, which stand for themselves.
            answer = Reference(None, "#answer", Type.BOOLEAN)
            values = {"#answer": pa.array([False, True])}
            found.append((Property(truth.astype(np.int32), values, 2), {answer: of}))
    return found


def _texts(name: str, column: pa.Array) -> Property:
    """A column of text by its distinct values; NULL is one of them, for a condition may ask for it."""
    coded = column.dictionary_encode()
    values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
    codes = pc.fill_null(coded.indices, len(values) - 1).to_numpy(zero_copy_only=False)
    return Property(codes.astype(np.int32), {name: values}, len(values))


def _compares_numbers(part: Typed) -> bool:
    """Whether a condition on one column does nothing with it but compare it with numbers."""
    if not isinstance(part, Operation):
        return False
    if part.op in ("and", "or", "not"):
        return all(map(_compares_numbers, part.arguments))
    if part.op not in _COMPARISONS:
        return False
    column, constant = sorted(part.arguments, key=lambda side: isinstance(side, Constant))
    if not isinstance(column, Reference) or not isinstance(constant, Constant):
        return False
    numbers = (Type.INTEGER, Type.DOUBLE)
    small = isinstance(constant.value, int | float) and abs(constant.value) <= EXACT
    return small and column.type in numbers and constant.type in numbers


def _numbers(name: str, column: pa.Array, parts: Sequence[Typed]) -> Property:
    """A column of numbers by their places among the constants that they are compared with.

    Code 2 i + 1 is the i-th constant, 2 i what lies before it; the last two are what is not a number, and NULL.
    """
    constants = [node.value for part in parts for node in walk(part) if isinstance(node, Constant)]
    cuts = np.unique(np.array(constants, np.float64))
    codes = _between(numbers_of(column), cuts)
    last = 2 * len(cuts) + 2
    if column.null_count:
        codes[column.is_null().to_numpy(zero_copy_only=False)] = last
    values = np.empty(last + 1)
    values[1 : 2 * len(cuts) : 2] = cuts
    values[2 : 2 * len(cuts) : 2] = cuts[:-1] + (cuts[1:] - cuts[:-1]) / 2
    values[0], values[2 * len(cuts)], values[last - 1] = -np.inf, np.inf, np.nan
    missing = np.zeros(last + 1, np.bool_)
    missing[last] = True
    return Property(codes, {name: pa.array(values, mask=missing)}, last + 1)


@compiled
def _between(values: F64, cuts: F64) -> I32:
    codes = np.empty(len(values), np.int32)
    for i in range(len(values)):
        low, high = 0, len(cuts)
        while low < high:
            middle = (low + high) >> 1
            if cuts[middle] < values[i]:
                low = middle + 1
            else:
                high = middle
        codes[i] = 2 * low + 1 if low < len(cuts) and cuts[low] == values[i] else 2 * low
        if np.isnan(values[i]):
            codes[i] = 2 * len(cuts) + 1
    return codes


def _allowed(coded: Property, parts: Parts, ask: Ask, n_variables: int) -> U64:
    """(codes, words): the variables whose demands each code meets."""
    table = _bits(coded.n_codes, n_variables)
    for part, numbers in parts.items():
        bad = ~ask(part, coded.columns, coded.n_codes)
        for number in numbers:
            table[bad, number >> 6] &= ~(np.uint64(1) << np.uint64(number & 63))
    return table


@compiled
def _count(codes: I32, tables: U64, starts: I64) -> I64:
    """Where the roles of each row begin."""
    first = np.zeros(codes.shape[1] + 1, np.int64)
    for row in range(codes.shape[1]):
        count = 0
        for word in range(tables.shape[1]):
            bits = tables[starts[0] + codes[0, row], word]
            for k in range(1, len(codes)):
                bits &= tables[starts[k] + codes[k, row], word]
            while bits:
                bits &= bits - np.uint64(1)
                count += 1
        first[row + 1] = first[row] + count
    return first


@compiled
def _write(codes: I32, tables: U64, starts: I64, first: I64, places: I64) -> I64:
    """The numbers of the demands that each row meets, row by row."""
    numbers = np.empty(first[-1], np.int64)
    place = 0
    for row in range(codes.shape[1]):
        for word in range(tables.shape[1]):
            bits = tables[starts[0] + codes[0, row], word]
            for k in range(1, len(codes)):
                bits &= tables[starts[k] + codes[k, row], word]
            while bits:
                lowest = bits & (~bits + np.uint64(1))
                numbers[place] = 64 * word + places[(lowest * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]
                place += 1
                bits ^= lowest
    return numbers
