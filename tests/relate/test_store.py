"""Entities on a live stream, by hand: when they end, what is late, what is forgotten, and what is taken back."""

from __future__ import annotations

import pytest
from tests.local import local_job
from tests.relate.local import Answer, RelateRun, run_stream, run_whole

from anabranch.relate.job import RelateJob

SOME_MEET = "SOME a INTERSECTS SOME b"


def job_of(clauses: str = "", query: str = SOME_MEET, tail: str = "", live: bool = True) -> RelateJob:
    return local_job(
        f"CREATE STREAM s KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq {clauses}; "
        f"CREATE QUERY q AS RELATE {query} FROM s AS a, s AS b WHERE a.k < b.k COMPLEMENT {tail};",
        "q",
        live=live,
    )


def rows(k: str, *events: tuple) -> list[dict]:
    """Rows of an entity by (position, time); a third entry says what else a row has."""
    return [{"k": k, "seq": seq, "t": t, **(more[0] if more else {})} for seq, t, *more in events]


def stepped(job: RelateJob, *batches: list[dict]) -> RelateRun:
    """A run whose input goes on."""
    run = RelateRun(job)
    for batch in batches:
        run.step({"s": batch})
    return run


def said(run: RelateRun, step: int = -1) -> dict:
    """What a step reported: probability and status by pair."""
    return {pair: (round(answer.probability, 12), answer.status) for pair, answer in run.reported[step]}


TWO = {"n": 2}
#: Two entities that overlap and have ended, and one that begins later.
ENDED = [*rows("x", (1, 0, TWO), (2, 5, TWO)), *rows("y", (1, 3, TWO), (2, 8, TWO))]
NEXT = rows("z", (1, 9, TWO))


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("clauses", "ending"),
    [
        ("LENGTH n", [(1, 0, TWO), (2, 5, TWO)]),
        ("LENGTH n", [(1, 0, TWO), (2, 5)]),
        ("LENGTH n", [(1, 0), (2, 5, TWO)]),
        ("ROLE what", [(1, 0), (2, 5, {"what": "End"})]),
        ("LENGTH n ROLE what", [(1, 0, {"what": "start"}), (2, 5, {"what": "end", "n": 2})]),
    ],
)
def test_an_entity_has_ended_when_the_watermark_is_past_its_last_event(clauses: str, ending: list[tuple]) -> None:
    y = [(1, 3, *ending[0][2:]), (2, 5, *ending[1][2:])]
    run = stepped(job_of(clauses), rows("x", *ending) + rows("y", *y))
    assert said(run) == {("x", "y"): (1.0, "provisional")}
    run.step({"s": rows("z", (1, 6))})
    assert said(run) == {("x", "y"): (1.0, "final")}
    assert run.kept() == {"z"}
    run.step({}, end=True)
    assert said(run) == {}


def test_the_watermark_waits_for_what_may_come() -> None:
    run = stepped(job_of("LENGTH n WATERMARK 3"), ENDED, rows("z", (1, 11, TWO)))
    assert said(run) == {("x", "y"): (1.0, "provisional")}
    run.step({"s": rows("z", (2, 12, TWO))})
    assert said(run) == {("x", "y"): (1.0, "final")}


def test_without_length_role_or_timeout_an_entity_ends_with_the_input() -> None:
    run = stepped(job_of(), rows("x", (1, 0), (2, 5)), rows("y", (1, 8), (2, 10**6)))
    assert not run.answers()
    assert run.counts.used == 0
    run.step({}, end=True)
    assert run.counts.used == 4


def test_rows_of_an_ended_entity_are_late() -> None:
    # w has begun and goes on, so that x is still kept when its rows come.
    w = rows("w", (1, -1, TWO))
    more = rows("x", (3, 20, TWO), (4, None), (2, 5, TWO))
    run = stepped(job_of("LENGTH n"), w + ENDED, NEXT, more)
    assert {"w", "x"} <= run.kept()
    assert run.counts.late == 3
    run.step({}, end=True)
    assert run.answers() == {("x", "y"): Answer(1.0, 0.0, "final")}


def test_rows_of_a_forgotten_entity_are_late() -> None:
    run = stepped(job_of("LENGTH n"), ENDED, NEXT, rows("x", (1, 20, TWO), (2, 21, TWO)))
    assert run.counts.late == 2


# ---------------------------------------------------------------- late rows, rows given twice


def test_a_row_before_the_watermark_is_late_and_makes_no_entity() -> None:
    run = stepped(job_of("LENGTH n"), NEXT, rows("v", (1, 8)), rows("z", (1, 8, TWO)))
    assert run.counts.late == 2
    assert run.reasons() == {"late": 2}
    assert run.kept() == {"z"}


