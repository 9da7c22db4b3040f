"""CONSTRAIN without a JVM: the buckets of one or several queries, and their answers as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests import local
from tests.cases import Case
from tests.oracles.constrain import Solution, solutions
from tests.oracles.events import frozen

from anabranch.constrain.job import ConstrainJob


class ConstrainRun(local.LocalRun):
    """The buckets of one job."""

    job: ConstrainJob

    def answers(self, query: int = 0) -> list[Solution]:
        """The answers to a query, with the columns that it names."""
        return [self._answer(query, row) for row in self.rows_of(query)]

    def _answer(self, query: int, row: dict[str, Any]) -> Solution:
        events = self.events_of(row)
        answer: Solution = {"t": row["t"]}
        for variable in self.job.spec.analyses[query].query.variables:
            own = events[self.job.spec.stream_number(variable.stream.name)]
            chosen, own[: variable.count] = tuple(own[: variable.count]), []
            answer[variable.label] = chosen if variable.count > 1 else chosen[0]
        assert not any(events)
        return answer


def job_of(case: Case, strategy: str = "") -> ConstrainJob:
    """The job of a case; with a strategy, where one is named."""
    workbook = case.workbook.rstrip().removesuffix(";") + f" STRATEGY {strategy};" if strategy else case.workbook
    return local.local_job(workbook, case.query, case.relations)


def answers_of(case: Case, batches: Sequence[Any], n_buckets: int = 3, strategy: str = "") -> Counter:
    """What a run over micro-batches answers."""
    run = ConstrainRun(job_of(case, strategy), n_buckets)
    run.run(batches)
    assert run.counts.late == 0
    return Counter(map(frozen, run.answers()))


def truth_of(case: Case) -> Counter:
    """What nested loops answer."""
    found = solutions(local.bound_query(case.workbook, case.query), case.rows, case.relations)
    return Counter(map(frozen, found))
