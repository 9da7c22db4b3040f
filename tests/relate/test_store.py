"""Entities of a live stream: when they end, late rows, removal from the state, and retractions."""

from __future__ import annotations

import pytest
from tests.local import local_job
from tests.relate.local import Answer, RelateRun, run_stream, run_whole

from anabranch.relate.job import RelateJob

SOME_INTERSECT = "SOME a INTERSECTS SOME b"


def job_of(clauses: str = "", query: str = SOME_INTERSECT, tail: str = "", live: bool = True) -> RelateJob:
    return local_job(
        f"CREATE STREAM s KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq {clauses}; "
        f"CREATE QUERY q AS RELATE {query} FROM s AS a, s AS b WHERE a.k < b.k COMPLEMENT {tail};",
        "q",
        live=live,
    )


def rows(k: str, *events: tuple) -> list[dict]:
    """Rows of an entity from (position, time); a third entry has further columns."""
    return [{"k": k, "seq": seq, "t": t, **(columns[0] if columns else {})} for seq, t, *columns in events]


def run_over(job: RelateJob, *batches: list[dict]) -> RelateRun:
    """A run over batches whose input has not ended."""
    run = RelateRun(job)
    for batch in batches:
        run.step({"s": batch})
    return run


def reported(run: RelateRun, step: int = -1) -> dict:
    """The answers of a step: probability and status by pair."""
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
    run = run_over(job_of(clauses), rows("x", *ending) + rows("y", *y))
    assert reported(run) == {("x", "y"): (1.0, "provisional")}
    run.step({"s": rows("z", (1, 6))})
    assert reported(run) == {("x", "y"): (1.0, "final")}
    assert run.kept() == {"z"}
    run.step({}, end=True)
    assert reported(run) == {}


def test_an_entity_ends_only_after_the_watermark_delay() -> None:
    run = run_over(job_of("LENGTH n WATERMARK 3"), ENDED, rows("z", (1, 11, TWO)))
    assert [reported(run, step) for step in range(2)] == [{("x", "y"): (1.0, "provisional")}, {}]
    run.step({"s": rows("z", (2, 12, TWO))})
    assert reported(run) == {("x", "y"): (1.0, "final")}


def test_without_length_role_or_timeout_an_entity_ends_with_the_input() -> None:
    run = run_over(job_of(), rows("x", (1, 0), (2, 5)), rows("y", (1, 8), (2, 10**6)))
    assert not run.answers()
    assert run.counts.used == 0
    run.step({}, end=True)
    assert run.counts.used == 4


def test_rows_of_an_ended_entity_are_late() -> None:
    # w has started and not ended, so x is still kept when its late rows arrive.
    w = rows("w", (1, -1, TWO))
    more = rows("x", (3, 20, TWO), (4, None), (2, 5, TWO))
    run = run_over(job_of("LENGTH n"), w + ENDED, NEXT, more)
    assert {"w", "x"} <= run.kept()
    assert run.counts.late == 3
    run.step({}, end=True)
    assert run.answers() == {("x", "y"): Answer(1.0, 0.0, "final")}


def test_rows_of_a_removed_entity_are_late() -> None:
    run = run_over(job_of("LENGTH n"), ENDED, NEXT, rows("x", (1, 20, TWO), (2, 21, TWO)))
    assert run.counts.late == 2


# ---------------------------------------------------------------- late rows, duplicates


def test_a_row_before_the_watermark_is_late_and_creates_no_entity() -> None:
    run = run_over(job_of("LENGTH n"), NEXT, rows("v", (1, 8)), rows("z", (1, 8, TWO)))
    assert run.counts.late == 2
    assert run.reasons() == {"late": 2}
    assert run.kept() == {"z"}


def test_rows_of_one_batch_cannot_make_each_other_late() -> None:
    run = run_over(job_of("LENGTH n"), rows("z", (2, 99, TWO), (1, 0, TWO)))
    assert run.counts.late == 0


def test_a_late_row_of_a_removed_entity_does_not_keep_others() -> None:
    run = run_over(job_of("LENGTH n"), ENDED, NEXT, rows("x", (1, 0, TWO)), rows("z", (2, 12, TWO)), rows("u", (1, 30)))
    assert run.counts.late == 1
    assert run.kept() == {"u"}


def test_duplicate_rows_are_one_event() -> None:
    run = run_stream(job_of("LENGTH n"), [{"s": ENDED + ENDED[:1]}, {"s": ENDED[2:3]}, {"s": NEXT}])
    assert run.answers() == {("x", "y"): Answer(1.0, 0.0, "final")}
    assert (run.counts.duplicate, run.counts.late) == (1, 1)
    assert run_whole(job_of("LENGTH n", live=False), {"s": ENDED * 3}).counts.duplicate == 8


