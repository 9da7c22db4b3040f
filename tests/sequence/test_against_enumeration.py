"""SEQUENCE compared with full enumeration: the same matches and probabilities for every split and order of input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import TIMES, seconds
from tests.drawn import examples
from tests.sequence.local import SequenceRun, answers_of, job_of, probabilities, run_of, truth_of
from tests.sequence.strategies import BOTH, Case, sequence_cases
from tests.splits import disordered_splits, splits

from anabranch.sequence.matching import Matcher

BUCKETS = st.sampled_from([1, 2, 7])

#: Laws whose tables are small.
SMOOTH_LAWS = ("EXPONENTIAL(2)", "UNIFORM(0, 4)", "EMPIRICAL", "GAMMA(2, 1)", "UNIFORM(1, 3)", "NORMAL(2, 1)")
#: Every clause that determines what is reported and how it is scored.
CLAUSES = {
    "closed": {},
    "posterior": {"scorings": ["POSTERIOR"]},
    "open": {"endings": ["OPEN"], "scorings": ["", "POSTERIOR"]},
    "best": {"emits": ["BEST"], "endings": ["", "OPEN"]},
    "next": {"emits": ["NEXT"], "endings": ["", "", "OPEN"], "scorings": ["", "POSTERIOR"]},
    "next or expired": {"emits": ["NEXT, EXPIRED"]},
    "probabilities": {
        "probabilities": True,
        "emits": ["", "", "BEST", "NEXT"],
        "endings": ["", "", "OPEN"],
        "scorings": ["", "POSTERIOR"],
        "logic": False,
    },
    "both ends open": {"endings": [BOTH], "scorings": ["", "POSTERIOR"], "emits": ["", "BEST", "NEXT"]},
    "expired": {"emits": ["EXPIRED", "BEST, EXPIRED"], "scorings": ["", "POSTERIOR"]},
    "runs": {
        "runs": True,
        "emits": ["", "", "BEST", "NEXT"],
        "endings": ["", "", "OPEN"],
        "scorings": ["", "POSTERIOR"],
    },
    "runs with probabilities": {
        "runs": True,
        "probabilities": True,
        "emits": ["", "", "BEST", "NEXT"],
        "endings": ["", "", "OPEN"],
        "scorings": ["", "POSTERIOR"],
        "logic": False,
    },
    "runs with occurs": {"runs": True, "occurs": True, "most_components": 4, "laws": SMOOTH_LAWS},
    "occurs": {"occurs": True, "most_components": 4, "emits": ["", "BEST", "EXPIRED"], "laws": SMOOTH_LAWS},
}
ANY_CLAUSE = st.sampled_from(sorted(CLAUSES))


ROUNDING = 1e-14


def same(answers: dict[Any, float], truth: dict[Any, float], error: float = 1e-9) -> bool:
    """Whether the answers and their probabilities are equal; a score of 0 may be 1e-15 in a tabulated gap."""
    possible = [{key: p for key, p in found.items() if p > ROUNDING} for found in (answers, truth)]
    return possible[0] == pytest.approx(possible[1], abs=error, rel=error)


#: The largest error of the score of a match by clause: a gap with OCCURS is tabulated less exactly.
ERROR = {"occurs": 2e-7, "runs with occurs": 2e-7}


@examples(40)
@given(sequence_cases(), BUCKETS)
def test_batch_gives_every_match_with_its_probability(case: Case, n_buckets: int) -> None:
    truth = truth_of(case)
    event(f"{'some' if truth else 'no'} answers")
    assert same(answers_of(case, [case.rows], n_buckets), truth)


@examples(50)
@given(st.data(), ANY_CLAUSE, BUCKETS)
def test_every_clause_gives_the_answers_of_the_oracle(data: st.DataObject, clause: str, n_buckets: int) -> None:
    case = data.draw(sequence_cases(**CLAUSES[clause]))
    truth = truth_of(case)
    event(f"{clause}: {'some' if truth else 'no'} answers")
    assert same(answers_of(case, [case.rows], n_buckets), truth, ERROR.get(clause, 1e-9))


@examples(60)
@given(st.data(), st.sampled_from(sorted(clause for clause in CLAUSES if clause.startswith("runs"))))
def test_runs_give_the_answers_of_the_oracle_for_any_split(data: st.DataObject, clause: str) -> None:
    case = data.draw(sequence_cases(windowed=True, **CLAUSES[clause]))
    truth = truth_of(case)
    event(f"{clause}: {'some' if truth else 'no'} answers")
    assert same(answers_of(case, [case.rows], data.draw(BUCKETS)), truth, ERROR.get(clause, 1e-9))
    batches = data.draw(splits(case.rows, clock=seconds))
    assert same(answers_of(case, batches, data.draw(BUCKETS)), truth, ERROR.get(clause, 1e-9))


@examples(20)
@given(sequence_cases(decimals=True), BUCKETS)
def test_times_are_compared_as_decimals(case: Case, n_buckets: int) -> None:
    assert same(answers_of(case, [case.rows], n_buckets), truth_of(case))


@examples(40)
@given(st.data(), ANY_CLAUSE)
def test_any_split_gives_the_answers_of_the_whole(data: st.DataObject, clause: str) -> None:
    case = data.draw(sequence_cases(windowed=True, **CLAUSES[clause]))
    batches = data.draw(splits(case.rows, clock=seconds))
    assert same(answers_of(case, batches, data.draw(BUCKETS)), truth_of(case), ERROR.get(clause, 1e-9))


@examples(30)
@given(st.data(), st.sampled_from([1, 2]), ANY_CLAUSE)
def test_any_arrival_within_the_watermark_gives_the_answers_of_the_whole(
    data: st.DataObject, delay: int, clause: str
) -> None:
    case = data.draw(sequence_cases(windowed=True, watermark=delay, **CLAUSES[clause]))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    assert same(answers_of(case, batches, data.draw(BUCKETS)), truth_of(case), ERROR.get(clause, 1e-9))


@examples(30)
@given(sequence_cases(endings=["", "OPEN"], scorings=["", "POSTERIOR"]))
def test_pruned_and_unpruned_runs_are_identical(case: Case) -> None:
    job = job_of(case)
    pruned, unpruned = SequenceRun(job, 1), SequenceRun(job, 1)
    pruned.step(case.rows, end=True)
    matches = Matcher.matches
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Matcher, "matches", lambda *arguments: matches(*arguments, bounded=False))
        unpruned.step(case.rows, end=True)
    assert probabilities(pruned.answers()) == probabilities(unpruned.answers())
    assert pruned.counts.kept <= unpruned.counts.kept


@examples(20)
@given(sequence_cases(windowed=True, time_types=TIMES[:1], endings=["", "OPEN"], emits=[""]))
def test_no_event_is_kept_beyond_its_window(case: Case) -> None:
    run = SequenceRun(job_of(case), 2)
    run.step(case.rows)
    far = {name: [{**row, "t": row["t"] + 10_000} for row in rows[:1]] for name, rows in case.rows.items()}
    run.step(far)
    run.step({name: [{**row, "t": row["t"] + 10_000} for row in rows] for name, rows in far.items()})
    for state in run.states:
        operator = run.job.operator()
        operator.open(state)
        assert len(operator.kept) <= len(far)


@examples(15)
@given(sequence_cases(windowed=True))
def test_duplicate_rows_are_one_event(case: Case) -> None:
    twice = {name: [*rows, *rows] for name, rows in case.rows.items()}
    run = run_of(case, [twice])
    assert same(probabilities(run.answers()), truth_of(case))
