"""Pages of keys by hash, and the filter of their keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.cold import few_are_hot
from tests.local import FINGERPRINT, MemoryPages

from anabranch.splitmix import mix_all
from anabranch.transport import pages
from anabranch.transport.key_filter import KeyFilter
from anabranch.transport.pages import HASH, Pages, PartOfStore


def hashes_of(keys: list[int]) -> np.ndarray:
    return mix_all(np.array(keys, np.uint64))


def rows_of(keys: list[int]) -> pa.Table:
    return pa.table({HASH: hashes_of(keys), "key": pa.array(keys, pa.int64())})


def keys_in(tables: list[pa.Table]) -> list[int]:
    return sorted(key for table in tables for key in table["key"].to_pylist())


def test_a_filter_has_all_its_keys_and_few_others() -> None:
    filtered = KeyFilter.for_keys(1000)
    filtered.add(hashes_of([*range(1000)]))
    assert filtered.room == 0
    assert filtered.may_have(hashes_of([*range(1000)])).all()
    assert filtered.may_have(hashes_of([*range(1000, 11_000)])).mean() < 0.04
    again = KeyFilter.load(filtered.save(), filtered.added)
    assert (again.bits == filtered.bits).all()
    assert again.room == 0


actions = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 40))), max_size=8)


@given(actions)
def test_pages_have_the_keys_that_were_put_and_not_taken(actions: list[tuple[bool, set[int]]]) -> None:
    store, saved, expected = MemoryPages(), None, set[int]()
    with few_are_hot():
        for is_put, keys in actions:
            held = Pages.open(PartOfStore(store, 1, 2), FINGERPRINT, saved)
            if is_put and keys - expected:
                held.put(rows_of(sorted(keys - expected)))
                expected |= keys
            else:
                assert keys_in(held.take(hashes_of(sorted(keys)))) == sorted(keys & expected)
                expected -= keys
            saved = held.save()
            assert len(held) == len(expected)
            assert bool(store) == bool(expected)
            assert all(page < 0 for page in store)


def test_new_keys_read_the_filter_instead_of_their_pages() -> None:
    store = MemoryPages()
    held = Pages.open(store, FINGERPRINT, None)
    held.put(rows_of([*range(5000)]))
    store.calls.clear()
    assert held.take(hashes_of([*range(5000, 5200)])) == []
    assert len(store.calls) <= 1 + 200 // 25
    # A directory without a filter, as older versions have saved it, gets one when keys become cold.
    older = Pages(store, FINGERPRINT, dict(held.directory))
    store.calls.clear()
    assert older.take(hashes_of([5000])) == []
    assert len(store.calls) <= 1
    older.put(rows_of([6000]))
    assert older.filtered == 5001
    assert keys_in(older.take(hashes_of([4, 6000, 7000]))) == [4, 6000]
    assert pages.MOST_ROWS == 128
