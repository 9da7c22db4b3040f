"""SEQUENCE with PER: the rows that its answers define, for every split into micro-batches."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import seconds
from tests.drawn import examples
from tests.rows import CLAUSES, assert_rows, with_clause, without_threshold
from tests.sequence.local import job_of
from tests.sequence.strategies import sequence_cases
from tests.sequence.test_against_enumeration import ANY_CLAUSE
from tests.sequence.test_against_enumeration import CLAUSES as FEATURES
from tests.splits import splits


@examples(20)
@given(st.data(), ANY_CLAUSE, st.sampled_from(CLAUSES), st.sampled_from([1, 7]))
def test_rows_are_those_that_the_answers_define(data: st.DataObject, feature: str, clause: str, n_buckets: int) -> None:
    case = data.draw(sequence_cases(windowed=True, **FEATURES[feature]))
    job = job_of(replace(case, workbook=with_clause(case.workbook, clause)))
    plain = job_of(replace(case, workbook=without_threshold(case.workbook)))
    batches = data.draw(splits(case.rows, clock=seconds))
    count = assert_rows(job, plain, case.rows, batches, n_buckets)
    event(f"{clause}: {'some' if count else 'no'} rows")
