"""The watermark, and the one rule for late, ready and held rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transport.layouts import CERTAIN, MARKOV

from anabranch.arrays import BEGINNING, END, I64
from anabranch.columns.times import TimeKind, order_doubles
from anabranch.transport.layout import Layout
from anabranch.transport.rows import Rows
from anabranch.transport.watermark import Advance, Clock, ReorderBuffer, Watermark

PROMPT = MARKOV
SLOW = replace(CERTAIN, lateness=10.0)


# ---------------------------------------------------------------- the clock of a query


def test_there_is_no_watermark_before_the_first_row() -> None:
    assert Clock([PROMPT]).advance([BEGINNING]) == BEGINNING


def test_the_watermark_trails_the_newest_row_by_the_lateness() -> None:
    clock = Clock([SLOW])
    assert clock.advance([100]) == 90
    assert clock.advance([95]) == 90, "time does not go back"
    assert clock.advance([101]) == 91


def test_a_stream_without_rows_holds_the_others_back() -> None:
    clock = Clock([PROMPT, SLOW])
    assert clock.advance([100, BEGINNING]) == BEGINNING
    assert clock.advance([BEGINNING, 50]) == 40
    assert clock.advance([BEGINNING, 120]) == 100


def test_with_a_common_clock_a_stream_without_rows_holds_nothing_back() -> None:
    clock = Clock([replace(PROMPT, lateness=5.0, common_clock=True), replace(SLOW, common_clock=True)])
    assert clock.advance([100, BEGINNING]) == 90
    assert clock.advance([BEGINNING, 120]) == 110
    assert clock.advance([BEGINNING, 115]) == 110
    assert clock.advance([BEGINNING, BEGINNING], ended=True) == 121


def test_an_idle_stream_holds_the_others_back_only_for_a_time() -> None:
    clock = Clock([PROMPT, replace(SLOW, idle_after=30.0)])
    assert clock.advance([100, BEGINNING]) == 70, "it has had no row yet"
    assert clock.advance([BEGINNING, 95]) == 85
    assert clock.advance([120, BEGINNING]) == 90
    assert clock.advance([130, BEGINNING]) == 100, "it is 35 behind"
    assert clock.advance([BEGINNING, 128]) == 118, "it goes on"
    assert clock.advance([BEGINNING, BEGINNING], ended=True) == 131


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 100)), min_size=1), st.integers(10, 60), st.data())
def test_the_watermark_with_idle_streams_is_the_same_for_any_split(
    rows: list[tuple[int, int]], idle: int, data: st.DataObject
) -> None:
    layouts = [replace(SLOW, idle_after=float(idle)), replace(SLOW, idle_after=float(idle + 5))]
    whole, split = Clock(layouts), Clock(layouts)
    newest = [max((t for stream, t in rows if stream == which), default=BEGINNING) for which in (0, 1)]
    expected = whole.advance(newest)
    while rows:
        n = data.draw(st.integers(1, len(rows)))
        part, rows = rows[:n], rows[n:]
        found = split.advance([max((t for stream, t in part if stream == s), default=BEGINNING) for s in (0, 1)])
    assert found == expected


def test_a_bounded_stream_holds_nothing_back_once_its_rows_have_arrived() -> None:
    clock = Clock([PROMPT, SLOW], bounded={0})
    assert clock.advance([BEGINNING, 200]) == BEGINNING, "its rows have not arrived"
    progress = clock.advance([100, 210])
    assert (progress, progress.now) == (200, (200, 200))
    resumed = Clock([PROMPT, SLOW], clock.save(), bounded={0})
    assert resumed.advance([BEGINNING, 220]) == 210
    assert resumed.advance([BEGINNING, BEGINNING], ended=True) == 221


def test_with_bounded_streams_only_the_end_of_the_input_completes_them() -> None:
    clock = Clock([PROMPT, SLOW], bounded={0, 1})
    assert clock.advance([100, 50]) == 40
    assert clock.advance([BEGINNING, BEGINNING], ended=True) == 101


def test_only_its_promise_moves_the_watermark_of_a_stream_of_answers() -> None:
    answers = replace(PROMPT, idle_after=5.0, max_ahead=1.0, common_clock=True)
    clock = Clock([answers, SLOW], relayed={0})
    assert clock.advance([BEGINNING, 200]) == BEGINNING, "nothing is promised yet"
    assert clock.limits([[], []]) == (END, END), "a promise is never too far ahead"
    assert clock.advance([50, BEGINNING]) == 50
    assert clock.advance([300, BEGINNING]) == 190


def test_a_query_over_answers_has_ended_when_all_its_streams_have() -> None:
    clock = Clock([PROMPT, PROMPT, SLOW], relayed={0, 1})
    assert not clock.have_ended({2})
    assert not clock.have_ended({0})
    resumed = Clock([PROMPT, PROMPT, SLOW], clock.save(), relayed={0, 1})
    assert resumed.have_ended({1})
    # All rows before the promise of 100 have arrived; those at 100 may follow if the streams are resumed.
    assert resumed.advance([100, 60, 90], ended=True) == 100
    assert not resumed.have_ended({0, 1}), "the next end begins anew"
    assert resumed.have_ended({2})
    assert Clock([PROMPT]).have_ended({0})


@pytest.mark.parametrize("limit", [None, 30.0])
def test_the_clock_of_a_checkpoint_goes_on_if_a_stream_becomes_one_of_answers(limit: float | None) -> None:
    layouts = [PROMPT, replace(SLOW, max_ahead=limit)]
    before = Clock(layouts)
    before.advance([100, 120])
    after = Clock(layouts, before.save(), relayed={0})
    assert not after.have_ended({1})
    assert after.advance([105, BEGINNING]) == 105
    assert Clock(layouts, after.save()).advance([BEGINNING, BEGINNING]) == 105


def test_the_end_of_the_input_moves_the_watermark_past_the_newest_row() -> None:
    clock = Clock([PROMPT, SLOW])
    clock.advance([100, 50])
    assert clock.advance([BEGINNING, BEGINNING], ended=True) == 101


def test_the_end_of_the_input_includes_the_rows_that_arrive_with_it() -> None:
    clock = Clock([PROMPT, SLOW])
    clock.advance([100, 50])
    assert clock.advance([BEGINNING, 130], ended=True) == 131


def test_the_end_of_an_empty_input_gives_no_watermark() -> None:
    assert Clock([PROMPT, SLOW]).advance([BEGINNING, BEGINNING], ended=True) == BEGINNING


def test_the_input_may_continue_after_its_end() -> None:
    clock = Clock([SLOW])
    clock.advance([100])
    assert clock.advance([BEGINNING], ended=True) == 101
    assert clock.advance([105]) == 95, "a bucket keeps the later of its watermarks"
    assert clock.advance([130]) == 120


@given(st.lists(st.tuples(st.just(BEGINNING) | st.integers(-5, 5), st.integers(-5, 5), st.booleans()), max_size=8))
def test_a_clock_resumes_from_its_saved_state(steps: list[tuple[int, int, bool]]) -> None:
    layouts = [PROMPT, SLOW]
    whole, saved = Clock(layouts), Clock(layouts).save()
    for first, second, ended in steps:
        clock = Clock(layouts, saved)
        assert clock.advance([first, second], ended) == whole.advance([first, second], ended)
        saved = clock.save()


# ---------------------------------------------------------------- the watermark of a bucket


@dataclass(frozen=True)
class Steps:
    """A stub of a derivation; only the length of its steps matters here."""

    step: float


def in_steps(step: float, kind: TimeKind = TimeKind.INTEGER) -> Layout:
    return replace(MARKOV, time_kind=kind, derivation=Steps(step))


def test_a_row_at_the_watermark_is_neither_late_nor_ready() -> None:
    watermark = Watermark([PROMPT])
    watermark.advance(10)
    advance = watermark.advance(20)
    times = np.array([9, 10, 19, 20])
    assert advance.is_late(times).tolist() == [True, False, False, False]
    assert advance.is_ready(times).tolist() == [True, True, True, False]


def test_before_the_first_watermark_nothing_is_late_or_ready() -> None:
    advance = Watermark([PROMPT]).advance(BEGINNING)
    assert not advance.is_late(np.array([BEGINNING + 1, 0])).any()
    assert not advance.is_ready(np.array([BEGINNING + 1, 0])).any()


def test_the_watermark_of_a_bucket_never_goes_back() -> None:
    watermark = Watermark([PROMPT])
    watermark.advance(10)
    advance = watermark.advance(3)
    assert (advance.before, advance.now, watermark.at) == (10, 10, 10)


def test_a_stream_in_steps_releases_complete_steps() -> None:
    watermark = Watermark([in_steps(10)])
    advance = watermark.advance(27)
    assert (watermark.at, advance.is_ready(np.array([19, 20]), np.zeros(2, np.int32)).tolist()) == (20, [True, False])
    # The step from 20 to 30 is not complete, so a row at 20 is not late.
    assert watermark.advance(30).is_late(np.array([19, 20]), np.zeros(2, np.int32)).tolist() == [True, False]


def test_streams_with_and_without_steps_wait_for_the_same_watermark() -> None:
    advance = Watermark([PROMPT, in_steps(10)]).advance(27)
    times, streams = np.array([19, 20, 26]), np.array([0, 0, 0], np.int32)
    assert advance.is_ready(times, streams).tolist() == [True, False, False]


def test_a_row_at_the_start_of_a_decimal_step_belongs_to_it() -> None:
    # 7 * 0.1 is slightly more than 0.7.
    watermark = Watermark([in_steps(0.1, TimeKind.DOUBLE)])
    advance = watermark.advance(int(order_doubles(np.array([0.75]))[0]))
    codes = order_doubles(np.array([0.65, 0.7]))
    assert advance.is_ready(codes, np.zeros(2, np.int32)).tolist() == [True, False]


# ---------------------------------------------------------------- the reorder buffer


def rows_at(times: list[int]) -> Rows:
    n = len(times)
    zeros = np.zeros(n, np.int32)
    return Rows(zeros, zeros, zeros, zeros, np.array(times, np.int64), np.ones(n))


def sorted_times(rows: Rows) -> list[int]:
    return sorted(rows.t.tolist())


@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=6), st.integers(0, 10)), max_size=6))
def test_every_row_is_late_ready_or_held_by_the_definition(steps: list[tuple[list[int], int]]) -> None:
    watermark, buffer = Watermark([PROMPT]), ReorderBuffer(Rows.empty(), Rows.concat)
    passed, held = BEGINNING, []
    for arrived, to in steps:
        ready, late = buffer.receive(rows_at(arrived), watermark.advance(to))
        assert sorted_times(late) == sorted(t for t in arrived if t < passed)
        waiting = [*held, *(t for t in arrived if t >= passed)]
        passed = max(passed, to)
        assert sorted_times(ready) == sorted(t for t in waiting if t < passed)
        held = [t for t in waiting if t >= passed]
        assert sorted_times(buffer.held) == sorted(held)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.data())
def test_any_split_within_the_lateness_releases_the_same_rows(times: list[int], data: st.DataObject) -> None:
    """No row is late if it trails the newest one by no more than the lateness, and all rows are released."""
    lateness = max(max(times[: i + 1]) - t for i, t in enumerate(times))
    layout = replace(MARKOV, lateness=float(lateness))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(times)), max_size=4)))
    clock, watermark, buffer = Clock([layout]), Watermark([layout]), ReorderBuffer(Rows.empty(), Rows.concat)
    released: list[int] = []
    for low, high in zip([0, *cuts], [*cuts, len(times)], strict=True):
        part = times[low:high]
        to = clock.advance([max(part, default=BEGINNING)])
        ready, late = buffer.receive(rows_at(part), watermark.advance(to))
        assert not len(late)
        assert not released or min(ready.t, default=99) >= max(released), "rows are released in order of time"
        released += ready.t.tolist()
    ready, _ = buffer.receive(Rows.empty(), watermark.advance(clock.advance([BEGINNING], ended=True)))
    assert sorted([*released, *ready.t.tolist()]) == sorted(times)


@pytest.mark.parametrize("limits", [None, (np.array([5, 7]), np.array([9, 9]))])
def test_streams_have_separate_limits_only_in_steps(limits: tuple[I64, I64] | None) -> None:
    advance = Advance(5, 9, limits)
    late = advance.is_late(np.array([6, 6]), np.array([0, 1]))
    assert late.tolist() == [False, limits is not None]