def test_a_fault_is_kept_until_the_entity_ends() -> None:
    batches = [{"s": rows("x", (1, 0), (2, 9), (2, 8)) + rows("y", (1, 1), (2, 3))}, {"s": rows("w", (1, 9), (2, 10))}]
    run = run_stream(job_of(), batches)
    assert run.counts.quarantined == 3
    assert not run.answers()


# ---------------------------------------------------------------- TIMEOUT


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("events", "used", "late"),
    [
        ([(1, 0), (2, 10)], 2, 0),  # exactly at the timeout
        ([(1, 0), (2, 10), (3, 20), (4, 30)], 4, 0),  # the timeout starts at the last event
        ([(1, 0), (2, 10), (3, 21), (4, 22)], 2, 2),
        ([(1, 0), (2, 10), (3, None), (4, 21)], 0, 1),  # three events, of which the last is lost
        ([(1, 0), (2, 10), (3, 21), (4, None), (5, None), (6, 23)], 2, 4),
        ([(1, 0), (2, None), (3, None), (4, 10)], 4, 0),
    ],
)
def test_an_entity_ends_after_the_timeout(live: bool, events: list[tuple], used: int, late: int) -> None:
    job = job_of(tail="TIMEOUT 10", live=live)
    batches = [rows("x", event) for event in events] if live else [rows("x", *events)]
    # Another key advances the watermark in between; it does not affect the timeout of x.
    other = rows("y", *((seq, 9 * (seq - 1)) for seq in range(1, 7)))
    timeline = sorted([*sum(batches, []), *other], key=lambda row: _arrival_of(row, events))
    run = run_stream(job, [{"s": [row]} for row in timeline]) if live else run_whole(job, {"s": timeline})
    assert (run.counts.used - 6, run.counts.late) == (used, late)
    assert run.counts.quarantined == len(events) - used - late


def _arrival_of(row: dict, events: list[tuple]) -> int:
    """The order in which rows arrive: by time; a row without a time arrives after the recorded event before it."""
    if row["t"] is not None:
        return 2 * row["t"]
    return 2 * max(t for seq, t in events if t is not None and seq < row["seq"]) + 1


def test_after_a_timeout_the_remaining_events_are_lost_up_to_the_horizon() -> None:
    four = {"n": 4}
    job = job_of("LENGTH n HORIZON [0, 100]", "ALL a PRECEDES SOME b", "TIMEOUT 10")
    x = rows("x", (1, 0, four), (2, 5, four))
    y = rows("y", (1, 40, TWO), (2, 45, TWO))
    run = run_stream(job, [{"s": x}, {"s": y}])
    # The probability that both lost events, uniform on (5, 100), are before 40.
    assert run.answers()[("x", "y")].probability == pytest.approx((35 / 95) ** 2)


def test_an_entity_without_recorded_events_ends_with_the_input() -> None:
    run = run_over(job_of("HORIZON [0, 9]", tail="TIMEOUT 1"), rows("x", (2, None)), rows("y", (1, 3), (2, 4)), NEXT)
    assert not run.answers()
    run.step({}, end=True)
    # All cases except both lost events before 3, or both after 4.
    assert run.answers()[("x", "y")].probability == pytest.approx(1 - (3 / 9) ** 2 - (5 / 9) ** 2)


# ---------------------------------------------------------------- removal from the state


@pytest.mark.parametrize(
    ("clauses", "query", "kept"),
    [
        ("LENGTH n", SOME_INTERSECT, {"z"}),
        ("LENGTH n", "ALL a STARTS BEFORE ALL b", {"x", "y", "z"}),
        ("LENGTH n", "SOME a PRECEDED BY SOME b", {"x", "y", "z"}),
        ("LENGTH n HORIZON [0, 99]", SOME_INTERSECT, {"x", "y", "z"}),
        ("LENGTH n WINDOW (lo, hi)", SOME_INTERSECT, {"x", "y", "z"}),
    ],
)
def test_an_entity_is_removed_when_no_later_one_can_be_its_partner(clauses: str, query: str, kept: set[str]) -> None:
    run = run_over(job_of(clauses, query), ENDED, NEXT)
    assert run.kept() == kept


def test_an_open_entity_keeps_all_that_ended_after_its_start() -> None:
    early = rows("v", (1, -9, TWO), (2, -8, TWO))
    run = run_over(job_of("LENGTH n"), early + rows("w", (1, 4, TWO)) + ENDED, NEXT)
    assert run.kept() == {"w", "x", "y", "z"}


