"""CONSTRAIN queries in this process: the stages of a worker, each callable alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.constrain.analysis import LOOSE, NOINDEX
from anabranch.constrain.events import numbers_of_events
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.kernel.tables import Events, Graph
from anabranch.events.batch import Batch
from anabranch.events.roles import roles_of
from anabranch.events.table import EventTable
from anabranch.transport.limits import MAX_ANSWERS
from benchmarks.constrain.data import Measurements
from benchmarks.constrain.queries import Query, query_names, workbook
from benchmarks.engines import make_job


class InProcess:
    """Queries over events: which variables each event can be, and the run of the kernel."""

    def __init__(self, measurements: Measurements, queries: Sequence[Query], strategy: str) -> None:
        job = make_job(workbook(measurements, queries, strategy), query_names(queries))
        spec = job.spec
        self.n_queries, self._strategy, self._lowered = len(queries), strategy, spec.lowered
        self._table = EventTable.from_rows(measurements.events, job.layouts[0])
        self._conditions = list(enumerate(condition for analysis in spec.analyses for condition in analysis.unary))
        self._streams = {"": spec.analyses[0].query.variables[0].stream}

    @property
    def graph(self) -> Graph:
        """The queries as arrays."""
        return self._lowered.graph

    def roles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the variables that each event can be (see `roles_of`)."""
        return roles_of(
            self._table.columns,
            self._conditions,
            lambda condition, columns, n: holds_of_events(condition, columns, self._streams, {}, n),
        )

    def kernel_events(self, first: np.ndarray, variable: np.ndarray) -> Events:
        """Return the events as the kernel reads them; a run writes to them."""
        n, count = len(self._table), len(variable)
        roles = {"variable": variable, "is_primary": np.ones(count, np.bool_)}
        batch = Batch([self._table], np.zeros(n, np.int64), np.ones(n, np.bool_), first, roles)
        return numbers_of_events(batch, self._lowered.columns)

    def run(self, events: Events) -> Run:
        """Return a kernel that is ready to run."""
        return Run(self.graph, events, self._strategy != NOINDEX, self._strategy != LOOSE)

    def alert_counts(self) -> np.ndarray:
        """Return the number of alerts of each query."""
        counts = np.zeros(self.n_queries, np.int64)
        for query, alerts in self.run(self.kernel_events(*self.roles())).solutions(MAX_ANSWERS):
            counts[query] += len(alerts)
        return counts
