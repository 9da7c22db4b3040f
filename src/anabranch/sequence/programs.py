"""Conditions on several components as programs of the kernel, and the columns of numbers that these load.

What a condition says of one component alone is worked out for each event before, by Arrow, so that a program only
combines numbers: the difference of two times, the comparison of two texts by their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, Bools
from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed, of_event, walk
from anabranch.columns.conditions import Relations, evaluate, same_type
from anabranch.columns.dictionary import flat
from anabranch.columns.numbers import coded, numbers_of
from anabranch.events.batch import Batch
from anabranch.language.types import Type
from anabranch.sequence.analysis import owners, stand_in
from anabranch.sequence.kernel import programs as kernel
from anabranch.sequence.query import BoundSequence

#: Comparisons take the ranks of such values; other values are numbers.
_RANKED = (Type.STRING, Type.TIMESTAMP, Type.DATE, Type.BINARY)

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class ColumnOf:
    """A value of an event that programs load: an expression on the columns of a stream, or (None) a constant.

    Values of one `group` are compared with each other, and have common ranks. A value that is asked of a column of a
    relation is its place among the distinct entries of that column.
    """

    stream: str | None
    value: Typed
    group: int | None = None
    asked: tuple[str, int] | None = None


@dataclass(slots=True)
class Programs:
    """Programs one after the other, what they load, and the rows of relations that they look for.

    `relations` are the rows of those that are asked.
    """

    query: BoundSequence
    relations: Relations
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    columns: list[ColumnOf] = field(default_factory=list)
    members: list[float] = field(default_factory=list)
    groups: int = 0

    def add(self, condition: Typed) -> int:
        """Write the program of a condition; its number."""
        self._write(condition, None)
        self.first.append(len(self.rows))
        return len(self.first) - 2

    def _write(self, tree: Typed, group: int | None) -> None:
        if len(owners(tree)) < 2:
            self._load(tree, group)
        elif isinstance(tree, Member):
            self._ask(tree)
        elif isinstance(tree, Operation):
            if tree.op in _COMPARISONS and all(side.type in _RANKED or _is_whole(side) for side in tree.arguments):
                group = self.groups
                self.groups += 1
            for part in tree.arguments:
                self._write(part, group)
            self.rows.append((kernel.CODES[tree.op], 0, 0, 0))
            if tree.op == "-" and tree.type is Type.DOUBLE and tree.arguments[0].type is Type.TIMESTAMP:
                # Times are microseconds, and the difference of two of them is in seconds.
                self._load(Constant(1e6, Type.DOUBLE), None)
                self.rows.append((kernel.DIVIDE, 0, 0, 0))

    def _load(self, tree: Typed, group: int | None, asked: tuple[str, int] | None = None) -> None:
        """Load a value of one component, or a constant."""
        named = owners(tree)
        if not named:
            self.rows.append((kernel.CONSTANT, 0, self._column(ColumnOf(None, tree, group, asked)), 0))
            return
        (name,) = named
        number = next(n for n, each in enumerate(self.query.components) if each.name == name)
        stream = self.query.components[number].stream.name.lower()
        column = self._column(ColumnOf(stream, of_event(tree), group, asked))
        instead = -1
        if all(node.default is not None for node in walk(tree) if isinstance(node, Reference)):
            instead = self._column(ColumnOf(None, stand_in(tree), group, asked))
        self.rows.append((kernel.LOAD, number, column, instead))

    def _column(self, wanted: ColumnOf) -> int:
        if wanted not in self.columns:
            self.columns.append(wanted)
        return self.columns.index(wanted)

    def _ask(self, member: Member) -> None:
        """A row of a relation as one number, whose digits are the places of its values among the distinct ones."""
        name, table = member.relation.name.lower(), self.relations[member.relation.name.lower()]
        digits = np.zeros(table.num_rows)
        whole = np.ones(table.num_rows, np.bool_)
        for place, argument in enumerate(member.arguments):
            entries = distinct(table, place)
            known = pc.index_in(flat(table.column(place)), value_set=entries)
            whole &= ~known.is_null().to_numpy(zero_copy_only=False)
            digits = digits * (len(entries) + 1) + pc.fill_null(known, 0).to_numpy(zero_copy_only=False)
            if place:
                self._load(Constant(float(len(entries) + 1), Type.DOUBLE), None)
                self.rows.append((kernel.MULTIPLY, 0, 0, 0))
            self._load(argument, None, (name, place))
            if place:
                self.rows.append((kernel.ADD, 0, 0, 0))
        start = len(self.members)
        self.members.extend(np.unique(digits[whole]).tolist())
        self.rows.append((kernel.MEMBER, 0, start, len(self.members)))


def _is_whole(value: Typed) -> bool:
    """Whether a value is a whole number as it stands, which can be too large for a double."""
    return value.type is Type.INTEGER and isinstance(value, Reference | Constant)


def distinct(table: pa.Table, place: int) -> pa.Array:
    """The different values of a column of a relation; NULL is none."""
    return pc.drop_null(pc.unique(flat(table.column(place))))


# ---------------------------------------------------------------- numbers


def matrix_of(batch: Batch, columns: Sequence[ColumnOf], relations: Relations) -> F64:
    """(events, columns): what programs load; NaN for events of other streams, and for NULL."""
    matrix = np.full((len(batch), len(columns)), np.nan)
    names = [table.layout.name.lower() for table in batch.tables]
    ranked: dict[int, list[tuple[Bools, int, pa.Array]]] = {}
    for place, column in enumerate(columns):
        if column.stream is None:
            own, values = np.ones(len(batch), np.bool_), evaluate(column.value, {}, relations, 1)
        else:
            number = names.index(column.stream)
            own, table = batch.stream == number, batch.tables[number]
            values = evaluate(column.value, table.columns, relations, len(table))
        if column.group is not None:
            ranked.setdefault(column.group, []).append((own, place, values))
        elif column.asked is not None:
            matrix[own, place] = _places(values, distinct(relations[column.asked[0]], column.asked[1]))
        else:
            matrix[own, place] = _doubles(values)
    for members in ranked.values():
        for (own, place, _), numbers in zip(members, coded([values for _, _, values in members]), strict=True):
            matrix[own, place] = numbers
    return matrix


def _doubles(values: pa.Array) -> F64:
    """Values as numbers; times are microseconds."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
    return numbers_of(values)


def _places(values: pa.Array, entries: pa.Array) -> F64:
    """The place of each value among the entries, one beyond them all where it is not there; NaN for NULL."""
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    values, entries = same_type(values, pa.chunked_array([entries]))
    places = pc.fill_null(pc.index_in(values, value_set=entries), len(entries))
    return numbers_of(pc.if_else(values.is_null(), pa.scalar(None, pa.int32()), places))
