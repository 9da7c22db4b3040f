"""Tuples to numbers and back, compared with a dict of Python tuples."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columns.dictionary import Dictionary, all_null, dense_codes, encode_column, encode_pairs, encode_tuples

STRINGS, INTEGERS, DOUBLES = pa.string(), pa.int64(), pa.float64()
VALUES = {
    STRINGS: st.none() | st.sampled_from(["", "a", "b", "ä", "a b", "c" * 40]),
    INTEGERS: st.none() | st.sampled_from([0, 1, -1, 2**62, -(2**63)]),
    DOUBLES: st.none() | st.sampled_from([0.0, 1.5, -1.5, math.inf, math.nan]),
}


@st.composite
def tables(draw: st.DrawFn, most_columns: int = 3) -> tuple[list[pa.DataType], list[tuple]]:
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=most_columns))
    return kinds, draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), max_size=30))


def chunked(values: list, kind: pa.DataType, cut: int, coded: bool) -> pa.ChunkedArray:
    """A column in two chunks; if it is coded, each chunk has its own dictionary."""
    parts = [pa.array(part, kind) for part in (values[:cut], values[cut:])]
    if coded:
        parts = [part.dictionary_encode() for part in parts]
    return pa.chunked_array(parts)


def same(left: tuple, right: tuple) -> bool:
    """Whether two tuples are equal, where NaN equals NaN."""
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
        for a, b in zip(left, right, strict=True)
    )


def rows_of(table: pa.Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def plain(row: tuple) -> tuple:
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row)


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=60))
def test_dense_codes_number_values_in_order_of_appearance(numbers: list[int]) -> None:
    codes, firsts = dense_codes(np.array(numbers, np.int64))
    distinct = list(dict.fromkeys(numbers))
    assert [distinct[code] for code in codes] == numbers
    assert [numbers[first] for first in firsts] == distinct
    assert firsts.tolist() == [numbers.index(number) for number in distinct]


@given(tables(), st.integers(0, 30), st.booleans())
def test_encoded_tuples_are_those_a_dict_would_find(
    drawn: tuple[list[pa.DataType], list[tuple]], cut: int, coded: bool
) -> None:
    kinds, rows = drawn
    columns = [chunked([row[place] for row in rows], kind, cut, coded) for place, kind in enumerate(kinds)]
    codes, distinct = encode_tuples(columns, len(rows))
    found = rows_of(distinct)
    assert len(codes) == len(rows)
    assert all(same(found[code], row) for code, row in zip(codes, rows, strict=True))
    assert {plain(found[code]) for code in codes} == {plain(row) for row in rows}
    if len(kinds) > 1 and rows:
        assert len(found) == len({plain(row) for row in found}), "each tuple is there once"


@pytest.mark.parametrize("n_codes", [20, 2000])
def test_pairs_are_numbered_in_order_of_appearance_for_few_and_many_codes(n_codes: int) -> None:
    first, second = (np.arange(500, dtype=np.int32) * step % n_codes for step in (7, 13))
    codes, firsts = encode_pairs(first, second, n_codes, n_codes)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    distinct = list(dict.fromkeys(pairs))
    assert [distinct.index(pair) for pair in pairs] == codes.tolist()
    assert [pairs.index(pair) for pair in distinct] == firsts.tolist()


def test_no_columns_are_one_empty_tuple() -> None:
    codes, distinct = encode_tuples([], 3)
    assert codes.tolist() == [0, 0, 0]
    assert distinct.num_rows == 1


@pytest.mark.parametrize("kind", [STRINGS, INTEGERS, pa.timestamp("us", tz="UTC"), pa.dictionary(pa.int32(), STRINGS)])
@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_empty_columns_have_no_codes(kind: pa.DataType, chunks: int) -> None:
    column = pa.chunked_array([pa.array([], kind)] * chunks, type=kind)
    codes, _ = encode_column(column)
    assert codes.tolist() == []
    codes, _ = encode_tuples([column, column], 0)
    assert codes.tolist() == []


def test_a_null_of_the_dictionary_itself_is_null() -> None:
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([None, "a"]))])
    codes, entries = encode_column(column)
    assert [entries[int(code)].as_py() for code in codes] == [None, "a", None]


@given(tables(), st.lists(st.integers(0, 30), max_size=3))
def test_a_dictionary_gives_the_same_number_to_the_same_tuple_in_every_batch(
    drawn: tuple[list[pa.DataType], list[tuple]], cuts: list[int]
) -> None:
    kinds, rows = drawn
    dictionary = Dictionary(kinds)
    codes: list[int] = []
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for start, end in zip(bounds, bounds[1:], strict=False):
        part = {str(place): pa.array([row[place] for row in rows[start:end]], kind) for place, kind in enumerate(kinds)}
        codes += dictionary.encode(pa.table(part)).tolist()
    distinct = list(dict.fromkeys(map(plain, rows)))
    assert codes == [distinct.index(plain(row)) for row in rows], "numbered in order of appearance"
    assert len(dictionary) == len(distinct)
    assert [plain(row) for row in rows_of(dictionary.to_table())] == distinct
    assert all(same(dictionary.tuple_of(code), row) for code, row in zip(codes, rows, strict=True))
    taken = dictionary.take(np.array(codes, np.int32))
    assert all(
        same(row, back) for row, back in zip(rows, zip(*(c.to_pylist() for c in taken), strict=True), strict=True)
    )


@given(tables())
def test_a_dictionary_built_from_its_own_table_is_the_same(drawn: tuple[list[pa.DataType], list[tuple]]) -> None:
    kinds, rows = drawn
    first, second = Dictionary(kinds), Dictionary(kinds)
    first.encode(pa.table({str(n): pa.array([row[n] for row in rows], kind) for n, kind in enumerate(kinds)}))
    assert second.encode(first.to_table()).tolist() == list(range(len(first)))


def test_a_dictionary_takes_narrower_and_coded_columns() -> None:
    dictionary = Dictionary([pa.int64(), pa.string()])
    wide = pa.table({"0": pa.array([1, 2]), "1": ["a", "b"]})
    narrow = pa.table(
        {"0": pa.array([2, 1], pa.int8()), "1": pa.array(["b", "a"], pa.large_string()).dictionary_encode()}
    )
    assert dictionary.encode(wide).tolist() == [0, 1]
    assert dictionary.encode(narrow).tolist() == [1, 0]


def test_both_zeros_are_one_tuple() -> None:
    dictionary = Dictionary([pa.float64()])
    assert dictionary.encode(pa.table({"0": [0.0, -0.0]})).tolist() == [0, 0]


def test_all_null_marks_rows_with_only_nulls() -> None:
    table = pa.table({"0": pa.array([None, None, "a"]), "1": pa.array([None, 1, None], pa.int64())})
    assert all_null(table).tolist() == [True, False, False]
