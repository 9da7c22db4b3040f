"""Assembly of entities from rows: an example of every fault, and the windows of events."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local import in_context, local_job
from tests.relate.local import run_stream, run_whole
from tests.runtime.test_model_checks import found
from tests.transport.layouts import INTERVALS, table_of

from anabranch.arrays import BEGINNING, END
from anabranch.relate.assembly import FAULTS, IntervalRows, assemble
from anabranch.relate.kernel import MOST_EVENTS, MOST_LOST
from anabranch.transport.checks import check_rows
from anabranch.transport.interval_columns import interval_numbers

STREAM = "KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq"
QUERY = "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k"


def rows_of(*events: tuple, k: str = "x", **columns: object) -> list[dict]:
    """Rows from (position, time); a third entry has further columns."""
    return [{"k": k, "seq": seq, "t": t, **(extra[0] if extra else {}), **columns} for seq, t, *extra in events]


# ---------------------------------------------------------------- entities

FAULTY = [
    ("", [(1, 0), (2, 5), (2, 6)], "have the same position"),
    ("", [(1, 0), (2, 5), (2, None)], "have the same position"),
    ("LENGTH n", [(1, 0, {"n": 2}), (2, 5)] * 2 + [(2, 5, {"n": 2})], "have the same position"),
    ("LENGTH n", [(1, 0, {"n": 2}), (2, 5, {"n": 4})], "disagree about the number of events"),
    ("LENGTH n ROLE what", [(1, 0, {"n": 4}), (2, 5, {"what": "end"})], "disagree about the number of events"),
    ("ROLE what", [(1, 0), (2, 5, {"what": "end"}), (4, 9, {"what": "end"})], "disagree about the number of events"),
    ("LENGTH n", [(1, 0), (2, 5, {"n": 2}), (3, None), (4, 9)], "has an event after its last event"),
    ("ROLE what", [(1, 0), (2, 5, {"what": "end"}), (3, None)], "has an event after its last event"),
    ("", [(1, 0), (2, 5), (3, 6)], "has an odd number of events"),
    ("LENGTH n HORIZON [0, 99]", [(1, 0, {"n": 3}), (2, 5)], "has an odd number of events"),
    ("", [(1, 5), (2, 4)], "do not increase with the position"),
    ("", [(1, 5), (3, None), (4, 5)], "do not increase with the position"),
    ("", [(2, 5)], "the first event of its entity is lost"),
    ("HORIZON [0, 9] WINDOW (lo, hi)", [(1, None, {"lo": 8, "hi": 12}), (2, 5)], "leave no time for it"),
    ("", [(1, 5), (2, None)], "the last event of its entity is lost"),
    ("LENGTH n", [(1, 5, {"n": 4}), (2, 6)], "the last event of its entity is lost"),
    ("HORIZON [0, 9]", [(1, None), (2, 0)], "leave no time for it"),
    ("HORIZON [0, 9]", [(1, 9), (2, None)], "leave no time for it"),
    ("WINDOW (lo, hi)", [(1, 0), (2, None, {"lo": 7, "hi": 8}), (3, 5), (4, 6)], "leave no time for it"),
    ("WINDOW (lo, hi) HORIZON [5, 20]", [(1, 5), (2, None, {"lo": 3, "hi": 5})], "leave no time for it"),
    ("", [(1, 0), (MOST_EVENTS + 2, 9)], f"has more than {MOST_EVENTS:,} events"),
    ("LENGTH n", [(1, 0, {"n": 2**62})], f"has more than {MOST_EVENTS:,} events"),
    ("", [(1, 0), (MOST_LOST + 4, 9)], "or more than 500 consecutive lost events"),
    ("HORIZON [opens, 99]", [(1, 5, {"opens": 0}), (2, 6, {"opens": 1})], "disagree about the HORIZON"),
    ("GAP EXPONENTIAL(m)", [(1, 0), (2, None), (3, 5), (4, 6)], "no row of the entity has a mean"),
    ("DURATION ERLANG(2, m)", [(1, 0, {"m": 2.0}), (1, 0, {"m": 3.0}), (2, 5)], "have the same position"),
]


@pytest.mark.parametrize(("clauses", "events", "reason"), FAULTY, ids=lambda value: str(value)[:40])
def test_all_rows_of_an_invalid_entity_are_quarantined(clauses: str, events: list[tuple], reason: str) -> None:
    rows, good = rows_of(*events), rows_of((1, 0), (2, 3), k="good")
    quarantined = found(f"{STREAM} {clauses}", rows + good)
    assert all(reason in row_reason for row_reason, _ in quarantined), quarantined
    assert [row["seq"] for _, row in quarantined] == [row["seq"] for row in rows]
    job = local_job(f"CREATE STREAM s {STREAM} {clauses}; {QUERY};", "q")
    run = run_whole(job, {"s": rows + good})
    assert run.counts.quarantined + run.counts.duplicate == len(rows)
    assert run.counts.used == len(good)
    assert not run.answers()
    assert all(reason in row_reason for row_reason in run.reasons())


def test_every_fault_has_an_example() -> None:
    covered = {number for number, text in FAULTS.items() if any(reason in text for *_, reason in FAULTY)}
    assert covered == FAULTS.keys()


def test_the_limits_are_inclusive() -> None:
    assert not found(STREAM, rows_of((1, 0), (MOST_LOST + 2, 1)))
    assert not found(f"{STREAM} HORIZON [0, 9]", rows_of((1, None), (MOST_LOST, None)))
    assert not found(
        f"{STREAM} LENGTH n ROLE what", rows_of((1, 0, {"what": "START"}), (2, 5, {"n": 2, "what": "end"}))
    )


def test_quarantined_rows_have_the_columns_of_the_source() -> None:
    clauses = "LENGTH n ROLE what WINDOW (lo, hi) DURATION EXPONENTIAL(m)"
    rows = rows_of((1, 0, {"n": 2, "what": "start", "m": 2.5}), (3, None, {"lo": 2, "hi": 4, "what": "resume"}))
    run = run_whole(local_job(f"CREATE STREAM s {STREAM} {clauses}; {QUERY};", "q"), {"s": rows})
    quarantined = [json.loads(row["row"]) for row in run.rejected]
    nulls = dict.fromkeys(("n", "what", "lo", "hi", "m"))
    assert sorted(quarantined, key=lambda row: row["seq"]) == [nulls | row for row in rows]


# ---------------------------------------------------------------- single rows

CLAUSES = "LENGTH n ROLE what WINDOW (lo, hi)"
GOOD = {"k": "x", "seq": 1, "t": 3.0, "n": 2, "what": "start", "lo": 1.0, "hi": 4.0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"k": None}, "k is NULL"),
        ({"seq": None}, "seq is not a position: it must be 1 or more"),
        ({"seq": 0}, "seq is not a position: it must be 1 or more"),
        ({"seq": -3}, "seq is not a position: it must be 1 or more"),
        ({"t": math.nan}, "t is not a finite number"),
        ({"t": -math.inf, "lo": None}, "t is not a finite number"),
        ({"n": 0}, "n is not a number of events"),
        ({"what": "begin"}, "what is not one of start, suspend, resume, end"),
        ({"what": ""}, "what is not one of start, suspend, resume, end"),
        ({"what": "suspend"}, "what does not fit the position"),
        ({"what": "end"}, "what does not fit the position"),
        ({"seq": 2, "what": "start"}, "what does not fit the position"),
        ({"seq": 2, "what": "resume"}, "what does not fit the position"),
        ({"seq": 3, "what": "start"}, "what does not fit the position"),
        ({"seq": 3, "what": "end"}, "what does not fit the position"),
        ({"lo": math.nan}, "lo is not a finite number"),
        ({"hi": math.inf}, "hi is not a finite number"),
        ({"lo": 5.0}, "lo is after hi"),
        ({"t": 0.5}, "t is outside its window"),
        ({"t": 4.5}, "t is outside its window"),
    ],
)
def test_an_invalid_row_is_quarantined(change: dict, reason: str) -> None:
    declaration = f"KEY (k STRING) TIME t DOUBLE MODEL INTERVALS ORDER seq {CLAUSES}"
    rows = [GOOD, GOOD | {"seq": 2, "t": 4.0, "what": "end"}]
    assert not found(declaration, rows)
    quarantined = found(declaration, [*rows, GOOD | {"k": "y"} | change])
    assert [row_reason for row_reason, _ in quarantined] == [reason]


@pytest.mark.parametrize("name", ["t", "lo", "hi"])
@pytest.mark.parametrize("instant", [BEGINNING, END])
def test_the_smallest_and_largest_64_bit_integers_are_not_times(name: str, instant: int) -> None:
    row = {"k": "x", "seq": 1, "t": 3}
    _, quarantined = check_rows(table_of(INTERVALS, [row, row | {name: instant}]), INTERVALS)
    assert quarantined["reason"].to_pylist() == [f"{name} is outside the range of times, -2^62 to 2^62"]


# ---------------------------------------------------------------- windows


def windows(events: list[tuple], horizon: tuple[int, int] = (BEGINNING, END), complete: bool = True) -> list[tuple]:
    """The windows of one entity's events."""
    table = table_of(INTERVALS, rows_of(*events))
    rows = IntervalRows.of(np.zeros(len(events), np.int64), interval_numbers(table, INTERVALS))
    entities = assemble(rows, 1, horizon, complete)
    assert entities.fault[0] == 0, FAULTS[int(entities.fault[0])]
    return list(zip(entities.lo.tolist(), entities.hi.tolist(), strict=True))


