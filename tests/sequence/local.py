"""Runs SEQUENCE jobs without a JVM, and returns their answers as rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests import local
from tests.local import make_job
from tests.oracles.events import frozen
from tests.oracles.sequence import matches
from tests.sequence.strategies import DELAYS, Case, bound_case

from anabranch.planning.layouts import layouts_for
from anabranch.sequence.job import SequenceJob
from anabranch.transport.job import JobContext

Answer = dict[str, Any]


class SequenceRun(local.LocalRun):
    """The buckets of one job."""

    job: SequenceJob

    def answers(self, query: int = 0) -> list[Answer]:
        """The answers to a query, in its result columns."""
        return [self._answer(query, row) for row in self.rows_of(query)]

    def _answer(self, query: int, row: dict[str, Any]) -> Answer:
        bound = self.job.spec.analyses[query].query
        events = self.events_of(row)
        answer: Answer = {name: row[name] for name in ("t", "t_start", "probability")}
        for component in bound.components:
            if not component.negative:
                of_stream = events[self.job.spec.stream_number(component.stream.name)]
                answer[component.label] = of_stream.pop(0)
                if component.run:
                    ends = {"first": answer[component.label], "last": of_stream.pop(0)}
                    answer[component.label] = {"count": row["counts"].pop(0), **ends}
        assert not any(events)
        if {"expired", "early"} & bound.emit:
            answer["status"] = row["status"]
        return answer


def job_of(case: Case) -> SequenceJob:
    """The job of a case; its EMPIRICAL delays are read from a file."""
    query = bound_case(case)
    tables = local.relation_tables(case.workbook, case.relations)
    with TemporaryDirectory() as folder:
        (Path(folder) / DELAYS).write_text(case.delays_text())
        return make_job([query], JobContext(layouts_for(query.streams), tables, local.FINGERPRINT, folders=(folder,)))


def run_of(case: Case, batches: Sequence[Any], n_buckets: int = 3) -> SequenceRun:
    """A run over micro-batches until the end of the input."""
    run = SequenceRun(job_of(case), n_buckets)
    run.run(batches)
    assert run.counts.late == 0
    return run


def answers_of(case: Case, batches: Sequence[Any], n_buckets: int = 3) -> dict[Any, float]:
    """The answers of a run over micro-batches, with their probabilities."""
    return probabilities(run_of(case, batches, n_buckets).answers())


def truth_of(case: Case) -> dict[Any, float]:
    """The answers of the oracle, with their probabilities."""
    return probabilities(matches(bound_case(case), case.rows, case.relations))


def probabilities(answers: Sequence[Answer]) -> dict[Any, float]:
    """The probability of each answer; asserts that no answer occurs twice."""
    by_answer = {frozen({**answer, "probability": None}): answer["probability"] for answer in answers}
    assert len(by_answer) == len(answers)
    return by_answer
