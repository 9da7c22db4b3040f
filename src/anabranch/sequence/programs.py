"""Compiles conditions on several components to programs of the kernel, with the columns of numbers that they load.

Subexpressions on one component are computed for each event beforehand, by Arrow. So a program only combines numbers:
the difference of two times, the comparison of two texts by their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, Bools
from anabranch.binding.time_bounds import TimeBound, time_bound
from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed, of_event, walk
from anabranch.columns.conditions import Relations, evaluate, same_type
from anabranch.columns.dictionary import flat
from anabranch.columns.numbers import coded, numbers_of
from anabranch.events.batch import Batch
from anabranch.language.types import Type
from anabranch.sequence.analysis import alternatives, owners, stand_in
from anabranch.sequence.kernel import programs as kernel
from anabranch.sequence.query import BoundSequence

#: Values of these types are compared by their ranks; other values are numbers.
_RANKED = (Type.STRING, Type.TIMESTAMP, Type.DATE, Type.BINARY)

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class ColumnOf:
    """A value that programs load: an expression on the columns of a stream, or a constant if `stream` is None.

    Values of one `group` are compared with each other, and have common ranks. If the value is looked up in a column of
    a relation (`lookup`), it is loaded as its index among the distinct entries of that column.
    """

    stream: str | None
    value: Typed
    group: int | None = None
    lookup: tuple[str, int] | None = None


@dataclass(slots=True)
class Programs:
    """The programs of a search, concatenated in `rows`; the columns they load; and the `members` of relations."""

    query: BoundSequence
    relations: Relations
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    columns: list[ColumnOf] = field(default_factory=list)
    members: list[float] = field(default_factory=list)
    groups: int = 0

    def add(self, condition: Typed) -> int:
        """Add the program of a condition; returns its number."""
        self._write(condition, None)
        self.first.append(len(self.rows))
        return len(self.first) - 2

    def _write(self, tree: Typed, group: int | None) -> None:
        if isinstance(tree, Reference) or len(owners(tree)) < 2:
            self._load(tree, group)
        elif isinstance(tree, Member):
            self._look_up(tree)
        elif (bound := self._rounded_bound(tree)) is not None:
            self._write_time_bound(bound)
        elif isinstance(tree, Operation):
            if tree.op in _COMPARISONS and all(side.type in _RANKED or _is_whole(side) for side in tree.arguments):
                group = self.groups
                self.groups += 1
            for part in tree.arguments:
                self._write(part, group)
            self.rows.append((kernel.CODES[tree.op], 0, 0, 0))
            if tree.op == "-" and tree.type is Type.DOUBLE and tree.arguments[0].type is Type.TIMESTAMP:
                # Timestamps are in microseconds, and their difference is in seconds.
                self._load(Constant(1e6, Type.DOUBLE), None)
                self.rows.append((kernel.DIVIDE, 0, 0, 0))

    def _rounded_bound(self, tree: Typed) -> TimeBound | None:
        """The bound that a comparison states on a difference of DOUBLE times, which is rounded; None if it is not."""
        bound = time_bound(self.query.stream_of, tree)
        return bound if bound is not None and bound.value != 0 and bound.one.type is Type.DOUBLE else None

    def _write_time_bound(self, bound: TimeBound) -> None:
        """Compare the difference of two DOUBLE times with a number, as the decimals that they were written as."""
        self._load(bound.one, None)
        self._load(bound.other, None)
        self.rows.append((kernel.APART, 0, 0, 0))
        if bound.is_absolute:
            self.rows.append((kernel.ABSOLUTE, 0, 0, 0))
        self._load(Constant(bound.value, Type.DOUBLE), None)
        self.rows.append((kernel.CODES[bound.op], 0, 0, 0))

    def _load_column(self, reference: Reference, group: int | None, lookup: tuple[str, int] | None = None) -> None:
        """Load a column of a component; if it is missing, its default, which may be a column of another component."""
        code = kernel.LOAD
        for node in alternatives(reference):
            other = kernel.NO_DEFAULT
            if isinstance(node.default, Reference):
                other = kernel.NEXT_ROW
            elif node.default is not None:
                other = self._column(ColumnOf(None, node.default, group, lookup))
            number, stream = self._component(node.owner)
            self.rows.append((code, number, self._column(ColumnOf(stream, of_event(node), group, lookup)), other))
            code = kernel.OTHERWISE

    def _component(self, name: str | None) -> tuple[int, str]:
        """The number and the stream of a component."""
        number = next(n for n, component in enumerate(self.query.components) if component.name == name)
        return number, self.query.components[number].stream.name.lower()

    def _load(self, tree: Typed, group: int | None, lookup: tuple[str, int] | None = None) -> None:
        """Load a value of one component, or a constant."""
        if isinstance(tree, Reference):
            self._load_column(tree, group, lookup)
            return
        names = owners(tree)
        if not names:
            self.rows.append((kernel.CONSTANT, 0, self._column(ColumnOf(None, tree, group, lookup)), 0))
            return
        (name,) = names
        number, stream = self._component(name)
        column = self._column(ColumnOf(stream, of_event(tree), group, lookup))
        default = kernel.NO_DEFAULT
        if all(node.default is not None for node in walk(tree) if isinstance(node, Reference)):
            default = self._column(ColumnOf(None, stand_in(tree), group, lookup))
        self.rows.append((kernel.LOAD, number, column, default))

    def _column(self, column: ColumnOf) -> int:
        """The index of a column, which is added if it is new."""
        if column not in self.columns:
            self.columns.append(column)
        return self.columns.index(column)

    def _look_up(self, member: Member) -> None:
        """Look up a tuple in a relation.

        A row is encoded as one number: each digit is the index of a value among the distinct entries of its column.
        """
        name, table = member.relation.name.lower(), self.relations[member.relation.name.lower()]
        numbers = np.zeros(table.num_rows)
        is_complete = np.ones(table.num_rows, np.bool_)
        for index, argument in enumerate(member.arguments):
            entries = distinct(table, index)
            digit = pc.index_in(flat(table.column(index)), value_set=entries)
            is_complete &= ~digit.is_null().to_numpy(zero_copy_only=False)
            numbers = numbers * (len(entries) + 1) + pc.fill_null(digit, 0).to_numpy(zero_copy_only=False)
            if index:
                self._load(Constant(float(len(entries) + 1), Type.DOUBLE), None)
                self.rows.append((kernel.MULTIPLY, 0, 0, 0))
            self._load(argument, None, (name, index))
            if index:
                self.rows.append((kernel.ADD, 0, 0, 0))
        start = len(self.members)
        self.members.extend(np.unique(numbers[is_complete]).tolist())
        self.rows.append((kernel.MEMBER, 0, start, len(self.members)))


def _is_whole(value: Typed) -> bool:
    """Whether a value is an integer column or constant, which can be too large for a double."""
    return value.type is Type.INTEGER and isinstance(value, Reference | Constant)


def distinct(table: pa.Table, index: int) -> pa.Array:
    """The distinct values of a column of a relation, without NULL."""
    return pc.drop_null(pc.unique(flat(table.column(index))))


# ---------------------------------------------------------------- numbers


def matrix_of(batch: Batch, columns: Sequence[ColumnOf], relations: Relations) -> F64:
    """(events, columns): the values that programs load; NaN for NULL, and for events of other streams."""
    matrix = np.full((len(batch), len(columns)), np.nan)
    names = [table.layout.name.lower() for table in batch.tables]
    ranked: dict[int, list[tuple[Bools, int, pa.Array]]] = {}
    for index, column in enumerate(columns):
        if column.stream is None:
            mask, values = np.ones(len(batch), np.bool_), evaluate(column.value, {}, relations, 1)
        else:
            number = names.index(column.stream)
            mask, table = batch.stream == number, batch.tables[number]
            values = evaluate(column.value, table.columns, relations, len(table))
        if column.group is not None:
            ranked.setdefault(column.group, []).append((mask, index, values))
        elif column.lookup is not None:
            matrix[mask, index] = _entry_indices(values, distinct(relations[column.lookup[0]], column.lookup[1]))
        else:
            matrix[mask, index] = _doubles(values)
    for members in ranked.values():
        for (mask, index, _), numbers in zip(members, coded([values for _, _, values in members]), strict=True):
            matrix[mask, index] = numbers
    return matrix


def _doubles(values: pa.Array) -> F64:
    """Values as numbers; timestamps in microseconds."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
    return numbers_of(values)


def _entry_indices(values: pa.Array, entries: pa.Array) -> F64:
    """The index of each value among the entries, len(entries) if it is not one of them; NaN for NULL."""
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    values, entries = same_type(values, pa.chunked_array([entries]))
    indices = pc.fill_null(pc.index_in(values, value_set=entries), len(entries))
    return numbers_of(pc.if_else(values.is_null(), pa.scalar(None, pa.int32()), indices))
