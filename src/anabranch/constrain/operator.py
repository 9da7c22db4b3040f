"""One bucket of CONSTRAIN queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from anabranch.constrain.analysis import LOOSE, NOINDEX
from anabranch.constrain.events import numbers_of_events, role_kinds
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.solutions import Answers
from anabranch.events.batch import Batch
from anabranch.events.operator import EventOperator
from anabranch.transport.operator import Counts

if TYPE_CHECKING:
    from anabranch.constrain.job import ConstrainJob


class ConstrainOperator(EventOperator):
    """One bucket of CONSTRAIN queries."""

    def __init__(self, job: ConstrainJob) -> None:
        self._job = job
        super().__init__(job, role_kinds(job.layouts))

    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """Every solution whose last event is one of the new ones."""
        job = self._job
        answers = Answers(job, batch)
        events = numbers_of_events(batch, job.lowered.columns)
        strategy = job.strategy
        run = Run(
            job.lowered.graph, events, strategy != NOINDEX, strategy != LOOSE,
            len(self.kept), self.kept.roles["expires"], self.kept.roles["met"],
        )  # fmt: skip
        for query, found in run.solutions():
            answers.add(query, found)
        counts.kept = run.peak()
        self.kept = batch.with_roles(run.kept(self.now), expires=run.expires, met=run.met)
        return answers.table()
