"""MONITOR with PER: the rows that its validated answers define, for every split into micro-batches."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import seconds
from tests.drawn import examples
from tests.local import local_job
from tests.monitor.strategies import monitor_cases
from tests.rows import CLAUSES, assert_rows, with_clause, without_threshold
from tests.splits import splits


@examples(20)
@given(st.data(), st.sampled_from(CLAUSES), st.sampled_from([1, 3]))
def test_rows_are_those_that_the_answers_define(data: st.DataObject, clause: str, n_buckets: int) -> None:
    case = data.draw(monitor_cases())
    job = local_job(with_clause(case.workbook, clause), case.query, case.relations, live=True)
    plain = local_job(without_threshold(case.workbook), case.query, case.relations)
    batches = data.draw(splits(case.rows, clock=seconds))
    count = assert_rows(job, plain, case.rows, batches, n_buckets)
    event(f"{clause}: {'some' if count else 'no'} rows")
