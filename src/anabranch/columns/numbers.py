"""Columns as numbers with the order of their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64

#: Integers up to this are exact as doubles.
EXACT = 1 << 53


def is_exact(column: pa.Array) -> bool:
    """Whether the numbers of a column are doubles, or can be converted to doubles without loss."""
    if not pa.types.is_integer(column.type):
        return pa.types.is_floating(column.type)
    ends = pc.min_max(column)
    return max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0)) <= EXACT


def numbers_of(column: pa.Array) -> F64:
    """A column as doubles; NULL becomes NaN."""
    doubles = pc.cast(column, pa.float64(), safe=False)
    return pc.fill_null(doubles, np.nan).to_numpy(zero_copy_only=False)


def coded(columns: Sequence[pa.Array]) -> list[F64]:
    """Columns of one type as numbers with the order of their values."""
    joined = pa.concat_arrays([column.cast(columns[0].type) for column in columns])
    if is_exact(joined):
        return [numbers_of(column) for column in columns]
    known = joined.dictionary_encode()
    rank = np.empty(len(known.dictionary) + 1)
    rank[pc.array_sort_indices(known.dictionary).to_numpy()] = np.arange(len(known.dictionary))
    rank[-1] = np.nan
    numbers = rank[pc.fill_null(known.indices, len(known.dictionary)).to_numpy(zero_copy_only=False)]
    return np.split(numbers, np.cumsum([len(column) for column in columns])[:-1])
