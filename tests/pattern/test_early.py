"""EMIT EARLY: what is known about incomplete instants is provisional; final answers are those without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Rows
from tests.drawn import examples
from tests.local import local_job, prepared_query
from tests.oracles import pattern_combination
from tests.oracles.pattern import at_least, bind_query, probabilities
from tests.oracles.pattern_early import provisional_answers
from tests.pattern.local import LocalRun, assert_same, job_of
from tests.pattern.strategies import CLASSES, combination_cases, pattern_cases
from tests.pattern.test_against_worlds import expected
from tests.splits import disordered_splits

from anabranch.plan import Step

Answers = dict[tuple, float]


def early(case: Case) -> Case:
    """The case with EMIT EARLY."""
    return replace(case, workbook=case.workbook.rstrip().removesuffix(";") + " EMIT EARLY;")


def oracle(case: Case, rows: Rows) -> dict[Any, float]:
    """The answers over some rows."""
    bound, relations = bind_query(case.workbook, case.query), {name: set(r) for name, r in case.relations.items()}
    is_combined = hasattr(bound, "operands")
    found = (
        pattern_combination.ask(case.workbook, case.query, rows, relations)
        if is_combined
        else probabilities(bound, rows, relations)
    )
    return at_least(found, bound.threshold)


def assert_early(case: Case, batches: Sequence[Rows], delay: int, n_buckets: int) -> None:
    """Check the provisional answers of each micro-batch, and the final ones of all."""
    case = early(case)
    run = LocalRun(job_of(case, live=True), n_buckets)
    run.run(batches)
    assert run.counts.late == run.counts.quarantined == 0
    threshold, streams = run.job.spec.analysis.query.threshold, [layout.name for layout in run.job.layouts]
    *steps, end = run.by_status("provisional")
    assert end == {}
    for number, step in enumerate(steps, start=1):
        want = provisional_answers(lambda rows: oracle(case, rows), streams, batches[:number], delay)
        event(f"{'some' if want else 'no'} provisional answers")
        assert_same(step, want, threshold)
    final: Answers = {}
    for step in run.by_status("final"):
        assert not step.keys() & final.keys(), "a final answer is given once"
        final |= step
    found = oracle(case, case.rows)
    assert_same(final, {key if isinstance(key, tuple) else (key,): p for key, p in found.items()}, threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(50)
@given(st.data(), st.sampled_from([2, 1, 30, 0]), st.booleans())
def test_incomplete_instants_have_the_probability_of_the_rows_so_far(
    data: st.DataObject, delay: int, any_group: bool
) -> None:
    case = data.draw(pattern_cases(classes=CLASSES, watermark=delay, any_group=any_group, most_worlds=200))
    batches = data.draw(disordered_splits(case.rows, delay))
    assert_early(case, batches, delay, data.draw(st.sampled_from([1, 2, 5])))


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(25)
@given(st.data(), st.sampled_from([2, 30]))
def test_combinations_give_provisional_answers(data: st.DataObject, delay: int) -> None:
    case = data.draw(combination_cases(watermark=delay, most_worlds=200))
    assert_early(case, data.draw(disordered_splits(case.rows, delay)), delay, data.draw(st.sampled_from([1, 3])))


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(20)
@given(pattern_cases(classes=CLASSES))
def test_a_batch_run_has_final_answers_only(case: Case) -> None:
    run = LocalRun(job_of(early(case)))
    run.step(case.rows, end=True)
    assert run.by_status("provisional") == [{}]
    assert_same(run.by_status("final")[0], expected(case), run.job.spec.analysis.query.threshold)


SAMPLED = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT WATERMARK 3;
CREATE QUERY q AS PATTERN at(x, 'hall') THEN at(y, 'lab') METHOD SAMPLING EMIT EARLY;
"""


def test_a_provisional_answer_is_sampled_in_the_worlds_of_the_final_one() -> None:
    run = LocalRun(local_job(SAMPLED, "q", live=True), 1)
    run.step({"at": [{"person": "ann", "place": "hall", "t": 1, "p": 0.5}]})
    run.step({"at": [{"person": "bob", "place": "lab", "t": 2, "p": 0.5}]})
    run.step({}, end=True)
    (_, provisional, _), (*_, final) = run.by_status("provisional"), run.by_status("final")
    assert list(provisional) == [(2,)]
    assert provisional == final


def test_explain_says_what_is_provisional_and_what_it_costs() -> None:
    plan = prepared_query(SAMPLED, "q").plan
    known = "on a stream, also what is known about instants that are not complete, as provisional"
    assert plan.streams == "yes"
    assert plan.steps[-1] == Step("emit", known)
    assert "in each micro-batch, the state is copied" in plan.cost
