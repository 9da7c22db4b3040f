"""Finds the variables that each row can be, by the conditions of many queries on single rows.

A condition on one column is not evaluated for every row. The column is coded once: text by its distinct values, numbers
by their rank among all constants that they are compared with. Each code has a bit set with one bit per variable: the
variables whose conditions on this column it satisfies. A row can be the variables in the intersection of the sets of
all its columns. So the conditions of a hundred queries cost little more than those of one.

A condition on several columns, or on a location, is evaluated for all rows, and treated as a column with the codes
FALSE and TRUE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, I64, U64, Bools
from anabranch.binding.typed import Constant, Operation, Reference, Typed, conjuncts, references, walk
from anabranch.columns.numbers import EXACT, is_exact, numbers_of
from anabranch.events.kernel import DE_BRUIJN, codes_between, first_roles, role_numbers
from anabranch.language.types import Type

#: Evaluates a condition on columns, given the number of rows: the rows where it is TRUE.
Evaluate = Callable[[Typed, Mapping[str, pa.Array], int], Bools]

#: The conjuncts of conditions, each with the numbers of the conditions it occurs in.
Conjuncts = dict[Typed, list[int]]

_COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")

#: The exponent of a power of two, by the highest six bits of its product with DE_BRUIJN.
_BIT_INDEX = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_INDEX[((DE_BRUIJN << _bit) & (2**64 - 1)) >> 58] = _bit


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A coded column: the code of each row, and `columns` with one representative value per code."""

    codes: I32
    columns: Mapping[str, pa.Array]
    n_codes: int


def roles_of(
    columns: Mapping[str, pa.Array], conditions: Sequence[tuple[int, Typed | None]], evaluate: Evaluate
) -> tuple[I64, I64]:
    """The index of the first role of each row, and the variable of each role; the variables of one row ascend.

    Parameters
    ----------
    columns : of the rows, by lower-case name
    conditions : (variable, the condition on its event alone), ascending
    evaluate : evaluates a condition on columns
    """
    n = len(next(iter(columns.values())))
    by_column: dict[str, Conjuncts] = {}
    for number, (_, condition) in enumerate(conditions):
        for conjunct in conjuncts(condition):
            by_column.setdefault(_column_of(conjunct), {}).setdefault(conjunct, []).append(number)
    # The first column has one code, which allows every variable: a row without conditions can be any of them.
    codes, tables = [np.zeros(n, np.int32)], [_bits(1, len(conditions))]
    for name, column_conjuncts in by_column.items():
        for coded, decided in _coded_columns(name, column_conjuncts, columns, evaluate, n):
            codes.append(coded.codes)
            tables.append(_allowed(coded, decided, evaluate, len(conditions)))
    starts = np.cumsum([0, *(len(table) for table in tables)]).astype(np.int64)
    first = first_roles(np.stack(codes), np.concatenate(tables), starts)
    numbers = role_numbers(np.stack(codes), np.concatenate(tables), starts, first, _BIT_INDEX)
    return first, np.array([variable for variable, _ in conditions], np.int64)[numbers]


def _column_of(conjunct: Typed) -> str:
    """The only column in a conjunct, or "" if there are several."""
    names = {name for _, name in references(conjunct)}
    return names.pop() if len(names) == 1 and "*" not in names else ""


def _bits(n_codes: int, n_variables: int) -> U64:
    """(codes, words): a table of bits in which every code allows every variable."""
    table = np.full((n_codes, (n_variables + 63) // 64), ~np.uint64(0))
    if n_variables % 64:
        table[:, -1] = np.uint64((1 << n_variables % 64) - 1)
    return table


def _coded_columns(
    name: str, column_conjuncts: Conjuncts, columns: Mapping[str, pa.Array], evaluate: Evaluate, n: int
) -> list[tuple[CodedColumn, Conjuncts]]:
    """Coded columns, each with the conjuncts that its codes decide: the column `name`, or the results of conjuncts."""
    column = columns.get(name)
    if column is not None and pa.types.is_string(column.type):
        return [(_texts(name, column), column_conjuncts)]
    coded_columns: list[tuple[CodedColumn, Conjuncts]] = []
    compared = {
        conjunct: numbers
        for conjunct, numbers in column_conjuncts.items()
        if column is not None and _compares_numbers(conjunct)
    }
    if compared and column is not None and is_exact(column):
        coded_columns.append((_numbers(name, column, list(compared)), compared))
    else:
        compared = {}
    for conjunct, numbers in column_conjuncts.items():
        if conjunct not in compared:
            truth = evaluate(conjunct, columns, n)
            # The codes are 0 and 1, and the conjunct becomes a reference to their representatives FALSE and TRUE.
            answer = Reference(None, "#answer", Type.BOOLEAN)
            values = {"#answer": pa.array([False, True])}
            coded_columns.append((CodedColumn(truth.astype(np.int32), values, 2), {answer: numbers}))
    return coded_columns


def _texts(name: str, column: pa.Array) -> CodedColumn:
    """A text column coded by its distinct values; NULL has a code too, because of IS NULL."""
    coded = column.dictionary_encode()
    values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
    codes = pc.fill_null(coded.indices, len(values) - 1).to_numpy(zero_copy_only=False)
    return CodedColumn(codes.astype(np.int32), {name: values}, len(values))


def _compares_numbers(condition: Typed) -> bool:
    """Whether a condition on one column only compares it with numbers."""
    if not isinstance(condition, Operation):
        return False
    if condition.op in ("and", "or", "not"):
        return all(map(_compares_numbers, condition.arguments))
    if condition.op not in _COMPARISONS:
        return False
    column, constant = sorted(condition.arguments, key=lambda side: isinstance(side, Constant))
    if not isinstance(column, Reference) or not isinstance(constant, Constant):
        return False
    numbers = (Type.INTEGER, Type.DOUBLE)
    small = isinstance(constant.value, int | float) and abs(constant.value) <= EXACT
    return small and column.type in numbers and constant.type in numbers


def _numbers(name: str, column: pa.Array, compared: Sequence[Typed]) -> CodedColumn:
    """A column of numbers coded by their rank among the constants that they are compared with.

    Code 2 i + 1 is the i-th constant, code 2 i the numbers between it and the constant before it. The last two codes
    are NaN and NULL.
    """
    constants = [node.value for condition in compared for node in walk(condition) if isinstance(node, Constant)]
    cuts = np.unique(np.array(constants, np.float64))
    codes = codes_between(numbers_of(column), cuts)
    last = 2 * len(cuts) + 2
    if column.null_count:
        codes[column.is_null().to_numpy(zero_copy_only=False)] = last
    values = np.empty(last + 1)
    values[1 : 2 * len(cuts) : 2] = cuts
    values[2 : 2 * len(cuts) : 2] = cuts[:-1] + (cuts[1:] - cuts[:-1]) / 2
    values[0], values[2 * len(cuts)], values[last - 1] = -np.inf, np.inf, np.nan
    missing = np.zeros(last + 1, np.bool_)
    missing[last] = True
    return CodedColumn(codes, {name: pa.array(values, mask=missing)}, last + 1)


def _allowed(coded: CodedColumn, decided: Conjuncts, evaluate: Evaluate, n_variables: int) -> U64:
    """(codes, words): the bits of the variables whose conditions each code satisfies."""
    table = _bits(coded.n_codes, n_variables)
    for conjunct, numbers in decided.items():
        bad = ~evaluate(conjunct, coded.columns, coded.n_codes)
        for number in numbers:
            table[bad, number >> 6] &= ~(np.uint64(1) << np.uint64(number & 63))
    return table
