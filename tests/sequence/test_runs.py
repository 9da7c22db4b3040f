"""Runs (`y+`) with known answers: which events they have, how they are scored, and which queries are refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.local import declared, local_job
from tests.sequence.local import SequenceRun

from anabranch.planning.planner import Planner
from anabranch.transport.finishing import finish_table

STREAM = "CREATE STREAM r KEY (tag STRING) VALUE (reader STRING, n INTEGER) TIME t INTEGER"
CERTAIN, UNCERTAIN = f"{STREAM};", f"{STREAM} MODEL INDEPENDENT;"
READERS = " AND ".join(f"{name}.reader = '{name}'" for name in "xyz")
XYZ = f"{READERS} AND x.tag = y.tag AND y.tag = z.tag"
YZ = "y.reader = 'y' AND z.reader = 'z' AND y.tag = z.tag"
XY = "x.reader = 'x' AND y.reader = 'y' AND x.tag = y.tag"


def rows_of(*events: tuple[str, int], tag: str = "a", n: int = 0, p: float = 1.0) -> list[dict[str, Any]]:
    return [{"tag": tag, "reader": reader, "t": t, "n": n, "p": p} for reader, t in events]


def run_of(query: str, rows: list[dict[str, Any]], stream: str = CERTAIN, one_by_one: bool = False) -> SequenceRun:
    run = SequenceRun(local_job(f"{stream} CREATE QUERY q AS SEQUENCE {query};", "q"), 2)
    run.run([{"r": [row]} for row in sorted(rows, key=lambda row: row["t"])] if one_by_one else [{"r": rows}])
    return run


def answers_to(query: str, rows: list[dict[str, Any]], stream: str = CERTAIN) -> list[tuple]:
    """The answers as (t_start, t, count, first and last time of y, probability); the same if rows come one by one."""
    answers = [_tuples(run_of(query, rows, stream, one_by_one)) for one_by_one in (False, True)]
    assert answers[0] == answers[1]
    return answers[0]


def _tuples(run: SequenceRun) -> list[tuple]:
    return sorted(
        (
            answer["t_start"],
            answer["t"],
            answer["y"]["count"],
            answer["y"]["first"]["t"],
            answer["y"]["last"]["t"],
            round(answer["probability"], 9),
        )
        for answer in run.answers()
    )


def test_a_run_is_every_event_between_its_neighbours() -> None:
    query = f"(x, y+, z) FROM r WHERE {XYZ} WITHIN 20"
    rows = rows_of(("x", 0), ("y", 0), ("y", 1), ("y", 3), ("z", 4), ("y", 4), ("y", 6), ("z", 7))
    # Events at the time of a neighbour are not between them. One match for each pair of x and z.
    assert answers_to(query, rows) == [(0, 4, 2, 1, 3, 1.0), (0, 7, 4, 1, 6, 1.0)]
    assert answers_to(query, rows_of(("x", 0), ("z", 4), ("y", 5))) == []


def test_conditions_with_single_events_select_the_events_of_a_run() -> None:
    query = f"(x, y+, z) FROM r WHERE {XYZ} AND y.n > x.n AND y.t <= z.t - 2 WITHIN 20"
    rows = [*rows_of(("x", 0), ("y", 1), ("z", 9)), *rows_of(("y", 2), ("y", 5), ("y", 7), ("y", 8), n=1)]
    assert answers_to(query, rows) == [(0, 9, 3, 2, 7, 1.0)]


def test_a_run_at_the_head_reaches_to_the_beginning_of_the_window() -> None:
    query = f"(y+, z) FROM r WHERE {YZ} WITHIN 5"
    rows = rows_of(("y", 0), ("y", 1), ("y", 3), ("z", 6), ("z", 20))
    assert answers_to(query, rows) == [(1, 6, 2, 1, 3, 1.0)]


def test_a_run_at_an_open_ending_reaches_to_the_end_of_the_window() -> None:
    query = f"(x, y+) FROM r WHERE {XY} WITHIN 5 ENDING OPEN"
    rows = rows_of(("x", 0), ("y", 2), ("y", 5), ("y", 6), ("x", 30))
    assert answers_to(query, rows) == [(0, 5, 2, 2, 5, 1.0)]


def test_gaps_end_and_begin_with_the_run() -> None:
    before = f"(w, x, y+, z) FROM r WHERE {XYZ} AND w.reader = 'w' AND w.tag = x.tag"
    query = f"{before} MISS x 0.2 DELAY x UNIFORM(0, 10) WITHIN 20"
    rows = rows_of(("w", 0), ("y", 4), ("y", 6), ("z", 9))
    assert answers_to(query, rows) == [(0, 9, 2, 4, 6, 0.08)]
    after = f"(x, y+, w, z) FROM r WHERE {XYZ} AND w.reader = 'w' AND w.tag = x.tag"
    query = f"{after} MISS w 0.2 DELAY w UNIFORM(0, 10) WITHIN 20"
    assert answers_to(query, rows_of(("x", 0), ("y", 4), ("y", 6), ("z", 9))) == [(0, 9, 2, 4, 6, 0.06)]
    # Before the first event, the gap begins with the window, which ends with z.
    query = f"(x, y+, z) FROM r WHERE {XYZ} MISS x 0.2 DELAY x UNIFORM(0, 10) WITHIN 8"
    assert answers_to(query, rows_of(("y", 4), ("y", 6), ("z", 9))) == [(4, 9, 2, 4, 6, 0.06)]
    # After the last one, it ends with the window, which began with x.
    query = f"(x, y+, z) FROM r WHERE {XYZ} MISS z 0.2 DELAY z UNIFORM(0, 10) WITHIN 8 ENDING OPEN"
    assert answers_to(query, rows_of(("x", 0), ("y", 2), ("y", 5))) == [(0, 8, 2, 2, 5, 0.06)]


def test_negatives_next_to_a_run_are_tested_up_to_its_ends() -> None:
    where = f"{XYZ} AND w.reader = 'w' AND w.tag = x.tag WITHIN 20"
    rows = rows_of(("x", 0), ("y", 3), ("w", 4), ("y", 5), ("z", 8))
    assert answers_to(f"(x, !w, y+, z) FROM r WHERE {where}", rows) == [(0, 8, 2, 3, 5, 1.0)]
    assert answers_to(f"(x, y+, !w, z) FROM r WHERE {where}", rows) == [(0, 8, 2, 3, 5, 1.0)]
    assert answers_to(f"(x, !w, y+, z) FROM r WHERE {where}", [*rows, *rows_of(("w", 2))]) == []
    assert answers_to(f"(x, y+, !w, z) FROM r WHERE {where}", [*rows, *rows_of(("w", 6))]) == []


def test_events_of_a_run_at_the_same_time_are_ordered_by_their_columns() -> None:
    query = f"(x, y+, z) FROM r WHERE {XYZ} WITHIN 20"
    rows = [*rows_of(("x", 0), ("z", 4)), *(row for n in (2, 1, 3) for row in rows_of(("y", 2), n=n))]
    for one_by_one in (False, True):
        (answer,) = run_of(query, rows, one_by_one=one_by_one).answers()
        assert (answer["y"]["count"], answer["y"]["first"]["n"], answer["y"]["last"]["n"]) == (3, 1, 3)


def test_emit_next_keeps_the_first_match_of_each_first_event() -> None:
    rows = rows_of(("y", 0), ("y", 1), ("z", 2), ("y", 3), ("z", 4), ("z", 7), ("z", 30))
    # The window of the second z begins with the same event, and that of the third one with another.
    assert answers_to(f"(y+, z) FROM r WHERE {YZ} WITHIN 4 EMIT NEXT", rows) == [
        (0, 2, 2, 0, 1, 1.0), (3, 7, 1, 3, 3, 1.0),
    ]  # fmt: skip
    rows = rows_of(("x", 0), ("y", 1), ("z", 2), ("y", 3), ("z", 4))
    assert answers_to(f"(x, y+, z) FROM r WHERE {XYZ} WITHIN 9 EMIT NEXT", rows) == [(0, 2, 1, 1, 1, 1.0)]


def test_a_run_has_the_probability_that_one_of_its_events_happened() -> None:
    query = f"(x, y+, z) FROM r WHERE {XYZ} WITHIN 20"
    rows = [*rows_of(("x", 0), p=0.5), *rows_of(("z", 9)), *rows_of(("y", 2), ("y", 4), p=0.5)]
    assert answers_to(query, rows, UNCERTAIN) == [(0, 9, 2, 2, 4, 0.375)]
    # Rows of one key and time exclude each other.
    rows = [*rows_of(("x", 0), ("z", 9)), *rows_of(("y", 2), p=0.25), *rows_of(("y", 2), n=1, p=0.5)]
    assert answers_to(query, rows, UNCERTAIN) == [(0, 9, 2, 2, 2, 0.75)]


def test_the_events_of_a_run_without_a_key_belong_to_every_group() -> None:
    query = f"(x, y+, z) FROM r WHERE {READERS} AND x.tag = z.tag WITHIN 20"
    rows = [*rows_of(("x", 0), ("z", 4)), *rows_of(("x", 1), ("z", 5), tag="b"), *rows_of(("y", 3), tag="c")]
    assert answers_to(query, rows) == [(0, 4, 1, 3, 3, 1.0), (1, 5, 1, 3, 3, 1.0)]


def test_a_result_has_a_struct_of_the_count_and_the_two_events() -> None:
    run = run_of(f"(x, y+, z) FROM r WHERE {XYZ} WITHIN 20", rows_of(("x", 0), ("y", 1), ("y", 2), ("z", 4)))
    (answers,) = [outcome.answers for outcome in run.outcomes if outcome.answers.num_rows]
    (row,) = finish_table(run.job.rules(0), answers).to_pylist()
    assert list(row) == ["t", "t_start", "probability", "x", "y", "z"]
    assert (row["y"]["count"], row["y"]["first"]["t"], row["y"]["last"]["t"]) == (2, 1, 2)


def test_the_plan_names_the_runs() -> None:
    catalog = declared(f"{UNCERTAIN} CREATE QUERY q AS SEQUENCE (x, y+, z) FROM r WHERE {XYZ} WITHIN 20;")
    plan = Planner(catalog).prepare(catalog.query("q")).plan
    assert plan.classification == "sequence of 2 events and 1 run of events; no reading is lost"
    assert "y+ has reader = 'y' (stream r)" in plan.why
    assert plan.cost.startswith("time grows with events and answers with the events of their runs")
    steps = {step.id: step.does for step in plan.steps}
    assert steps["runs"] == "add all events of y between the events around them, at least one each"
    assert steps["weigh"] == "times the probability that its events happened, with at least one of y"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            f"(x, y+, !w, z) FROM r WHERE {XYZ} AND w.reader = 'w' AND w.n > y.n WITHIN 9",
            "w.n > y.n does not say",
        ),
        (f"(x, y+, z, w+, v) FROM r WHERE {XYZ} AND w.reader = 'w' AND w.n = y.n AND v.reader = 'v'", "y.n = w.n does"),
    ],
)
def test_a_run_is_compared_with_single_events_only(query: str, message: str) -> None:
    catalog = declared(f"{CERTAIN} CREATE QUERY q AS SEQUENCE {query};")
    refused = Planner(catalog).prepare(catalog.query("q")).plan.refused
    assert refused is not None
    assert message in refused.message