def test_a_lost_event_lies_between_its_recorded_neighbours() -> None:
    assert windows([(4, 9), (1, 0)]) == [(0, 0), (0, 9), (0, 9), (9, 9)]
    assert windows([(2, 4), (3, 6), (4, None)], (0, 10)) == [(0, 4), (4, 4), (6, 6), (6, 10)]


def test_a_window_also_bounds_the_neighbouring_lost_events() -> None:
    events = [(1, 0), (3, None, {"lo": 5, "hi": 7}), (6, 9)]
    assert windows(events) == [(0, 0), (0, 7), (5, 7), (5, 9), (5, 9), (9, 9)]


def test_a_window_of_length_0_is_the_time_of_the_event() -> None:
    assert windows([(1, None, {"lo": 3, "hi": 3}), (2, 5)]) == [(3, 3), (5, 5)]


def test_one_end_of_a_window_may_be_unknown() -> None:
    assert windows([(1, 0), (2, None, {"lo": 3}), (3, None, {"hi": 4}), (4, 9)]) == [(0, 0), (3, 4), (3, 4), (9, 9)]


def test_of_an_incomplete_entity_only_closed_segments_are_assembled() -> None:
    assert windows([(1, 0), (2, 5), (3, 7)], complete=False) == [(0, 0), (5, 5)]
    assert windows([(1, 0), (2, None), (3, 7)], complete=False) == [(0, 0), (0, 7)]
    assert windows([(1, 0, {"n": 6}), (2, 5)], complete=False) == [(0, 0), (5, 5)]
    assert windows([(1, 0)], complete=False) == []


