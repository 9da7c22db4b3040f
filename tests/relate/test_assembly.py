"""Rows put together to entities: every fault by an example, and the windows that events are given."""

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

from anabranch.columns.times import BEGINNING, END
from anabranch.relate.assembly import FAULTS, MOST_EVENTS, MOST_LOST, IntervalRows, assemble
from anabranch.transport.checks import check_rows
from anabranch.transport.interval_columns import interval_numbers

STREAM = "KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq"
QUERY = "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k"


def rows_of(*events: tuple, k: str = "x", **more: object) -> list[dict]:
    """Rows by (position, time); a third entry says what else a row has."""
    return [{"k": k, "seq": seq, "t": t, **(own[0] if own else {}), **more} for seq, t, *own in events]


# ---------------------------------------------------------------- entities

FAULTY = [
    ("", [(1, 0), (2, 5), (2, 6)], "a position of its entity is there twice"),
    ("", [(1, 0), (2, 5), (2, None)], "a position of its entity is there twice"),
    ("LENGTH n", [(1, 0, {"n": 2}), (2, 5)] * 2 + [(2, 5, {"n": 2})], "a position of its entity is there twice"),
    ("LENGTH n", [(1, 0, {"n": 2}), (2, 5, {"n": 4})], "differ in how many point events"),
    ("LENGTH n ROLE what", [(1, 0, {"n": 4}), (2, 5, {"what": "end"})], "differ in how many point events"),
    ("ROLE what", [(1, 0), (2, 5, {"what": "end"}), (4, 9, {"what": "end"})], "differ in how many point events"),
    ("LENGTH n", [(1, 0), (2, 5, {"n": 2}), (3, None), (4, 9)], "has an event beyond its last"),
    ("ROLE what", [(1, 0), (2, 5, {"what": "end"}), (3, None)], "has an event beyond its last"),
    ("", [(1, 0), (2, 5), (3, 6)], "has an odd number of point events"),
    ("LENGTH n HORIZON [0, 99]", [(1, 0, {"n": 3}), (2, 5)], "has an odd number of point events"),
    ("", [(1, 5), (2, 4)], "do not increase with the position"),
    ("", [(1, 5), (3, None), (4, 5)], "do not increase with the position"),
    ("", [(2, 5)], "the first event of its entity is lost"),
    ("HORIZON [0, 9] WINDOW (lo, hi)", [(1, None, {"lo": 8, "hi": 12}), (2, 5)], "there is no time between"),
    ("", [(1, 5), (2, None)], "the last event of its entity is lost"),
    ("LENGTH n", [(1, 5, {"n": 4}), (2, 6)], "the last event of its entity is lost"),
    ("HORIZON [0, 9]", [(1, None), (2, 0)], "there is no time between its neighbours"),
    ("HORIZON [0, 9]", [(1, 9), (2, None)], "there is no time between its neighbours"),
    ("WINDOW (lo, hi)", [(1, 0), (2, None, {"lo": 7, "hi": 8}), (3, 5), (4, 6)], "or left in its WINDOW"),
    ("WINDOW (lo, hi) HORIZON [5, 20]", [(1, 5), (2, None, {"lo": 3, "hi": 5})], "or left in its WINDOW"),
    ("", [(1, 0), (MOST_EVENTS + 2, 9)], f"has more than {MOST_EVENTS:,} point events"),
    ("LENGTH n", [(1, 0, {"n": 2**62})], f"has more than {MOST_EVENTS:,} point events"),
    ("", [(1, 0), (MOST_LOST + 4, 9)], "or lost more than 500 in a row"),
]


@pytest.mark.parametrize(("clauses", "events", "reason"), FAULTY, ids=lambda value: str(value)[:40])
def test_an_entity_that_cannot_be_is_set_aside_whole(clauses: str, events: list[tuple], reason: str) -> None:
    rows, good = rows_of(*events), rows_of((1, 0), (2, 3), k="good")
    told = found(f"{STREAM} {clauses}", rows + good)
    assert all(reason in each for each, _ in told), told
    assert [row["seq"] for _, row in told] == [row["seq"] for row in rows]
    job = local_job(f"CREATE STREAM s {STREAM} {clauses}; {QUERY};", "q")
    run = run_whole(job, {"s": rows + good})
    assert run.counts.quarantined + run.counts.duplicate == len(rows)
    assert run.counts.used == len(good)
    assert not run.answers()
    assert all(reason in each for each in run.reasons())


def test_every_fault_has_an_example() -> None:
    shown = {number for number, text in FAULTS.items() if any(reason in text for *_, reason in FAULTY)}
    assert shown == FAULTS.keys()


def test_what_is_just_allowed_is_allowed() -> None:
    assert not found(STREAM, rows_of((1, 0), (MOST_LOST + 2, 1)))
    assert not found(f"{STREAM} HORIZON [0, 9]", rows_of((1, None), (MOST_LOST, None)))
    assert not found(
        f"{STREAM} LENGTH n ROLE what", rows_of((1, 0, {"what": "START"}), (2, 5, {"n": 2, "what": "end"}))
    )


