"""PATTERN without a JVM: the answers of the operators, combined in the same way as in Spark."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow.compute as pc
from tests import local
from tests.cases import Case
from tests.local import Rows

from anabranch.pattern.job import PatternJob


class LocalRun(local.LocalRun):
    """The buckets of one PATTERN query."""

    @property
    def complete(self) -> bool:
        """Whether the answers of the operators are answers of the query."""
        return "probability" in self.job.answer_schema.names

    def answers(self) -> dict[tuple, float]:
        """Probability by (t, grouping values...), combined as in `PatternJob.finishing`."""
        combined: dict[tuple, float] = {}
        n_head = len(self.job.spec.analysis.group_by) + 1
        for outcome in self.outcomes:
            for row in outcome.answers.to_pylist():
                key, number = list(row.values())[:n_head], list(row.values())[n_head]
                if self.complete:
                    assert tuple(key) not in combined, "there are two answers for one key"
                    combined[tuple(key)] = number
                else:
                    combined[tuple(key)] = combined.get(tuple(key), 0.0) + number
        if not self.complete:
            combined = {key: -math.expm1(number) for key, number in combined.items()}
        least = self.job.spec.analysis.query.least_probability
        return {key: p for key, p in combined.items() if p > 0 and p >= least}

    def by_status(self, status: str) -> list[dict[tuple, float]]:
        """The answers with a status (EMIT EARLY) of each step so far."""
        outcomes, steps = self.outcomes, []
        for start in range(0, len(outcomes), self.n_buckets):
            parts = outcomes[start : start + self.n_buckets]
            tables = [outcome.answers.filter(pc.equal(outcome.answers["status"], status)) for outcome in parts]
            self.outcomes = [replace(outcome, answers=table) for outcome, table in zip(parts, tables, strict=True)]
            steps.append(self.answers())
        self.outcomes = outcomes
        return steps


def run_whole(job: PatternJob, rows: Rows, n_buckets: int = 3) -> dict[tuple, float]:
    """The answers of a run over all rows in one batch."""
    run = LocalRun(job, n_buckets)
    run.step(rows, end=True)
    return run.answers()


def job_of(case: Case, live: bool = False) -> PatternJob:
    """The job of the query of a case."""
    return local.local_job(case.workbook, case.query, case.relations, live)


def assert_same(got: dict[tuple, float], want: dict[tuple, float], threshold: float) -> None:
    """Check that answers are equal, except where the last bit decides whether they reach the threshold."""
    for key in got.keys() | want.keys():
        if abs(got.get(key, want.get(key)) - threshold) <= 1e-9 and threshold > 0:
            continue
        assert abs(got.get(key, 0.0) - want.get(key, 0.0)) <= 1e-9, (key, got.get(key), want.get(key))