# ---------------------------------------------------------------- arbitrary rows

_ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["x", "y"]),
        "seq": st.sampled_from([1, 2, 3, 4, 1, 2, 6, 0]),
        "t": st.none() | st.integers(0, 9),
        "n": st.sampled_from([None, None, 2, 4, 3]),
        "what": st.sampled_from([None, None, "end", "start", "resume", "suspend"]),
        "lo": st.none() | st.integers(0, 5),
        "hi": st.none() | st.integers(4, 9),
    }
)

#: Valid rows, to which others are added.
_VALID = [*rows_of((1, 0), (2, 5)), *rows_of((1, 3), (2, 8), k="y")]


@given(
    st.builds(lambda valid, more: valid + more, st.sampled_from([_VALID, []]), st.lists(_ROW, max_size=8)),
    st.sampled_from(["", "HORIZON [-1, 10]"]),
    st.integers(0, 10),
)
def test_validation_batch_and_streaming_agree_on_any_rows(rows: list[dict], horizon: str, cut: int) -> None:
    """The faults are the same in `check --data`, in batch, and in a stream in which no entity ends before the input."""
    declaration = f"{STREAM} {CLAUSES} {horizon} WATERMARK 99"
    validated = found(declaration, rows)
    job = local_job(f"CREATE STREAM s {declaration}; {QUERY} COMPLEMENT;", "q")
    whole = run_whole(job, {"s": rows})
    stream = run_stream(in_context(job, live=True), [{"s": rows[:cut]}, {"s": rows[cut:]}])
    assert stream.counts == whole.counts
    assert Counter(stream.reasons()) == Counter(whole.reasons())
    # A run drops duplicates before it quarantines rows; validation quarantines every copy.
    assert set(whole.reasons()) == {reason for reason, _ in validated}
    assert whole.counts.quarantined <= len(validated) <= whole.counts.quarantined + whole.counts.duplicate
    assert {pair for pair, answer in stream.latest().items() if answer.probability > 0} == stream.answers().keys()
    stream_answers = {pair: answer[:2] for pair, answer in stream.answers().items()}
    assert stream_answers == {pair: answer[:2] for pair, answer in whole.answers().items()}