def test_rows_of_one_batch_are_not_late_to_each_other() -> None:
    run = stepped(job_of("LENGTH n"), rows("z", (2, 99, TWO), (1, 0, TWO)))
    assert run.counts.late == 0


def test_a_late_row_of_a_forgotten_key_does_not_keep_others() -> None:
    run = stepped(job_of("LENGTH n"), ENDED, NEXT, rows("x", (1, 0, TWO)), rows("z", (2, 12, TWO)), rows("u", (1, 30)))
    assert run.counts.late == 1
    assert run.kept() == {"u"}


def test_a_row_given_twice_is_one_event() -> None:
    run = run_stream(job_of("LENGTH n"), [{"s": ENDED + ENDED[:1]}, {"s": ENDED[2:3]}, {"s": NEXT}])
    assert run.answers() == {("x", "y"): Answer(1.0, 0.0, "final")}
    assert (run.counts.duplicate, run.counts.late) == (1, 1)
    assert run_whole(job_of("LENGTH n", live=False), {"s": ENDED * 3}).counts.duplicate == 8


def test_a_contradiction_is_remembered_until_the_entity_ends() -> None:
    batches = [{"s": rows("x", (1, 0), (2, 9), (2, 8)) + rows("y", (1, 1), (2, 3))}, {"s": rows("w", (1, 9), (2, 10))}]
    run = run_stream(job_of(), batches)
    assert run.counts.quarantined == 3
    assert not run.answers()


# ---------------------------------------------------------------- TIMEOUT


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("events", "used", "late"),
    [
        ([(1, 0), (2, 10)], 2, 0),  # just in time
        ([(1, 0), (2, 10), (3, 20), (4, 30)], 4, 0),  # the silence counts from the last event
        ([(1, 0), (2, 10), (3, 21), (4, 22)], 2, 2),
        ([(1, 0), (2, 10), (3, None), (4, 21)], 0, 1),  # of three events, the last one lost
        ([(1, 0), (2, 10), (3, 21), (4, None), (5, None), (6, 23)], 2, 4),
        ([(1, 0), (2, None), (3, None), (4, 10)], 4, 0),
    ],
)
def test_an_entity_is_over_after_a_silence(live: bool, events: list[tuple], used: int, late: int) -> None:
    job = job_of(tail="TIMEOUT 10", live=live)
    batches = [rows("x", event) for event in events] if live else [rows("x", *events)]
    # Another key lets time go on in between, and ends the silence of none.
    other = rows("y", *((seq, 9 * (seq - 1)) for seq in range(1, 7)))
    timeline = sorted([*sum(batches, []), *other], key=lambda row: _time_of(row, events))
    run = run_stream(job, [{"s": [row]} for row in timeline]) if live else run_whole(job, {"s": timeline})
    assert (run.counts.used - 6, run.counts.late) == (used, late)
    assert run.counts.quarantined == len(events) - used - late


def _time_of(row: dict, events: list[tuple]) -> int:
    """When a row comes: at its time, or right after the recorded event ahead of it."""
    if row["t"] is not None:
        return 2 * row["t"]
    return 2 * max(t for seq, t in events if t is not None and seq < row["seq"]) + 1


def test_after_a_timeout_the_rest_is_lost_up_to_the_horizon() -> None:
    four = {"n": 4}
    job = job_of("LENGTH n HORIZON [0, 100]", "ALL a PRECEDES SOME b", "TIMEOUT 10")
    x = rows("x", (1, 0, four), (2, 5, four))
    y = rows("y", (1, 40, TWO), (2, 45, TWO))
    run = run_stream(job, [{"s": x}, {"s": y}])
    # Both lost events, uniform on (5, 100), are before 40.
    assert run.answers()[("x", "y")].probability == pytest.approx((35 / 95) ** 2)


def test_an_entity_of_which_nothing_is_recorded_ends_with_the_input() -> None:
    run = stepped(job_of("HORIZON [0, 9]", tail="TIMEOUT 1"), rows("x", (2, None)), rows("y", (1, 3), (2, 4)), NEXT)
    assert not run.answers()
    run.step({}, end=True)
    # One lost event is before 3, the other after 4, or one of them is in between.
    assert run.answers()[("x", "y")].probability == pytest.approx(1 - (3 / 9) ** 2 - (5 / 9) ** 2)


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize(
    ("clauses", "query", "kept"),
    [
        ("LENGTH n", SOME_MEET, {"z"}),
        ("LENGTH n", "ALL a STARTS BEFORE ALL b", {"x", "y", "z"}),
        ("LENGTH n", "SOME a PRECEDED BY SOME b", {"x", "y", "z"}),
        ("LENGTH n HORIZON [0, 99]", SOME_MEET, {"x", "y", "z"}),
        ("LENGTH n WINDOW (lo, hi)", SOME_MEET, {"x", "y", "z"}),
    ],
)
def test_an_entity_is_forgotten_when_no_other_can_meet_it(clauses: str, query: str, kept: set[str]) -> None:
    run = stepped(job_of(clauses, query), ENDED, NEXT)
    assert run.kept() == kept


