"""PATTERN without a JVM: the answers of the operators, combined as Spark combines them."""

from __future__ import annotations

import math

from tests import local
from tests.local import Rows

from anabranch.pattern.job import PatternJob


class LocalRun(local.LocalRun):
    """The buckets of one PATTERN query."""

    @property
    def complete(self) -> bool:
        """Whether the operators' answers are the query's own."""
        return "probability" in self.job.answer_schema.names

    def answers(self) -> dict[tuple, float]:
        """Probability by (t, grouping values...), as `PatternJob.finish` combines it."""
        combined: dict[tuple, float] = {}
        for outcome in self.outcomes:
            for row in outcome.answers.to_pylist():
                place = len(self.job.spec.analysis.group_by) + 1
                key, number = list(row.values())[:place], list(row.values())[place]
                if self.complete:
                    assert tuple(key) not in combined, "an answer was given twice"
                    combined[tuple(key)] = number
                else:
                    combined[tuple(key)] = combined.get(tuple(key), 0.0) + number
        if not self.complete:
            combined = {key: -math.expm1(number) for key, number in combined.items()}
        threshold = self.job.spec.analysis.query.threshold
        return {key: p for key, p in combined.items() if p > 0 and p >= threshold}


def run_whole(job: PatternJob, rows: Rows, n_buckets: int = 3) -> dict[tuple, float]:
    """The answers of a batch run."""
    run = LocalRun(job, n_buckets)
    run.step(rows, end=True)
    return run.answers()
