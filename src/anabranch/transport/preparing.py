"""Before rows are checked, those of a source become those of its stream: JOIN, WHERE, AS, computed columns, times.

A row that WHERE or JOIN excludes is counted. A row of which a time or a value cannot be computed is quarantined as it
was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.binding.typed import Reference, Typed, references, walk
from anabranch.columns.conditions import ARROW_TYPES, evaluate, same_type
from anabranch.columns.dictionary import encode_tuples, flat, plain
from anabranch.errors import DataError
from anabranch.language.types import Type
from anabranch.transport.checks import QUARANTINE, plain_rows, quarantine
from anabranch.transport.preparation import Preparation

Relations = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class PreparedRows:
    """The rows of the stream, the rows that cannot be made (as read), and how many JOIN and WHERE exclude."""

    rows: pa.Table
    rejected: pa.Table
    excluded: int


def prepare_rows(table: pa.Table, stream: str, preparation: Preparation, relations: Relations) -> PreparedRows:
    """Make the rows of a stream from those of its source; `table` has the columns `preparation.sources`."""
    source = _SourceRows(table, preparation, relations)
    kept = source.join() & source.satisfy()
    rejected = QUARANTINE.empty_table()
    columns = {name: source.value(tree) for name, tree in preparation.columns}
    for reason, found in [*source.time_faults, *source.faults()]:
        bad = found & kept
        if bad.any():
            rows = plain_rows(table.filter(pa.array(bad)))
            rejected = pa.concat_tables([rejected, quarantine(stream, reason, rows)])
            kept &= ~bad
    made = pa.table(columns)
    rows = made if kept.all() else made.filter(pa.array(kept))
    return PreparedRows(rows, rejected, table.num_rows - rows.num_rows - rejected.num_rows)


def satisfies(table: pa.Table, preparation: Preparation) -> Bools:
    """Which rows of a source satisfy the WHERE of a stream, which uses no relation."""
    return _SourceRows(table, preparation, {}).satisfy()


class _SourceRows:
    """The rows of a source, and the arrays of what its expressions refer to."""

    def __init__(self, table: pa.Table, preparation: Preparation, relations: Relations) -> None:
        self.table, self.preparation, self.relations = table, preparation, relations
        self.n_rows = table.num_rows
        self.by_name = {name.lower(): table[name] for name in table.column_names}
        self.arrays: dict[str, pa.Array] = {}
        self.time_faults: list[tuple[str, Bools]] = []
        for name in sorted(preparation.written):
            self.arrays[name], faults = preparation.times.instants(name, plain(self.by_name[name]))
            self.time_faults += faults
        self.no_time = np.logical_or.reduce(
            [np.zeros(self.n_rows, np.bool_), *(found for _, found in self.time_faults)]
        )

    def evaluate(self, tree: Typed) -> pa.Array:
        """The value of an expression, as an array."""
        self._load(tree)
        return evaluate(tree, self.arrays, self.relations, self.n_rows)

    def _load(self, tree: Typed) -> None:
        """Provide the columns of the source that an expression refers to, in their types."""
        for owner, name in references(tree):
            if owner is None and name not in self.arrays:
                self.arrays[name] = plain(self.by_name[name])
        for node in _source_references(tree):
            kind = ARROW_TYPES.get(node.type)
            if kind is not None and node.type is not Type.NULL and self.arrays[node.name].type != kind:
                self.arrays[node.name] = pc.cast(self.arrays[node.name], kind, safe=False)

    def join(self) -> Bools:
        """Provide the columns of the relations; return which rows have the partners that they need."""
        kept = np.ones(self.n_rows, np.bool_)
        for join in self.preparation.joins:
            rows = self.relations[join.relation]
            spelled = {name.lower(): name for name in rows.column_names}
            partner = _partners(
                [self.evaluate(value) for _, value in join.keys],
                [rows[spelled[name]] for name, _ in join.keys],
            )
            index = pa.array(partner, mask=partner < 0)
            self.arrays |= {
                f"{join.relation}.{name}": flat(rows[column]).take(index) for name, column in spelled.items()
            }
            if not join.left:
                kept &= partner >= 0
        return kept

    def satisfy(self) -> Bools:
        """Which rows satisfy WHERE. A row whose time cannot be read does, unless WHERE is FALSE: it is a fault."""
        where = self.preparation.where
        if where is None:
            return np.ones(self.n_rows, np.bool_)
        condition = self.evaluate(where).cast(pa.bool_())
        kept: Bools = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
        if any(owner is None and name in self.preparation.written for owner, name in references(where)):
            kept = kept | (self.no_time & condition.is_null().to_numpy(zero_copy_only=False))
        return kept

    def value(self, tree: Typed) -> pa.Array | pa.ChunkedArray:
        """A column of the stream; a column of the source as it was read, so that codes stay codes."""
        if isinstance(tree, Reference) and tree.owner is None and tree.name not in self.preparation.written:
            column = self.by_name[tree.name]
            if tree.type is Type.TIMESTAMP and pa.types.is_date(column.type):
                return pc.cast(column, ARROW_TYPES[Type.TIMESTAMP])
            return column
        return self.evaluate(tree)

    def faults(self) -> list[tuple[str, Bools]]:
        """The computed values that do not exist, although all that they are computed from is known."""
        return [
            (f"{name} cannot be computed", _missing(self.evaluate(tree), self._known(tree)))
            for name, tree in self.preparation.columns
            if not isinstance(tree, Reference)
        ]

    def _known(self, tree: Typed) -> Bools:
        """Where all columns that an expression refers to are known, and finite if they are numbers."""
        known = np.ones(self.n_rows, np.bool_)
        for owner, name in references(tree):
            known &= ~_missing(self.arrays[name if owner is None else f"{owner}.{name}"], known)
        return known


def _source_references(tree: Typed) -> list[Reference]:
    return [node for node in walk(tree) if isinstance(node, Reference) and node.owner is None]


def _missing(values: pa.Array, among: Bools) -> Bools:
    """Which of the values `among` are NULL, or numbers that are not finite."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        finite = pc.fill_null(pc.is_finite(values), True).to_numpy(zero_copy_only=False)
        missing = missing | ~finite
    found: Bools = missing & among
    return found


