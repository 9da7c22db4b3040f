"""Dictionaries of tuples: key and value columns as small integers.

Python never sees single tuples: Arrow dictionary-encodes a column, and a compiled hash table combines several columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, I64, Bools
from anabranch.columns.kernel import dense_codes, pair_codes

_UNIT = "unit"

#: Tuples that nothing refers to are not removed from a smaller dictionary.
FEW = 64


def is_worth_removing(used: Bools) -> bool:
    """Whether the tuples that are not used should be removed: there are many, and they are the majority.

    So the cost of new numbers is shared by as many new tuples.
    """
    return len(used) > max(FEW, 2 * int(used.sum()))


def encode_pairs(first: I32, second: I32, n_first: int, n_second: int) -> tuple[I32, I64]:
    """Number the distinct pairs of two code columns; returns the code of each pair and the first index of each code."""
    if n_first * n_second <= max(1 << 16, 4 * len(first)):
        return pair_codes(first, second, n_first, n_second)
    return dense_codes(first.astype(np.int64) * n_second + second)


def encode_column(column: pa.ChunkedArray) -> tuple[I32, pa.Array]:
    """The code of each entry of a column, and the distinct entries, including NULL if it occurs."""
    is_encoded = pa.types.is_dictionary(column.type)
    # The chunks of a column that is encoded here have one dictionary.
    whole = flat(column.unify_dictionaries() if is_encoded else pc.dictionary_encode(column))
    indices, entries = whole.indices, whole.dictionary
    if indices.null_count:
        indices = pc.fill_null(indices, len(entries))
        entries = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
    return indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False), entries


def encode_tuples(columns: Sequence[pa.ChunkedArray], n_rows: int) -> tuple[I32, pa.Table]:
    """The code of each row's tuple, and a table of the distinct tuples; without columns, all have the empty tuple."""
    if not columns:
        return np.zeros(n_rows, np.int32), pa.table({_UNIT: [True]})
    codes, entries = encode_column(columns[0])
    chosen = [entries]
    for column in columns[1:]:
        more, entries = encode_column(column)
        combined = codes.astype(np.int64) * max(1, len(entries)) + more
        codes, firsts = dense_codes(combined)
        picked = combined[firsts]
        chosen = [part.take(pa.array(picked // max(1, len(entries)))) for part in chosen]
        chosen.append(entries.take(pa.array(picked % max(1, len(entries)))))
    return codes, pa.table({str(index): part for index, part in enumerate(chosen)})


def plain(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of values, not of codes."""
    whole = flat(column)
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


class Dictionary:
    """A growing set of tuples with the same types, numbered from 0; its columns are Arrow arrays.

    A lookup numbers the known tuples together with those of a table. So it takes time for all known tuples, but only
    nanoseconds for each, and a state is opened without a hash table that has to be filled first.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types) or [pa.bool_()]
        self._columns = [pa.array([], kind) for kind in self._types]

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns."""
        return tuple(self._types)

    def encode(self, table: pa.Table) -> I32:
        """The numbers of a table's tuples; new tuples are added."""
        known, joined = len(self), self._joined(table)
        codes, firsts = _number(joined)
        if len(firsts) > known:
            chosen = pa.array(firsts)
            self._columns = [column.take(chosen) for column in joined]
        return codes[known:]

    def restore(self, table: pa.Table) -> None:
        """Get the tuples of an earlier dictionary, from its `to_table`."""
        self._columns = [flat(pc.cast(column, kind)) for column, kind in zip(table.columns, self._types, strict=True)]

    def has(self, table: pa.Table) -> Bools:
        """Which of a table's tuples have numbers."""
        known = len(self)
        codes, _ = _number(self._joined(table))
        return codes[known:] < known

    def _joined(self, table: pa.Table) -> list[pa.Array]:
        """The columns of the known tuples, and after them those of a table."""
        return [
            pa.concat_arrays([known, *pc.cast(column, kind).chunks])
            for known, column, kind in zip(self._columns, table.columns, self._types, strict=True)
        ]

    def keep(self, chosen: Bools) -> I32:
        """Remove all tuples but the chosen ones; returns the new number of each tuple, -1 for those removed."""
        self._columns = [column.filter(pa.array(chosen)) for column in self._columns]
        return np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)

    def take(self, codes: I32) -> list[pa.Array]:
        """The columns of the tuples with these numbers."""
        chosen = pa.array(codes)
        return [column.take(chosen) for column in self._columns]

    def tuple_of(self, code: int) -> tuple[object, ...]:
        """The tuple with this number, as Python values."""
        return tuple(column[int(code)].as_py() for column in self._columns)

    def to_table(self) -> pa.Table:
        """All tuples, in the order of their numbers."""
        return pa.table({str(index): column for index, column in enumerate(self._columns)})


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    # Arrow cannot make an empty array of a dictionary of times from a list.
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _number(columns: Sequence[pa.Array]) -> tuple[I32, I64]:
    """Number the distinct tuples in order of appearance: the code of each tuple, and the first index of each code."""
    combined = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0, column.type))  # -0.0 and 0.0 are one key
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes, firsts = dense_codes(combined * len(encoded.dictionary) + np.asarray(encoded.indices))
        combined = codes.astype(np.int64)
    return codes, firsts


def all_null(table: pa.Table) -> Bools:
    """Which tuples have only NULLs: as values, they are *nothing*."""
    result = np.ones(table.num_rows, np.bool_)
    for column in table.columns:
        result &= column.is_null().to_numpy()
    return result