def test_an_entity_that_cannot_become_valid_keeps_no_others() -> None:
    # Its first event can only arrive late.
    run = run_over(job_of("LENGTH n"), rows("w", (3, 4)) + ENDED, NEXT)
    assert run.kept() == {"w", "z"}


@pytest.mark.parametrize("clauses", ["HORIZON [0, 99]", "WINDOW (lo, hi)"])
def test_later_rows_of_a_quarantined_entity_create_no_new_one(clauses: str) -> None:
    job = job_of(clauses, tail="TIMEOUT 10")
    # Three events, then the timeout.
    x = rows("x", (1, 0), (2, 5), (3, 6))
    run = run_stream(job, [{"s": x}, {"s": rows("y", (1, 20), (2, 29))}, {"s": rows("x", (4, 30))}])
    assert (run.counts.quarantined, run.counts.late) == (3, 1)
    assert not run.answers()


def test_a_window_may_overlap_an_entity_that_ended_long_ago() -> None:
    batches = [{"s": ENDED}, {"s": NEXT}, {"s": rows("w", (1, None, TWO | {"lo": 2, "hi": 12}), (2, 12))}]
    live, whole = (job_of("LENGTH n WINDOW (lo, hi)", live=live) for live in (True, False))
    assert run_stream(live, batches).answers()[("w", "x")].probability == pytest.approx(3 / 10)
    assert run_whole(whole, {"s": sum((batch["s"] for batch in batches), [])}).answers().keys() == {
        ("w", "x"), ("w", "y"), ("x", "y"),
    }  # fmt: skip


# ---------------------------------------------------------------- retractions


def test_an_answer_that_falls_below_the_threshold_is_retracted() -> None:
    job = job_of("WATERMARK 99", "ALL a INTERSECTS SOME b", "THRESHOLD 0.5")
    run = run_over(job, rows("x", (1, 0), (2, 5)) + rows("y", (1, 3), (2, 8)), rows("x", (3, 20), (4, 22)), [])
    assert [reported(run, step) for step in range(3)] == [
        {("x", "y"): (1.0, "provisional")}, {("x", "y"): (0.0, "provisional")}, {},
    ]  # fmt: skip
    run.step({}, end=True)
    assert reported(run) == {}


def test_a_provisional_answer_that_has_not_changed_is_reported_once() -> None:
    """A second segment of x changes nothing in whether some segment of x intersects one of y."""
    job = job_of("WATERMARK 99", "SOME a INTERSECTS SOME b", "THRESHOLD 0.5")
    both = rows("x", (1, 0), (2, 5)) + rows("y", (1, 3), (2, 8))
    run = run_over(job, both, rows("x", (3, 20), (4, 22)), rows("y", (3, 40), (4, 42)))
    assert [reported(run, step) for step in range(3)] == [{("x", "y"): (1.0, "provisional")}, {}, {}]
    run.step({}, end=True)
    assert reported(run) == {("x", "y"): (1.0, "final")}


def test_a_timeout_can_retract_an_answer_without_a_new_row() -> None:
    job = job_of("LENGTH n HORIZON [0, 100]", "ALL a INTERSECTS SOME b", "TIMEOUT 10 THRESHOLD 0.5")
    run = run_over(job, rows("x", (1, 0, {"n": 4}), (2, 1)) + rows("y", (1, 0, TWO), (2, 1)), rows("z", (1, 90, TWO)))
    assert reported(run)[("x", "y")] == (0.0, "provisional")


@pytest.mark.parametrize("more", [[(3, 7)], [(3, 7), (3, 6)], [(3, None), (4, None)]])
def test_answers_about_an_entity_that_proves_invalid_are_retracted(more: list[tuple]) -> None:
    run = run_stream(job_of(), [{"s": rows("x", (1, 0), (2, 5)) + rows("y", (1, 3), (2, 5))}, {"s": rows("y", *more)}])
    assert reported(run, 0) == {("x", "y"): (1.0, "provisional")}
    assert run.latest() == {("x", "y"): Answer(0.0, 1.0, "provisional")}
    assert not run.answers()


def test_only_reported_answers_are_retracted() -> None:
    job = job_of("WATERMARK 99", "ALL a INTERSECTS SOME b", "THRESHOLD 0.5")
    run = run_over(job, rows("x", (1, 0), (2, 5)), rows("x", (3, 20), (4, 22)) + rows("y", (1, 3), (2, 8)))
    assert reported(run) == {}
