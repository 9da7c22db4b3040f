"""The operator of CONSTRAIN."""

from __future__ import annotations

import pyarrow as pa

from anabranch.constrain.analysis import LOOSE, NOINDEX
from anabranch.constrain.events import numbers_of_events, role_types
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.solutions import Answers
from anabranch.constrain.spec import ConstrainSpec
from anabranch.events.batch import Batch
from anabranch.events.operator import EventOperator
from anabranch.transport.operator import Counts


class ConstrainOperator(EventOperator):
    """The operator of one bucket of CONSTRAIN queries."""

    def __init__(self, spec: ConstrainSpec) -> None:
        self._spec = spec
        super().__init__(spec, role_types(spec.layouts))

    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """Every solution whose last event is new."""
        spec = self._spec
        answers = Answers(spec, batch)
        events = numbers_of_events(batch, spec.lowered.columns)
        strategy = spec.strategy
        run = Run(
            spec.lowered.graph, events, strategy != NOINDEX, strategy != LOOSE,
            len(self.kept), self.kept.roles["expires"], self.kept.roles["met"],
        )  # fmt: skip
        for query, solutions in run.solutions():
            answers.add(query, solutions)
        counts.kept = run.peak()
        self.kept = batch.with_roles(run.kept(self.now), expires=run.expires, met=run.met)
        return answers.table()
