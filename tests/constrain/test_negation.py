"""NOT in CONSTRAIN: when answers are given, and what bounds and routing make of an absent event."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.constrain.local import ConstrainRun, answers_of, truth_of
from tests.constrain.simple import PAIR, assert_same_as_alone, at, query, rows_of_events
from tests.constrain.test_early import by_step
from tests.drawn import examples
from tests.local import bound_query, local_job, prepared_query

from anabranch.constrain.analysis import analyse

ALARM = "a, b, NOT c FROM e WHERE a.kind = 'A' AND b.kind = 'B' AND c.kind = 'C' AND b.t - a.t IN [0, 3]"


def test_an_answer_waits_until_no_event_can_make_it_false() -> None:
    run = ConstrainRun(local_job(query(f"{ALARM} AND c.t - b.t IN [1, 5]"), "q", live=True), 2)
    steps = [[at("a", 1, "A"), at("b", 2, "B")], [at("z", 8, "Z")], [at("z", 9, "Z")], [at("z", 10, "Z")]]
    for rows in steps:
        run.step({"e": rows})
    # c can come at 7; the watermark is 2 behind, and must be past it.
    assert [sum(step.values()) for step in by_step(run)] == [0, 0, 0, 1]


@pytest.mark.parametrize(("t", "count"), [(2, 1), (3, 0), (7, 0), (8, 1)])
def test_bounds_are_inclusive(t: int, count: int) -> None:
    rows = [at("a", 1, "A"), at("b", 2, "B"), at("c", t, "C")]
    job = local_job(query(f"{ALARM} AND c.t - b.t IN [1, 5]"), "q", live=True)
    for batches in ([rows], [[row] for row in rows]):
        run = ConstrainRun(job, 7)
        run.run([{"e": batch} for batch in batches])
        assert len(run.answers()) == count


def test_bounds_of_an_absent_event_imply_nothing_about_the_others() -> None:
    analysis = analyse(bound_query(query("a, b, NOT c FROM e WHERE SPAN(a, c) <= 1 AND SPAN(c, b) <= 1"), "q"))
    assert analysis.unbounded() == ("a", "b")
    rows = [at("a", 0, "A"), at("b", 500, "B")]
    case = Case(query("a, b, NOT c FROM e WHERE a.id < b.id AND SPAN(a, c) <= 1 AND SPAN(c, b) <= 1"), "q", {"e": rows})
    assert answers_of(case, [case.rows], 7) == truth_of(case)
    assert truth_of(case).total() == 1


def test_equal_columns_of_an_absent_event_do_not_route_the_others() -> None:
    text = "a, b, NOT c FROM e WHERE a.t < b.t AND SPAN(a, b) <= 9 AND c.id = a.id AND c.id = b.id AND SPAN(a, c) <= 9"
    rows = [at(id_, t, "A") for id_, t in zip("abcdab", range(6), strict=True)]
    case = Case(query(text), "q", {"e": rows})
    assert analyse(bound_query(case.workbook, "q")).equal_columns == (((), (), ()), ())
    assert answers_of(case, [case.rows], 7) == truth_of(case)


def test_an_event_without_a_location_has_none_near_it() -> None:
    rows = [at("a", 0, "A", None), at("b", 0, "A"), at("c", 1, "C", 1.0)]
    text = "a, NOT c FROM e WHERE a.kind = 'A' AND c.kind = 'C' AND DISTANCE(a, c) <= 2 AND SPAN(a, c) <= 2"
    case = Case(query(text), "q", {"e": rows})
    for n_buckets in (1, 7):
        assert answers_of(case, [case.rows], n_buckets) == truth_of(case)
    assert truth_of(case).total() == 1


TEXTS = [
    PAIR,
    f"{ALARM} AND c.t - a.t IN [-2, 6] AND DISTANCE(a, c) <= 1 AND DISTANCE(a, b) <= 2",
    "v*2, NOT u FROM e WHERE v.kind = 'B' AND SPAN(v, v) <= 2 AND v.t - u.t IN [0, 4] AND u.id = v.id AND v.id = v.id",
]


@examples(25)
@given(st.data(), rows_of_events(25), st.sampled_from(["", " EMIT EARLY"]))
def test_queries_in_one_pass_give_the_same_answers_as_alone(data: st.DataObject, rows: list, early: str) -> None:
    assert_same_as_alone(data, rows, TEXTS, early)


def test_the_plan_says_how_long_an_answer_waits() -> None:
    plan = prepared_query(query(f"{ALARM} AND c.t - b.t IN [1, 5] AND (c.x > a.x OR c.x > b.x)"), "q").plan
    steps = {step.id: step.does for step in plan.steps}
    assert plan.classification == "configuration of 2 events, and no c with them"
    assert "NOT c has kind = 'C' (stream e)" in plan.why
    assert steps["filter"] == "(c.x > a.x OR c.x > b.x): tested on complete configurations with c"
    assert steps["exclude"] == "configurations to which an event can be added as c"
    assert steps["wait"].endswith("passed every event that can be added, at most 8 after its latest event")
    assert [name for name, _ in plan.graph.nodes] == ["a", "b", "NOT c"]
    earlier = prepared_query(query(f"{ALARM} AND a.t - c.t IN [0, 5]"), "q").plan
    assert "wait" not in {step.id for step in earlier.steps}
