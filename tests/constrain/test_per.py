"""CONSTRAIN with PER: the rows that its answers define, for every split into micro-batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import seconds
from tests.constrain.local import job_of
from tests.constrain.strategies import constrain_cases
from tests.constrain.test_against_loops import is_possible
from tests.drawn import examples
from tests.local import local_job
from tests.rows import CLAUSES, RowsRun, assert_rows, with_clause
from tests.splits import splits


@examples(20)
@given(st.data(), st.sampled_from(CLAUSES), st.sampled_from([1, 7]))
def test_rows_are_those_that_the_answers_define(data: st.DataObject, clause: str, n_buckets: int) -> None:
    case = data.draw(constrain_cases(connected=True, consistent=True))
    assume(is_possible(case))
    job = job_of(replace(case, workbook=with_clause(case.workbook, clause)))
    batches = data.draw(splits(case.rows, clock=seconds))
    count = assert_rows(job, job_of(case), case.rows, batches, n_buckets)
    event(f"{clause}: {'some' if count else 'no'} rows")


SHIPS = "CREATE STREAM ship KEY (id STRING) TIME t INTEGER SPACE (x, y);"


def test_interchangeable_events_are_one_group_in_any_order() -> None:
    query = "CREATE QUERY q AS CONSTRAIN v*2 FROM ship WHERE DISTANCE(v, v) <= 1 AND SPAN(v, v) <= 0 AND v.id <> v.id"
    rows = [{"id": key, "t": t, "x": float(t), "y": 0.0} for t in range(3) for key in ("a", "b")[:: 1 if t % 2 else -1]]
    run = RowsRun(local_job(f"{SHIPS}{query} PER KEYS;", "q"))
    run.run([{"ship": rows}])
    (row,) = run.rows
    assert row == {
        "t_from": 0, "t_to": 2, "v": [{"id": "a"}, {"id": "b"}], "count": 3, "probability": 1.0, "expected": 3.0,
        "status": "final",
    }  # fmt: skip


def test_answers_at_consecutive_instants_of_the_streams_are_one_episode() -> None:
    """The instants are those of all rows: at 5 the ships are apart, and at 7 another ship was seen."""
    query = "CREATE QUERY q AS CONSTRAIN v, w FROM ship WHERE DISTANCE(v, w) <= 1 AND v.t = w.t AND v.id < w.id"
    near = [0, 3, 6, 8]
    rows = [{"id": key, "t": t, "x": 0.0, "y": 0.0} for t in near for key in "ab"]
    rows += [{"id": "a", "t": 5, "x": 9.0, "y": 0.0}, {"id": "c", "t": 7, "x": -9.0, "y": 0.0}]
    rows = sorted(rows, key=lambda row: row["t"])
    for cuts in ([], [3, 6], [1, 4, 5, 8]):
        run = RowsRun(local_job(f"{SHIPS}{query} PER EPISODE;", "q"))
        run.run([{"ship": rows[start:end]} for start, end in pairwise([0, *cuts, len(rows)])])
        given_rows = sorted((row["t_from"], row["t_to"], row["count"]) for row in run.rows)
        assert given_rows == [(0, 3, 2), (6, 6, 1), (8, 8, 1)]
