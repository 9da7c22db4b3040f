"""Rows packed for any number of buckets are unpacked unchanged, and all rows of a key are in one bucket."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transport.layouts import CERTAIN, INDEPENDENT, MARKOV, PAST_ALL_ROWS, ByKey, table_of

from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.hashing import hash_tuples
from anabranch.transport.inbox import Inbox
from anabranch.transport.layout import Layout
from anabranch.transport.packing import narrowed, numbers_of_rows, pack
from anabranch.transport.routing import route
from anabranch.transport.state import read_tables, write_tables

places = st.none() | st.sampled_from(["", "hall", "café", "room"])
probabilities = st.floats(0, 1)
ROWS = {
    MARKOV: st.fixed_dictionaries(
        {
            "person": st.sampled_from(["ann", "bob", "", "çelik"]),
            "place": places,
            "floor": st.none() | st.integers(-1, 1),
            "prev_place": places,
            "prev_floor": st.none() | st.integers(-1, 1),
            "t": st.integers(-3, 3),
            "p": probabilities,
        }
    ),
    INDEPENDENT: st.fixed_dictionaries(
        {
            "tag": st.sampled_from([0.0, -1.5, 2.0, 1e300]),
            "antenna": st.integers(0, 2),
            "place": places,
            "t": st.floats(-2, 2),
            "p": probabilities,
        }
    ),
    CERTAIN: st.fixed_dictionaries({"door": st.integers(-2, 2), "t": st.integers(-3, 3)}),
}


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.sampled_from([0, -(2**62), 2**62]),
    st.sampled_from([1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32]),
)
def test_integers_of_any_range_are_sent(numbers: list[int], lowest: int, width: int) -> None:
    near = [lowest, *(lowest + number % width for number in numbers), lowest + width]
    columns = {"t": np.array(near), "seq": np.array([*numbers, 0, 0]), "p": np.full(len(near), 0.5)}
    sent = narrowed(columns)
    restored = numbers_of_rows(read_tables(write_tables({"rows": sent}))["rows"])
    assert {name: column.tolist() for name, column in restored.items()} == {
        name: column.tolist() for name, column in columns.items()
    }
    assert all(restored[name].dtype == np.int64 for name in ("t", "seq"))
    assert sent["t"].type.bit_width == next((bits for bits in (8, 16, 32) if width < 2**bits), 64)


def multiset(rows: list[dict]) -> Counter:
    return Counter(tuple(sorted(row.items())) for row in rows)


def test_values_and_previous_values_may_have_different_string_types() -> None:
    row = {"person": "ann", "place": "hall", "floor": 1, "prev_place": "hall", "prev_floor": 1, "t": 1, "p": 0.5}
    table = table_of(MARKOV, [row])
    before = table["prev_place"].cast(pa.large_string())
    other = table.set_column(table.column_names.index("prev_place"), "prev_place", before)
    assert [*route(other, 0, ByKey(MARKOV), 1).packets] == [*route(table, 0, ByKey(MARKOV), 1).packets]


@pytest.mark.parametrize("layout", ROWS, ids=lambda layout: layout.name)
@given(data=st.data())
def test_what_is_packed_is_unpacked(layout: Layout, data: st.DataObject) -> None:
    rows = data.draw(st.lists(ROWS[layout], max_size=30))
    n_buckets = data.draw(st.sampled_from([1, 2, 3, 7, 64]))
    routed = route(table_of(layout, rows), 0, ByKey(layout), n_buckets)
    assert routed.rejected.num_rows == 0
    assert routed.read == len(rows)
    unpacked, keys_of = [], {}
    for bucket, blob in routed.packets:
        inbox = Inbox([layout])
        ready, late = inbox.receive([(0, blob)], PAST_ALL_ROWS)
        assert len(late) == 0
        described = [inbox.describe(ready, index) for index in range(len(ready))]
        unpacked += described
        for row in described:
            assert keys_of.setdefault(tuple(row[name] for name in layout.keys), bucket) == bucket
    assert multiset(unpacked) == multiset(rows)


@given(st.lists(ROWS[MARKOV], min_size=1, max_size=30))
def test_keys_without_a_bucket_are_left_out_and_counted(rows: list[dict]) -> None:
    class OnlyAnn(ByKey):
        def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> np.ndarray:
            return np.array([0 if key == "ann" else -1 for key in keys.column(0).to_pylist()], np.int64)

    routed = route(table_of(MARKOV, rows), 0, OnlyAnn(MARKOV), 4)
    anns = sum(row["person"] == "ann" for row in rows)
    assert routed.ignored == len(rows) - anns
    inbox = Inbox([MARKOV])
    ready, _ = inbox.receive([(0, blob) for _, blob in routed.packets], PAST_ALL_ROWS)
    assert len(ready) == anns


def test_a_packet_holds_only_the_keys_and_values_of_its_rows() -> None:
    rows = [
        {"person": person, "place": place, "floor": 0, "prev_place": None, "prev_floor": None, "t": 1, "p": 1.0}
        for person, place in (("ann", "hall"), ("bob", "room"), ("ann", "room"))
    ]
    table = table_of(MARKOV, rows)
    codes, keys = encode_tuples([table["person"]], 3)
    packets = dict(pack(table, MARKOV, np.array([0, 1]), codes, keys, 2))
    inbox = Inbox([MARKOV])
    inbox.receive([(0, packets[1])], PAST_ALL_ROWS)
    assert inbox.keys[0].to_table().column(0).to_pylist() == ["bob"]
    assert inbox.values[0].to_table().column(0).to_pylist() == [None, "room"]


def hashes(*columns: pa.Array) -> list[int]:
    return hash_tuples(columns, len(columns[0])).tolist()


def test_hashes_do_not_change_between_versions() -> None:
    # State is stored in the bucket of its key: if one of these hashes changes, existing checkpoints cannot be used.
    assert hashes(pa.array(["", "a", "hall", "café"])) == HASHES_OF_TEXT
    assert hashes(pa.array([0, 1, -1, 2**40])) == HASHES_OF_INTEGERS
    assert hashes(pa.array([0.0, 0.5, -1.5, math.inf])) == HASHES_OF_DOUBLES
    assert hashes(pa.array(["a", "b"]), pa.array([1, 2])) == HASHES_OF_PAIRS


def test_hashes_are_of_values_and_not_of_their_encoding() -> None:
    assert hashes(pa.array(["a", "b"], pa.large_string())) == hashes(pa.array(["a", "b"]))
    assert hashes(pa.array([1, 2], pa.int16())) == hashes(pa.array([1, 2], pa.int64()))
    assert hashes(pa.array([0.0])) == hashes(pa.array([-0.0]))
    assert hashes(pa.array(["x", "a", "b"]).slice(1)) == hashes(pa.array(["a", "b"]))
    assert hashes(pa.array([1, 2], pa.int64())) == hashes(pa.array([1.0, 2.0]).cast(pa.int64()))


def test_bytes_that_are_not_utf8_have_a_hash() -> None:
    assert len(set(hashes(pa.array([b"\xff", b"\xfe", b"a"])))) == 3


def test_the_boundary_between_columns_changes_the_hash() -> None:
    assert hashes(pa.array(["ab"]), pa.array(["c"])) != hashes(pa.array(["a"]), pa.array(["bc"]))


def test_keys_spread_over_the_buckets() -> None:
    numbers = hash_tuples([pa.array([f"tag{number}" for number in range(4000)])], 4000) % np.uint64(16)
    assert 150 < np.bincount(numbers.astype(np.int64), minlength=16).min()


HASHES_OF_TEXT = [12638352116413462794, 620310409648967508, 10655596354129423198, 9737556360011653364]
HASHES_OF_INTEGERS = [575274411660334029, 574148511747472164, 16020590376970427266, 8021031868515340303]
HASHES_OF_DOUBLES = [575274411660334029, 15895115241710152825, 17481390612775827018, 6974926890428458538]
HASHES_OF_PAIRS = [15256350037576078393, 183365114812950492]
