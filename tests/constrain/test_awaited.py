"""NOT and AT LEAST, for which answers wait: the answers of the oracle, in batch and for every split."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import Case, seconds
from tests.constrain.local import answers_of, job_of, operators_long_after, truth_of
from tests.constrain.strategies import constrain_cases
from tests.constrain.test_against_loops import is_possible
from tests.drawn import examples
from tests.local import in_context
from tests.rows import CLAUSES, assert_rows, with_clause
from tests.splits import disordered_splits, splits

from anabranch.constrain.analysis import STRATEGIES


@st.composite
def awaited_cases(draw: Any, **options: Any) -> Case:
    """A query with NOT, with AT LEAST, or with both, whose bounds do not contradict each other."""
    negated, growing = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    case: Case = draw(constrain_cases(negated=negated, growing=growing, **options))
    assume(is_possible(case))
    return case


@examples(100)
@given(awaited_cases(), st.sampled_from([1, 2, 7]), st.sampled_from(["", *STRATEGIES]))
def test_batch_gives_the_answers_of_the_oracle(case: Case, n_buckets: int, strategy: str) -> None:
    truth = truth_of(case)
    event(f"{'some' if truth else 'no'} answers")
    assert answers_of(case, [case.rows], n_buckets, strategy) == truth


@examples(40)
@given(awaited_cases(decimals=True, spaces=["plane"], tables=False), st.sampled_from([1, 3]))
def test_times_are_compared_as_decimals(case: Case, n_buckets: int) -> None:
    assert answers_of(case, [case.rows], n_buckets) == truth_of(case)


@examples(100)
@given(st.data(), st.sampled_from([0, 1, 2]), st.sampled_from(STRATEGIES))
def test_any_arrival_gives_the_answers_of_the_whole(data: st.DataObject, delay: int, strategy: str) -> None:
    case = data.draw(awaited_cases(connected=True, consistent=True, watermark=delay))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    assert answers_of(case, batches, data.draw(st.sampled_from([1, 2, 7])), strategy) == truth_of(case)


@examples(40)
@given(st.data(), awaited_cases(connected=True, consistent=True), st.sampled_from(CLAUSES), st.sampled_from([1, 7]))
def test_rows_of_several_answers_wait_for_them(data: st.DataObject, case: Case, clause: str, n_buckets: int) -> None:
    job = job_of(replace(case, workbook=with_clause(case.workbook, clause)))
    assert_rows(job, job_of(case), case.rows, data.draw(splits(case.rows, clock=seconds)), n_buckets)


@examples(40)
@given(awaited_cases(connected=True, consistent=True, time_types=["INTEGER"]))
def test_no_event_is_kept_that_cannot_be_needed(case: Case) -> None:
    for operator in operators_long_after(case, in_context(job_of(case), live=True)):
        assert len(operator.kept) <= 2
        assert not len(operator._waiting)
