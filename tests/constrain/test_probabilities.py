"""CONSTRAIN over INDEPENDENT streams: the probabilities of the oracle, which enumerates all worlds."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import Case, seconds
from tests.constrain.local import ConstrainRun, job_of
from tests.constrain.strategies import uncertain_cases
from tests.constrain.test_against_loops import is_possible
from tests.drawn import examples
from tests.local import bound_query, in_context, prepared_query
from tests.oracles.constrain import probabilities
from tests.oracles.events import frozen
from tests.splits import disordered_splits

from anabranch.constrain import sets
from anabranch.constrain.analysis import STRATEGIES
from anabranch.errors import TooLarge

STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER PROBABILITY p MODEL INDEPENDENT WATERMARK 1;"
)


def run_of(case: Case, batches: Sequence[Any], n_buckets: int, strategy: str = "", live: bool = False) -> ConstrainRun:
    run = ConstrainRun(in_context(job_of(case, strategy), live=live), n_buckets)
    run.run(batches)
    return run


def chances_of(run: ConstrainRun) -> dict[Hashable, float]:
    """The probability of each answer, of which there are no two."""
    chances = {frozen(run._answer(0, row)): row["probability"] for row in run.rows_of(0)}
    assert len(chances) == len(run.rows_of(0))
    return chances


def expected(case: Case) -> dict[Hashable, float]:
    """The answers of the oracle with a probability that reaches the threshold."""
    query = bound_query(case.workbook, case.query)
    chances = probabilities(query, case.rows, case.relations)
    return {answer: p for answer, p in chances.items() if p > 1e-12 and p >= query.threshold - 1e-12}


def assert_same(run: ConstrainRun, case: Case) -> None:
    answers, truth = chances_of(run), expected(case)
    event(f"{'some' if truth else 'no'} answers")
    assert answers == pytest.approx(truth, abs=1e-9)


@examples(60)
@given(uncertain_cases(), st.sampled_from([1, 2, 7]), st.sampled_from(["", *STRATEGIES]))
def test_batch_gives_the_probabilities_of_all_worlds(case: Case, n_buckets: int, strategy: str) -> None:
    assume(is_possible(case))
    assert_same(run_of(case, [case.rows], n_buckets, strategy), case)


@examples(60)
@given(uncertain_cases(negated=True, most_variables=3), st.sampled_from([1, 2, 7]))
def test_an_absent_event_has_the_probability_that_it_did_not_happen(case: Case, n_buckets: int) -> None:
    assume(is_possible(case))
    assert_same(run_of(case, [case.rows], n_buckets), case)


@examples(40)
@given(st.data(), st.booleans(), st.booleans())
def test_a_set_is_maximal_in_the_worlds_without_events_that_can_be_added(
    data: st.DataObject, split: bool, negated: bool
) -> None:
    options = {"connected": True, "consistent": True, "watermark": 1} if split else {}
    case = data.draw(uncertain_cases(most_rows=6, growing=True, negated=negated, **options))
    assume(is_possible(case))
    batches = data.draw(disordered_splits(case.rows, 1, clock=seconds)) if split else [case.rows]
    assert_same(run_of(case, batches, data.draw(st.sampled_from([1, 2, 7])), live=split), case)


@examples(50)
@given(st.data(), st.sampled_from([0, 1, 2]), st.booleans(), st.booleans())
def test_any_arrival_gives_the_same_probabilities(data: st.DataObject, delay: int, negated: bool, early: bool) -> None:
    case = data.draw(uncertain_cases(negated=negated, connected=True, consistent=True, watermark=delay))
    assume(is_possible(case))
    if early and not negated:
        case = Case(case.workbook.rstrip().removesuffix(";") + " EMIT EARLY;", case.query, case.rows, case.relations)
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    assert_same(run_of(case, batches, data.draw(st.sampled_from([1, 2, 7])), live=True), case)


def at(id_: str, t: int, kind: str, p: float) -> dict[str, Any]:
    return {"id": id_, "kind": kind, "t": t, "p": p}


def answers(text: str, *rows: dict[str, Any]) -> list[tuple[str, float]]:
    """The keys of each answer, and its probability."""
    case = Case(f"{STREAM} CREATE QUERY q AS CONSTRAIN {text};", "q", {"e": list(rows)})
    run = run_of(case, [case.rows], 3)
    assert chances_of(run) == pytest.approx(expected(case))
    keys = [[row["events_0"], row["probability"]] for row in run.rows_of(0)]
    return sorted(("".join(chosen["id"] for chosen in events), round(p, 9)) for events, p in keys)


A_B = "a, b FROM e WHERE a.kind = 'A' AND b.kind = 'B' AND SPAN(a, b) <= 5"


def test_different_keys_and_times_multiply_and_alternatives_exclude_each_other() -> None:
    rows = [at("x", 0, "A", 0.5), at("x", 0, "B", 0.25), at("x", 1, "B", 0.5), at("y", 0, "B", 0.8)]
    assert answers(A_B, *rows) == [("xx", 0.25), ("xy", 0.4)]


def test_a_threshold_keeps_answers_that_reach_it() -> None:
    rows = [at("x", 0, "A", 0.7), at("y", 0, "B", 0.8), at("z", 0, "B", 0.5), at("w", 0, "B", 0.1)]
    assert answers(f"{A_B} THRESHOLD 0.56", *rows) == [("xy", 0.56)]


def test_missing_events_are_alternatives_or_independent() -> None:
    rows = [at("x", 3, "A", 0.5), at("x", 3, "C", 0.5), at("y", 3, "C", 0.25), at("y", 3, "D", 0.5)]
    rows += [at("z", 4, "C", 0.2)]
    text = "a, NOT c FROM e WHERE a.kind = 'A' AND c.kind IN ('C', 'D') AND SPAN(a, c) <= 5"
    # The C of x did not happen if its A did. Neither C nor D of y: 0.25.
    assert answers(text, *rows) == [("x", 0.5 * 0.25 * 0.8)]
    certain = [at("x", 3, "A", 0.5), at("y", 3, "C", 1.0)]
    assert answers(text, *certain) == []


def test_events_that_cannot_be_in_an_answer_are_not_sent() -> None:
    rows = [at("x", 0, "A", 0.9), at("y", 0, "B", 0.3), at("z", 0, "B", 0.0)]
    case = Case(f"{STREAM} CREATE QUERY q AS CONSTRAIN {A_B} THRESHOLD 0.5 STRATEGY LOOSE;", "q", {"e": rows})
    run = ConstrainRun(job_of(case), 1)
    run.step(case.rows)
    run.step({"e": [at("w", 3, "A", 0.9)]})
    operator = run.job.operator()
    operator.open(run.states[0])
    assert [row["id"] for row in operator.kept.tables[0].table.to_pylist()] == ["x"]
    assert run.counts.read == 4


def test_the_plan_says_how_probabilities_are_combined() -> None:
    plan = prepared_query(f"{STREAM} CREATE QUERY q AS CONSTRAIN {A_B};", "q").plan
    (weigh,) = [step.does for step in plan.steps if step.id == "weigh"]
    assert re.search("the product over different keys and times", weigh)
    assert plan.method == "exact"


SETS = f"{STREAM} CREATE QUERY q AS CONSTRAIN AT LEAST 2 v FROM e WHERE v.id <> v.id AND SPAN(v, v) <= 3{{}};"


def test_every_part_of_a_set_is_maximal_in_some_world() -> None:
    rows = [at("a", 1, "A", 0.5), at("b", 2, "A", 0.8), at("c", 3, "A", 0.25)]
    run = run_of(Case(SETS.format(""), "q", {"e": rows}), [{"e": rows}], 3)
    chances = {"".join(event["id"] for event in row["events_0"]): row["probability"] for row in run.rows_of(0)}
    both = {"ab": 0.5 * 0.8 * 0.75, "ac": 0.5 * 0.25 * 0.2, "bc": 0.8 * 0.25 * 0.5, "abc": 0.5 * 0.8 * 0.25}
    assert chances == pytest.approx(both)
    run = run_of(Case(SETS.format(" THRESHOLD 0.1"), "q", {"e": rows}), [{"e": rows}], 3)
    chances = {"".join(event["id"] for event in row["events_0"]): row["probability"] for row in run.rows_of(0)}
    assert chances == pytest.approx({name: p for name, p in both.items() if p >= 0.1})


def test_every_two_events_of_a_set_agree() -> None:
    """Both events of b agree with a, but not with each other."""
    rows = [at("a", 1, "A", 0.5), at("b", 2, "A", 0.5), at("b", 3, "A", 0.5)]
    run = run_of(Case(SETS.format(""), "q", {"e": rows}), [{"e": rows}], 3)
    chances = {tuple(event["t"] for event in row["events_0"]): row["probability"] for row in run.rows_of(0)}
    assert chances == pytest.approx({(1, 2): 0.25, (1, 3): 0.25})


def test_an_improbable_event_makes_a_set_less_probable() -> None:
    """It is in no answer, but a set without it is not maximal if it happened."""
    rows = [at("a", 1, "A", 1.0), at("b", 2, "A", 1.0), at("c", 3, "A", 0.25)]
    run = run_of(Case(SETS.format(" THRESHOLD 0.5"), "q", {"e": rows}), [{"e": rows}], 3)
    assert [row["probability"] for row in run.rows_of(0)] == pytest.approx([0.75])


def test_too_many_sets_with_probabilities_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "MOST_STEPS", 1000)
    rows = [at(id_, 1, "A", 0.5) for id_ in "abcdefghijklm"]
    with pytest.raises(TooLarge, match=r"q: v: an event with 12 others begins too many sets"):
        run_of(Case(SETS.format(""), "q", {"e": rows}), [{"e": rows}], 1)
    run_of(Case(SETS.format(" THRESHOLD 0.2"), "q", {"e": rows}), [{"e": rows}], 1)


def test_the_plan_of_sets_with_probabilities() -> None:
    steps = {step.id: step.does for step in prepared_query(SETS.format(""), "q").plan.steps}
    assert (
        steps["grow"]
        == "from the first event of v to all sets, each of which is maximal in some world, that begin with it"
    )
    assert "no event happened which can be added" in steps["weigh"]
