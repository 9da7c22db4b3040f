"""The watermark: the least of the streams', behind the newest row of each, through restarts and the end of input."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.transport.layouts import CERTAIN, MARKOV

from anabranch.columns.times import BEGINNING
from anabranch.transport.watermark import Clock

PROMPT = MARKOV
SLOW = replace(CERTAIN, lateness=10.0)


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


def test_the_end_of_the_input_passes_every_row_and_nothing_else() -> None:
    clock = Clock([PROMPT, SLOW])
    clock.advance([100, 50])
    assert clock.advance([BEGINNING, BEGINNING], ended=True) == 101


def test_the_end_passes_the_rows_that_come_with_it() -> None:
    clock = Clock([PROMPT, SLOW])
    clock.advance([100, 50])
    assert clock.advance([BEGINNING, 130], ended=True) == 131


def test_the_end_of_nothing_is_no_watermark() -> None:
    assert Clock([PROMPT, SLOW]).advance([BEGINNING, BEGINNING], ended=True) == BEGINNING


def test_after_the_end_the_input_may_go_on() -> None:
    clock = Clock([SLOW])
    clock.advance([100])
    assert clock.advance([BEGINNING], ended=True) == 101
    assert clock.advance([105]) == 95, "the inbox keeps the later of its watermarks"
    assert clock.advance([130]) == 120


@given(st.lists(st.tuples(st.just(BEGINNING) | st.integers(-5, 5), st.integers(-5, 5), st.booleans()), max_size=8))
def test_a_clock_goes_on_from_its_saved_state(steps: list[tuple[int, int, bool]]) -> None:
    layouts = [PROMPT, SLOW]
    whole, saved = Clock(layouts), Clock(layouts).save()
    for first, second, ended in steps:
        clock = Clock(layouts, saved)
        assert clock.advance([first, second], ended) == whole.advance([first, second], ended)
        saved = clock.save()
