"""SEQUENCE without a JVM: the buckets of one or several questions, and their answers as rows."""

from __future__ import annotations

from typing import Any

from tests import local

from anabranch.sequence.operator import SequenceJob

Answer = dict[str, Any]


class SequenceRun(local.LocalRun):
    """The buckets of one job."""

    job: SequenceJob

    def answers(self, question: int = 0) -> list[Answer]:
        """The answers to a question, with the columns that it names."""
        rows = [row for outcome in self.outcomes for row in outcome.answers.to_pylist()]
        return [self._answer(question, row) for row in rows if row["question"] == question]

    def _answer(self, question: int, row: dict[str, Any]) -> Answer:
        query = self.job.analyses[question].query
        events = [list(row[f"events_{stream}"]) for stream in range(len(self.job.layouts))]
        answer: Answer = {name: row[name] for name in ("t", "t_start", "probability")}
        for component in query.components:
            if not component.negative:
                answer[component.label] = events[self.job.stream_number(component.stream.name)].pop(0)
        assert not any(events)
        if "expired" in query.emit:
            answer["status"] = row["status"]
        return answer