def test_quarantined_rows_say_what_the_source_said() -> None:
    clauses = "LENGTH n ROLE what WINDOW (lo, hi)"
    rows = rows_of((1, 0, {"n": 2, "what": "start"}), (3, None, {"lo": 2, "hi": 4, "what": "resume"}))
    run = run_whole(local_job(f"CREATE STREAM s {STREAM} {clauses}; {QUERY};", "q"), {"s": rows})
    told = [json.loads(row["row"]) for row in run.rejected]
    unsaid = dict.fromkeys(("n", "what", "lo", "hi"))
    assert sorted(told, key=lambda row: row["seq"]) == [unsaid | row for row in rows]


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
def test_a_row_that_cannot_be_is_set_aside(change: dict, reason: str) -> None:
    declaration = f"KEY (k STRING) TIME t DOUBLE MODEL INTERVALS ORDER seq {CLAUSES}"
    rows = [GOOD, GOOD | {"seq": 2, "t": 4.0, "what": "end"}]
    assert not found(declaration, rows)
    told = found(declaration, [*rows, GOOD | {"k": "y"} | change])
    assert [each for each, _ in told] == [reason]


@pytest.mark.parametrize("name", ["t", "lo", "hi"])
@pytest.mark.parametrize("instant", [BEGINNING, END])
def test_the_ends_of_64_bits_are_no_times(name: str, instant: int) -> None:
    row = {"k": "x", "seq": 1, "t": 3}
    _, aside = check_rows(table_of(INTERVALS, [row, row | {name: instant}]), INTERVALS)
    assert aside["reason"].to_pylist() == [f"{name} is out of range"]


# ---------------------------------------------------------------- windows


def windows(events: list[tuple], horizon: tuple[int, int] = (BEGINNING, END), complete: bool = True) -> list[tuple]:
    """The windows of one entity's events."""
    table = table_of(INTERVALS, rows_of(*events))
    rows = IntervalRows.of(np.zeros(len(events), np.int64), interval_numbers(table, INTERVALS))
    found = assemble(rows, 1, horizon, complete)
    assert found.fault[0] == 0, FAULTS[int(found.fault[0])]
    return list(zip(found.lo.tolist(), found.hi.tolist(), strict=True))


def test_a_lost_event_lies_between_those_recorded_around_it() -> None:
    assert windows([(4, 9), (1, 0)]) == [(0, 0), (0, 9), (0, 9), (9, 9)]
    assert windows([(2, 4), (3, 6), (4, None)], (0, 10)) == [(0, 4), (4, 4), (6, 6), (6, 10)]


def test_a_window_bounds_the_events_around_it_too() -> None:
    told = [(1, 0), (3, None, {"lo": 5, "hi": 7}), (6, 9)]
    assert windows(told) == [(0, 0), (0, 7), (5, 7), (5, 9), (5, 9), (9, 9)]


def test_a_window_of_no_length_says_when_it_was() -> None:
    assert windows([(1, None, {"lo": 3, "hi": 3}), (2, 5)]) == [(3, 3), (5, 5)]


def test_an_end_of_a_window_may_be_unknown() -> None:
    assert windows([(1, 0), (2, None, {"lo": 3}), (3, None, {"hi": 4}), (4, 9)]) == [(0, 0), (3, 4), (3, 4), (9, 9)]


def test_what_has_not_ended_is_taken_as_far_as_its_segments_are_closed() -> None:
    assert windows([(1, 0), (2, 5), (3, 7)], complete=False) == [(0, 0), (5, 5)]
    assert windows([(1, 0), (2, None), (3, 7)], complete=False) == [(0, 0), (0, 7)]
    assert windows([(1, 0, {"n": 6}), (2, 5)], complete=False) == [(0, 0), (5, 5)]
    assert windows([(1, 0)], complete=False) == []


# ---------------------------------------------------------------- whatever rows

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

#: Rows with which nothing is wrong, for others to be added to.
_BEGUN = [*rows_of((1, 0), (2, 5)), *rows_of((1, 3), (2, 8), k="y")]


@given(
    st.builds(lambda begun, more: begun + more, st.sampled_from([_BEGUN, []]), st.lists(_ROW, max_size=8)),
    st.sampled_from(["", "HORIZON [-1, 10]"]),
    st.integers(0, 10),
)
def test_whatever_the_rows_are_they_are_judged_alike(rows: list[dict], horizon: str, cut: int) -> None:
    """By themselves, by a run over an archive, and by one over a stream on which nothing ends before the input."""
    declaration = f"{STREAM} {CLAUSES} {horizon} WATERMARK 99"
    alone = found(declaration, rows)
    job = local_job(f"CREATE STREAM s {declaration}; {QUERY} COMPLEMENT;", "q")
    whole = run_whole(job, {"s": rows})
    stream = run_stream(in_context(job, live=True), [{"s": rows[:cut]}, {"s": rows[cut:]}])
    assert stream.counts == whole.counts
    assert Counter(stream.reasons()) == Counter(whole.reasons())
    # A row given twice is there once, so that alone has more of those.
    assert set(whole.reasons()) == {reason for reason, _ in alone}
    assert whole.counts.quarantined <= len(alone) <= whole.counts.quarantined + whole.counts.duplicate
    assert {pair for pair, answer in stream.standing().items() if answer.probability > 0} == stream.answers().keys()
    said = {pair: answer[:2] for pair, answer in stream.answers().items()}
    assert said == {pair: answer[:2] for pair, answer in whole.answers().items()}
