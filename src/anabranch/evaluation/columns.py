"""Which columns of answers and of the ground truth are compared: keys, also inside structs, and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, Bools
from anabranch.errors import DataError
from anabranch.evaluation.series import NOT_GROUPS, instants

#: The columns that say when an answer or an event is: an instant, or the first and last instant.
TIMES = (("t",), ("valid_from", "valid_to"), ("t_from", "t_to"))

#: The default name of the column that says which rows of the truth are true, where it also lists what did not happen.
LABEL = "true"

Columns = dict[str, pa.ChunkedArray]


def flat(table: pa.Table) -> pa.Table:
    """Return the table with a column `a.key` for each field of a struct `a`, as in CSV files.

    The elements of an array of structs (`v*5` of a CONSTRAIN) become one text per field, such as `b1, b2`.
    """
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    columns: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type) and name not in NOT_GROUPS:
            for field in column.type.value_type:
                columns[f"{name}.{field.name}"] = _joined(column, field.name)
        else:
            columns[name] = column
    return pa.table(columns)


def _joined(column: pa.ChunkedArray, field: str) -> pa.Array:
    lists = column.to_pylist()
    texts = [None if items is None else ", ".join(str(item[field]) for item in items) for items in lists]
    return pa.array(texts, pa.string())


def require(table: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    """Return a column; names are compared without case."""
    column = _found(table, name)
    if column is None:
        raise DataError(f"the {what} have no column {name}; they have: {', '.join(table.column_names)}")
    return table[column]


def _found(table: pa.Table, name: str) -> str | None:
    return next((column for column in table.column_names if column.lower() == name.lower()), None)


# ---------------------------------------------------------------- conditions


def condition(text: str) -> tuple[str, str | None, bool]:
    """Return the column, the value and whether it must differ, of `COLUMN=VALUE` or `COLUMN!=VALUE`; empty is NULL."""
    left, equals, value = text.partition("=")
    if not equals or not left.removesuffix("!"):
        raise DataError(f"--where takes COLUMN=VALUE or COLUMN!=VALUE, not {text}")
    return left.removesuffix("!"), value or None, left.endswith("!")


def satisfying(answers: pa.Table, where: Sequence[str]) -> pa.Table:
    """Return the answers for which all conditions hold; values are compared as text."""
    for text in where:
        name, value, differs = condition(text)
        column = require(answers, name, "answers")
        holds = pc.is_null(column) if value is None else pc.equal(pc.cast(column, pa.string()), value)
        holds = pc.fill_null(holds, False)
        answers = answers.filter(pc.invert(holds) if differs else holds)
    return answers


# ---------------------------------------------------------------- keys


def key_columns(answers: pa.Table, truth: pa.Table, by: Sequence[str] | None) -> tuple[Columns, Columns]:
    """Return the columns that say which answers and events belong together, under common names.

    Parameters
    ----------
    answers, truth : pa.Table
        Without structs, see `flat`.
    by : sequence of str, optional
        The columns, as `ANSWER` or `ANSWER=TRUTH`. By default, all columns of the truth that the answers have, too. A
        name may stand for the field of a struct: `tag` for `x.tag` and `z.tag`, if these are equal wherever both are
        known.
    """
    pairs: dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]] = {}
    if by is None:
        named = [name for name in truth.column_names if name.lower() not in NOT_GROUPS]
        for name in named:
            column = _answer_column(answers, name)
            if column is not None:
                pairs[name] = (column, truth[name])
        if named and not pairs:
            known = f"the truth has {', '.join(named)}, the answers have {', '.join(answers.column_names)}"
            raise DataError(f"answers and truth have no column in common: {known}; use --by ANSWER=TRUTH")
    for item in by or ():
        name, _, true_name = item.partition("=")
        column = _answer_column(answers, name)
        if column is None:
            raise DataError(f"the answers have no column {name}; they have: {', '.join(answers.column_names)}")
        pairs[name] = (column, require(truth, true_name or name, "true events"))
    ours, theirs = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
    return ours, theirs


def _answer_column(answers: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return the column of answers that a name stands for: a column, or a field that all structs agree on."""
    plain = {column.lower(): column for column in answers.column_names}
    plain = {column.replace(".", "_"): spelled for column, spelled in plain.items()} | plain
    if name.lower() in plain:
        return answers[plain[name.lower()]]
    fields = [column for column in answers.column_names if column.lower().rpartition(".")[2] == name.lower()]
    if not fields:
        return None
    whole = pc.coalesce(*(answers[column] for column in fields))
    for column in fields:
        if pc.any(pc.not_equal(answers[column], whole)).as_py():
            different = f"{' and '.join(fields)} of the answers differ"
            raise DataError(f"{name} may be any of several columns: {different}; use --by {fields[0]}={name}")
    return whole


# ---------------------------------------------------------------- times


class Times(NamedTuple):
    """The first and last instants of rows as numbers, and whether they are timestamps."""

    starts: F64
    ends: F64
    clock: bool


def time_columns(table: pa.Table, names: Sequence[str] | None, what: str) -> Times | None:
    """Return the times of rows; None if the table has none."""
    if names is None:
        names = next((names for names in TIMES if all(_found(table, name) for name in names)), None)
    if names is None:
        return None
    columns = [_as_time(require(table, name, what), name, what) for name in names]
    return Times(instants(columns[0]), instants(columns[-1]), pa.types.is_timestamp(columns[0].type))


def _as_time(column: pa.ChunkedArray, name: str, what: str) -> pa.ChunkedArray:
    """Return a column of numbers or timestamps; texts and dates become timestamps."""
    types = pa.types
    if types.is_timestamp(column.type) or types.is_integer(column.type) or types.is_floating(column.type):
        return column
    try:
        return pc.cast(column, pa.timestamp("us", "UTC"))
    except pa.ArrowException:
        reason = f"column {name} of the {what} has type {column.type}"
        raise DataError(f"{reason}, not a time; use numbers or timestamps such as 2026-03-02 09:00:00") from None


def true_rows(truth: pa.Table, label: str | None) -> pa.Table:
    """Return the rows of the truth that are true, without their label; all rows, if there is no column `true`."""
    name = _found(truth, label or LABEL)
    if name is None:
        if label is not None:
            require(truth, label, "true events")
        return truth
    try:
        chosen = pc.cast(truth[name], pa.bool_())
    except pa.ArrowException:
        reason = f"column {name} of the truth has type {truth[name].type}"
        raise DataError(f"{reason}; use true and false, or 1 and 0") from None
    return truth.filter(pc.fill_null(chosen, False)).drop([name])


def finite(*columns: F64) -> Bools:
    """Return which rows have a value in all columns."""
    return np.logical_and.reduce([np.isfinite(column) for column in columns])


def numbers(column: pa.ChunkedArray, name: str) -> F64:
    """Return a column of probabilities as numbers; NULL is NaN."""
    try:
        values = pc.cast(column, pa.float64())
    except pa.ArrowException:
        raise DataError(f"column {name} of the answers has type {column.type}, not a number") from None
    array: F64 = values.to_numpy().astype(np.float64)
    return array