def test_an_open_entity_keeps_those_that_ended_since_it_began() -> None:
    early = rows("v", (1, -9, TWO), (2, -8, TWO))
    run = stepped(job_of("LENGTH n"), early + rows("w", (1, 4, TWO)) + ENDED, NEXT)
    assert run.kept() == {"w", "x", "y", "z"}


def test_an_entity_that_can_be_none_any_more_keeps_nothing() -> None:
    # Its first event would be late by now.
    run = stepped(job_of("LENGTH n"), rows("w", (3, 4)) + ENDED, NEXT)
    assert run.kept() == {"w", "z"}


@pytest.mark.parametrize("clauses", ["HORIZON [0, 99]", "WINDOW (lo, hi)"])
def test_what_is_left_of_a_refused_entity_makes_no_other(clauses: str) -> None:
    job = job_of(clauses, tail="TIMEOUT 10")
    # Three events, then a silence.
    x = rows("x", (1, 0), (2, 5), (3, 6))
    run = run_stream(job, [{"s": x}, {"s": rows("y", (1, 20), (2, 29))}, {"s": rows("x", (4, 30))}])
    assert (run.counts.quarantined, run.counts.late) == (3, 1)
    assert not run.answers()


def test_a_window_may_reach_back_to_what_has_long_ended() -> None:
    batches = [{"s": ENDED}, {"s": NEXT}, {"s": rows("w", (1, None, TWO | {"lo": 2, "hi": 12}), (2, 12))}]
    live, whole = (job_of("LENGTH n WINDOW (lo, hi)", live=live) for live in (True, False))
    assert run_stream(live, batches).answers()[("w", "x")].probability == pytest.approx(3 / 10)
    assert run_whole(whole, {"s": sum((batch["s"] for batch in batches), [])}).answers().keys() == {
        ("w", "x"), ("w", "y"), ("x", "y"),
    }  # fmt: skip


# ---------------------------------------------------------------- what is taken back


def test_what_falls_below_the_threshold_is_said_once_more() -> None:
    job = job_of("WATERMARK 99", "ALL a INTERSECTS SOME b", "THRESHOLD 0.5")
    run = stepped(job, rows("x", (1, 0), (2, 5)) + rows("y", (1, 3), (2, 8)), rows("x", (3, 20), (4, 22)), [])
    assert [said(run, step) for step in range(3)] == [
        {("x", "y"): (1.0, "provisional")}, {("x", "y"): (0.0, "provisional")}, {},
    ]  # fmt: skip
    run.step({}, end=True)
    assert said(run) == {}


def test_what_ends_otherwise_than_it_seemed_is_taken_back_without_a_row_of_its_own() -> None:
    job = job_of("LENGTH n HORIZON [0, 100]", "ALL a INTERSECTS SOME b", "TIMEOUT 10 THRESHOLD 0.5")
    run = stepped(job, rows("x", (1, 0, {"n": 4}), (2, 1)) + rows("y", (1, 0, TWO), (2, 1)), rows("z", (1, 90, TWO)))
    assert said(run)[("x", "y")] == (0.0, "provisional")


@pytest.mark.parametrize("more", [[(3, 7)], [(3, 7), (3, 6)], [(3, None), (4, None)]])
def test_an_entity_that_turns_out_to_be_none_is_taken_back(more: list[tuple]) -> None:
    run = run_stream(job_of(), [{"s": rows("x", (1, 0), (2, 5)) + rows("y", (1, 3), (2, 5))}, {"s": rows("y", *more)}])
    assert said(run, 0) == {("x", "y"): (1.0, "provisional")}
    assert run.standing() == {("x", "y"): Answer(0.0, 1.0, "provisional")}
    assert not run.answers()


def test_what_was_never_said_is_not_taken_back() -> None:
    job = job_of("WATERMARK 99", "ALL a INTERSECTS SOME b", "THRESHOLD 0.5")
    run = stepped(job, rows("x", (1, 0), (2, 5)), rows("x", (3, 20), (4, 22)) + rows("y", (1, 3), (2, 8)))
    assert said(run) == {}
