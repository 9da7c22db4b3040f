"""Finishing rules: how the answers of operators become the rows of a query's result.

A kind states its rules once, as data. `finish_table` applies them to an Arrow table (the answers of a micro-batch);
`runtime/finishing.py` lowers the same rules to Spark expressions (the answers of an archive).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.binding.bound import CALIBRATED
from anabranch.columns.calibration import CalibrationMap
from anabranch.columns.counts import summed_counts
from anabranch.columns.dictionary import encode_tuples
from anabranch.transport.dependence import BoundsRule, with_bounds
from anabranch.transport.per import PerRule

#: The column that says which query of a group an answer belongs to, where a job serves several.
QUERY = "query"

#: The `count` of a result column that has all elements of a list from its `index` on.
REST = -1


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result.

    Attributes
    ----------
    name : of the result column
    source : the column of the operators' answers; None for a constant
    index : of an element of `source`, where that is a list; None for the column itself
    count : how many elements from `index` on stay a list, all for `REST`; None for one element
    constant : the value of every row, where there is no source
    """

    name: str
    source: str | None = None
    index: int | None = None
    count: int | None = None
    constant: str | int | None = None


@dataclass(frozen=True, slots=True)
class StructColumn:
    """A column of a result that is a struct of others."""

    name: str
    fields: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Combines independent rows: the probability that at least one is true, 1 - prod(1 - p), summed as logarithms.

    Rows with equal `by` columns are combined. Operators give `log_none`, the logarithm of the probability that none is
    true. The result has a column `probability`; rows with probability 0, or a probability below `least`, are dropped.
    """

    by: tuple[str, ...]
    least: float


@dataclass(frozen=True, slots=True)
class SumOf:
    """Adds independent counts: the probability that their sum is at least `limit`, where they stop.

    Rows with equal `by` columns are added. Operators give `counts`, the probability of each number from 0 to `limit`,
    and `expected`. The result has columns `probability` and `expected`; rows with probability 0 or below `least` are
    dropped.
    """

    by: tuple[str, ...]
    limit: int
    least: float


@dataclass(frozen=True, slots=True)
class BlockSide:
    """One operand of a pairing: the stream of its rows and the columns that assign them to blocks.

    `as_doubles` says which columns are compared as doubles: equal numbers have equal hashes only in one type.
    """

    stream: int
    columns: tuple[str, ...]
    as_doubles: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Rows that become answers in pairs. Spark brings them together in blocks; `decide` gives the answers of a block.

    Attributes
    ----------
    sides : the two operands
    equal : whether rows with equal columns share a block. Otherwise blocks form a square: a row belongs to one line of
        blocks as the first operand and to one column of blocks as the second, so that every two rows meet once
    decide : from the members of a block (columns `block` and `side` added) to its answers
    schema : of these answers
    """

    sides: tuple[BlockSide, BlockSide]
    equal: bool
    decide: Callable[[pa.Table], pa.Table]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Finishing:
    """The rules of one query, applied in this order.

    Attributes
    ----------
    query : number of the query whose answers are kept, where a job serves several
    prefix : what the names of its answer columns begin with, where each query has columns of its own
    pairing : for answers about pairs of rows
    any_of, sum_of : for answers that are combined over buckets
    columns : of the result; None keeps all
    bounds : for answers whose events depend on each other
    per : for rows of several answers; None if every answer is a row
    calibration : adds the column `calibrated`
    limit : how many rows are kept, the most probable ones, in this order; rows of equal probability are ordered by
        their columns. None keeps all, in no order
    """

    query: int | None = None
    prefix: str = ""
    pairing: Pairing | None = None
    any_of: AnyOf | None = None
    sum_of: SumOf | None = None
    columns: tuple[ResultColumn | StructColumn, ...] | None = None
    bounds: BoundsRule | None = None
    per: PerRule | None = None
    calibration: CalibrationMap | None = None
    limit: int | None = None

    @property
    def merges(self) -> bool:
        """Whether the result may have fewer rows than the query has answers."""
        return self.per is not None or self.limit is not None

    def of_answers(self) -> Finishing:
        """The rules without those that make rows of several answers, or apply to such rows."""
        return replace(self, per=None, calibration=None, limit=None)


def finish_table(rules: Finishing, answers: pa.Table) -> pa.Table:
    """Apply the rules to the answers of a micro-batch, which are not all answers of a query."""
    if rules.pairing is not None:
        raise ValueError("pairs are formed by Spark")
    if rules.merges:
        raise ValueError("rows of several answers need all answers")
    if rules.query is not None:
        answers = answers.filter(pc.equal(answers[QUERY], rules.query))
    if rules.prefix:
        own = [name for name in answers.column_names if name.startswith(rules.prefix)]
        answers = answers.select(own).rename_columns([name.removeprefix(rules.prefix) for name in own])
    if rules.any_of is not None:
        answers = _combine(rules.any_of, answers)
    if rules.sum_of is not None:
        answers = _add(rules.sum_of, answers)
    if rules.columns is not None:
        answers = pa.table({column.name: _column(column, answers) for column in rules.columns})
    if rules.bounds is not None:
        answers = with_bounds(rules.bounds, answers)
    return with_calibration(rules, answers)


def with_calibration(rules: Finishing, rows: pa.Table) -> pa.Table:
    """The rows with the column `calibrated`, if there is a map."""
    if rules.calibration is None:
        return rows
    return rows.append_column(CALIBRATED, rules.calibration.apply_to_column(rows["probability"]))


def _combine(rule: AnyOf, answers: pa.Table) -> pa.Table:
    combined = answers.group_by(list(rule.by)).aggregate([("log_none", "sum")])
    probability = -np.expm1(combined["log_none_sum"].to_numpy())
    kept = (probability > 0) & (probability >= rule.least)
    return combined.append_column("probability", pa.array(probability)).filter(pa.array(kept))


def _add(rule: SumOf, answers: pa.Table) -> pa.Table:
    columns = [answers[name] for name in rule.by]
    group, _ = encode_tuples(columns, answers.num_rows)
    _, first = np.unique(group, return_index=True)
    counts = answers["counts"].combine_chunks().flatten().to_numpy().reshape(-1, rule.limit + 1)
    p = summed_counts(counts, group.astype(np.int64), len(first))[:, -1]
    expected = np.bincount(group, answers["expected"].to_numpy(), minlength=len(first))
    kept = (p > 0) & (p >= rule.least)
    added = answers.take(pa.array(first)).select(list(rule.by))
    return (
        added.append_column("probability", pa.array(p))
        .append_column("expected", pa.array(expected))
        .filter(pa.array(kept))
    )


def _column(column: ResultColumn | StructColumn, answers: pa.Table) -> pa.ChunkedArray | pa.Array:
    if isinstance(column, StructColumn):
        fields = [_column(field, answers) for field in column.fields]
        return pc.make_struct(*fields, field_names=[field.name for field in column.fields])
    if column.source is None:
        return pa.repeat(column.constant, answers.num_rows)
    source = answers[column.source]
    if column.index is None:
        return source
    if column.count is None:
        return pc.list_element(source, column.index)
    return pc.list_slice(source, column.index, None if column.count == REST else column.index + column.count)
