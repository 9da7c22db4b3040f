"""The inbox: rows wait until the watermark has passed them, late rows are separated, and all survive a restart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.transport.layouts import CERTAIN, MARKOV, PAST_ALL_ROWS, ByKey, table_of

from anabranch.arrays import BEGINNING
from anabranch.transport.inbox import Inbox
from anabranch.transport.routing import route
from anabranch.transport.rows import Rows
from anabranch.transport.state import read_tables, write_tables

LAYOUTS = (MARKOV, replace(CERTAIN, name="bell", keys=("bell",)))


def at(t: int, person: str = "ann", place: str | None = "hall") -> dict:
    return {"person": person, "place": place, "floor": 1, "prev_place": None, "prev_floor": None, "t": t, "p": 0.5}


def bell(t: int, number: int = 1) -> dict:
    return {"bell": number, "t": t}


def packets(*rows: dict) -> list[tuple[int, bytes]]:
    """The packets of one micro-batch for a single bucket."""
    blobs = []
    for stream, layout in enumerate(LAYOUTS):
        stream_rows = [row for row in rows if layout.keys[0] in row]
        routed = route(table_of(layout, stream_rows), stream, ByKey(*LAYOUTS), 1)
        blobs += [(stream, blob) for _, blob in routed.packets]
    return blobs


def times(rows: Rows) -> list[int]:
    return sorted(rows.t.tolist())


def test_rows_wait_for_the_watermark() -> None:
    inbox = Inbox(LAYOUTS)
    ready, late = inbox.receive(packets(at(5), bell(7), at(9)), 7)
    assert (times(ready), times(late)) == ([5], [])
    ready, late = inbox.receive([], 8)
    assert (times(ready), times(late)) == ([7], [])
    ready, late = inbox.receive([], PAST_ALL_ROWS)
    assert (times(ready), times(late)) == ([9], [])


def test_a_row_before_the_previous_watermark_is_late() -> None:
    inbox = Inbox(LAYOUTS)
    inbox.receive(packets(at(5)), 6)
    ready, late = inbox.receive(packets(at(5), at(6), bell(2)), 10)
    assert (times(ready), times(late)) == ([6], [2, 5])


def test_rows_of_one_micro_batch_are_never_late_to_each_other() -> None:
    ready, late = Inbox(LAYOUTS).receive(packets(at(1), at(1000)), 1000)
    assert (times(ready), times(late)) == ([1], [])


def test_the_watermark_does_not_go_back() -> None:
    inbox = Inbox(LAYOUTS)
    inbox.receive(packets(at(5)), 10)
    for t in (9, 8):
        _, late = inbox.receive(packets(at(t)), 3)
        assert times(late) == [t]


def test_without_a_watermark_everything_waits() -> None:
    inbox = Inbox(LAYOUTS)
    ready, late = inbox.receive(packets(at(1 - 2**62), at(0)), BEGINNING)
    assert (len(ready), len(late), len(inbox.held)) == (0, 0, 2)


def test_late_rows_are_described_with_their_original_values() -> None:
    inbox = Inbox(LAYOUTS)
    inbox.receive([], 10)
    _, late = inbox.receive(packets(at(3, "bob", None), bell(4, 8)), 10)
    described = [inbox.describe(late, index) for index in range(2)]
    assert described == [at(3, "bob", None), bell(4, 8)]


def test_a_value_with_only_nulls_is_nothing() -> None:
    inbox = Inbox(LAYOUTS)
    ready, _ = inbox.receive(packets(at(1) | {"place": None, "floor": None}, at(2)), PAST_ALL_ROWS)
    by_time = dict(zip(ready.t.tolist(), ready.value.tolist(), strict=True))
    assert by_time[1] == 0
    assert by_time[2] != 0
    assert ready.prev.tolist() == [0, 0]


def test_an_event_without_value_columns_is_not_nothing() -> None:
    ready, _ = Inbox(LAYOUTS).receive(packets(bell(1)), PAST_ALL_ROWS)
    assert ready.value.tolist() == [1]


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.builds(at, st.integers(0, 9), st.sampled_from(["ann", "bob"]), st.sampled_from([None, "a", "b"]))
                | st.builds(bell, st.integers(0, 9), st.integers(0, 2)),
                max_size=6,
            ),
            st.integers(0, 10),
        ),
        max_size=5,
    )
)
def test_an_inbox_saved_and_loaded_at_every_step_gives_the_same_rows(steps: list[tuple[list[dict], int]]) -> None:
    kept_open, saved = Inbox(LAYOUTS), write_tables(Inbox(LAYOUTS).save())
    seen: Counter = Counter()
    for rows, watermark in [*steps, ([], PAST_ALL_ROWS)]:
        opened = Inbox(LAYOUTS)
        opened.load(read_tables(saved))
        blobs = packets(*rows)
        for first, second in zip(kept_open.receive(blobs, watermark), opened.receive(blobs, watermark), strict=True):
            described = Counter(tuple(kept_open.describe(first, index).items()) for index in range(len(first)))
            assert described == Counter(tuple(opened.describe(second, index).items()) for index in range(len(second)))
            seen += described
        saved = write_tables(opened.save())
    assert seen == Counter(tuple(row.items()) for rows, _ in steps for row in rows), "each row is ready or late, once"
