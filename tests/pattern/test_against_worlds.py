"""PATTERN compared with the enumeration of all worlds: random queries, streams, splits and arrival orders."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.drawn import examples
from tests.local import Rows, local_job
from tests.oracles.pattern import at_least, bind_query, probabilities
from tests.pattern.local import LocalRun, assert_same, job_of, run_whole
from tests.pattern.strategies import CLASSES, pattern_cases
from tests.splits import disordered_splits, splits

from anabranch.pattern.job import PatternJob

DELAY = 2


def expected(case: Case) -> dict[tuple, float]:
    bound = bind_query(case.workbook, case.query)
    answers = at_least(probabilities(bound, case.rows, _as_sets(case)), bound.threshold)
    return {key if isinstance(key, tuple) else (key,): p for key, p in answers.items()}


def _as_sets(case: Case) -> dict[str, set[tuple]]:
    return {name: set(rows) for name, rows in case.relations.items()}


def assert_worlds(case: Case, n_buckets: int = 3) -> None:
    """Check that a run over an archive gives the answers of the enumeration."""
    job = job_of(case)
    assert_same(run_whole(job, case.rows, n_buckets), expected(case), job.spec.analysis.query.threshold)


def assert_worlds_of_parts(case: Case, parts: Sequence[Rows]) -> None:
    """Check that micro-batches give the answers of the enumeration."""
    job = job_of(case, live=True)
    assert_same(answers_of_parts(job, parts), expected(case), job.spec.analysis.query.threshold)


def answers_of_parts(job: PatternJob, parts: Sequence[Rows]) -> dict[tuple, float]:
    run = LocalRun(job, n_buckets=2)
    run.run(parts)
    assert run.counts.late == run.counts.quarantined == 0
    return run.answers()


@pytest.mark.usefixtures("nothing_is_too_large")
@given(pattern_cases(classes=CLASSES), st.integers(1, 4))
def test_batch_equals_worlds(case: Case, n_buckets: int) -> None:
    assert_worlds(case, n_buckets)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(60)
@given(st.data())
def test_any_split_into_micro_batches_equals_worlds(data: st.DataObject) -> None:
    case = data.draw(pattern_cases(classes=CLASSES))
    assert_worlds_of_parts(case, data.draw(splits(case.rows)))


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(40)
@given(st.data())
def test_any_order_within_the_watermark_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(pattern_cases(classes=CLASSES, watermark=DELAY))
    job = job_of(case, live=True)
    answers = answers_of_parts(job, data.draw(disordered_splits(case.rows, DELAY)))
    assert_same(answers, run_whole(job, case.rows), job.spec.analysis.query.threshold)


@given(pattern_cases(classes=CLASSES))
def test_probabilities_are_probabilities(case: Case) -> None:
    assert all(0.0 < p <= 1.0 for p in run_whole(job_of(case), case.rows).values())


def test_a_key_that_is_an_integer_here_and_a_double_there_is_one_key() -> None:
    workbook = """
    CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER;
    CREATE STREAM s KEY (k DOUBLE) VALUE (v STRING) TIME t INTEGER;
    CREATE QUERY q AS PATTERN r(p, 'a') THEN s(p, 'b') GROUP BY p;
    """
    rows = {
        "r": [{"k": key, "v": "a", "t": 1} for key in range(20)],
        "s": [{"k": float(key), "v": "b", "t": 2} for key in range(20)],
    }
    assert run_whole(local_job(workbook, "q"), rows, n_buckets=4) == {(2, float(key)): 1.0 for key in range(20)}
