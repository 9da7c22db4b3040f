"""Runs CONSTRAIN jobs without a JVM, and returns their answers as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests import local
from tests.cases import Case
from tests.oracles.constrain import Solution, solutions
from tests.oracles.events import frozen

from anabranch.constrain.job import ConstrainJob
from anabranch.constrain.operator import ConstrainOperator


class ConstrainRun(local.LocalRun):
    """The buckets of one job."""

    job: ConstrainJob

    def answers(self, query: int = 0) -> list[Solution]:
        """The answers to a query, in its result columns."""
        return [self._answer(query, row) for row in self.rows_of(query)]

    def _answer(self, query: int, row: dict[str, Any]) -> Solution:
        events = self.events_of(row)
        answer: Solution = {"t": row["t"]}
        for variable in sorted(self.job.spec.analyses[query].query.present, key=lambda variable: variable.grows):
            remaining = events[self.job.spec.stream_number(variable.stream.name)]
            count = len(remaining) if variable.grows else variable.count
            chosen, remaining[:count] = tuple(remaining[:count]), []
            answer[variable.label] = chosen if variable.is_set else chosen[0]
        assert not any(events)
        return answer


def job_of(case: Case, strategy: str = "") -> ConstrainJob:
    """The job of a case, with a STRATEGY if one is given."""
    workbook = case.workbook.rstrip().removesuffix(";") + f" STRATEGY {strategy};" if strategy else case.workbook
    return local.local_job(workbook, case.query, case.relations)


def answers_of(case: Case, batches: Sequence[Any], n_buckets: int = 3, strategy: str = "") -> Counter:
    """The answers of a run over micro-batches, with their counts."""
    run = ConstrainRun(job_of(case, strategy), n_buckets)
    run.run(batches)
    assert run.counts.late == 0
    return Counter(map(frozen, run.answers()))


def truth_of(case: Case) -> Counter:
    """The answers of the oracle, with their counts."""
    answers = solutions(local.bound_query(case.workbook, case.query), case.rows, case.relations)
    return Counter(map(frozen, answers))


def operators_long_after(case: Case, job: ConstrainJob) -> Iterator[ConstrainOperator]:
    """The operators of two buckets after the rows of a case with integer times, and two of its rows much later."""
    run = ConstrainRun(job, 2)
    run.step(case.rows)
    far = {name: [{**row, "t": row["t"] + 10_000} for row in rows[:1]] for name, rows in case.rows.items()}
    run.step(far)
    run.step({name: [{**row, "t": row["t"] + 10_000} for row in rows] for name, rows in far.items()}, end=True)
    for state in run.states:
        operator = job.operator()
        operator.open(state)
        yield operator