def _partners(values: list[pa.Array], keys: list[pa.ChunkedArray]) -> I64:
    """The index of the relation's row with the same keys; -1 if there is none, or a value is NULL."""
    pairs = [same_type(value, key) for value, key in zip(values, keys, strict=True)]
    if not len(keys[0]) or not len(values[0]):
        return np.full(len(values[0]), -1, np.int64)
    stacked = [pa.chunked_array([key, value], type=key.type) for value, key in pairs]
    n_keys = len(keys[0])
    codes, _ = encode_tuples(stacked, n_keys + len(values[0]))
    row_of = np.full(int(codes.max()) + 1, -1, np.int64)
    row_of[codes[:n_keys]] = np.arange(n_keys)
    partner = row_of[codes[n_keys:]]
    for value in values:
        partner[value.is_null().to_numpy(zero_copy_only=False)] = -1
    return partner


def check_partners(preparation: Preparation, relations: Relations) -> None:
    """Raise if a relation has two different rows for one key: a row of the stream has at most one partner."""
    for join in preparation.joins:
        rows = relations[join.relation]
        spelled = {name.lower(): name for name in rows.column_names}
        names = [spelled[name] for name, _ in join.keys]
        distinct = rows.group_by(rows.column_names).aggregate([])
        per_key = distinct.group_by(names).aggregate([([], "count_all")])
        several = per_key.filter(pc.greater(per_key["count_all"], 1))
        if several.num_rows:
            row = several.slice(0, 1).to_pylist()[0]
            key = ", ".join(f"{name} = {row[name]}" for name in names)
            raise DataError(f"relation {join.relation} has several rows with {key}; JOIN needs one row per key")
