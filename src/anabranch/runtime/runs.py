"""The runs of a session: for each query, its last run, what happened to its rows, and what Spark caches for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import DataFrame

from anabranch.catalog import Catalog, Query, Stream
from anabranch.errors import AnabranchError, InputWarning
from anabranch.runtime import batch, execution, streaming
from anabranch.runtime.finishing import finish_frame
from anabranch.runtime.sources.bindings import Bindings
from anabranch.transport.operator import Counts

QueryRun = batch.Run | batch.GroupRun | streaming.StreamRun


class Runs:
    """The last run of each query."""

    def __init__(self, catalog: Catalog, bindings: Bindings) -> None:
        self._catalog, self._bindings = catalog, bindings
        self._runs: dict[str, QueryRun] = {}
        self._cached: list[DataFrame] = []
        #: The queries whose inputs were examined after their last run.
        self._examined: set[str] = set()

    def add(self, query: Query | Stream, run: QueryRun) -> None:
        """Remember the run of a query, or of the rows of a stream; it replaces an earlier one."""
        self._runs[query.name.lower()] = run
        self._examined.discard(query.name.lower())

    def add_group(self, queries: Sequence[Query], run: batch.Run, resolved: execution.Resolved) -> dict[str, DataFrame]:
        """Remember the run of a group, cache its answers, and return those of each query."""
        cached = run.answers.persist()
        self._cached.append(cached)
        # Counting reads everything, so that all is cached and the counts are complete.
        n_rows = {row["query"]: row["count"] for row in cached.groupBy("query").count().collect()}
        counts = run.counts()
        frames = {}
        for number, query in enumerate(queries):
            rules = resolved.job.finishing(number)
            frame = finish_frame(rules, cached, run.instants)
            # Rows with columns of their own may still be combined, or become pairs; PER merges rows.
            n_answers: Callable[[], int] = partial(int, n_rows.get(number, 0))
            if rules.prefix or rules.merges:
                frame, n_answers = batch.counted(frame)
            frames[query.name] = frame
            self.add(query, batch.GroupRun(run, counts, n_answers))
        return frames

    def forget(self, name: str) -> None:
        """Drop the run of a query that is declared anew."""
        self._runs.pop(name.lower(), None)

    def release(self) -> None:
        """Remove the answers of groups from Spark's cache."""
        for frame in self._cached:
            frame.unpersist()
        self._cached.clear()

    def find(self, query: Query) -> QueryRun | None:
        """The last run of a query, if there is one."""
        return self._runs.get(query.name.lower())

    def counts(self, name: str) -> Counts:
        """The counts of the last run of a query; warns once for each run about inputs that are probably wrong."""
        run = self._last(name)
        # First, because a run that failed has no inputs to examine: its error is raised here.
        counts = run.counts() if isinstance(run, batch.Run) else run.counts
        if not isinstance(run, streaming.StreamRun) and name.lower() not in self._examined:
            for _, doubt in self.doubts(name):
                warnings.warn(doubt, InputWarning, stacklevel=3)
        return counts

    def doubts(self, name: str) -> list[tuple[Stream, str]]:
        """The inputs of the last batch run of a query that are probably wrong, with the reason and the likely fix."""
        whole = self._batch_run(name, "only the inputs of a batch run are examined")
        for other, its_run in self._runs.items():
            if not isinstance(its_run, streaming.StreamRun) and _whole(its_run) is whole:
                self._examined.add(other)
        return execution.doubts(whole, self._bindings, self._catalog)

    def quarantine(self, name: str) -> DataFrame:
        """The rows that the last batch run of a query quarantined, with the reason."""
        return self._batch_run(name, "its quarantine is written next to its answers").quarantine()

    def _batch_run(self, name: str, hint: str) -> batch.Run:
        run = self._last(name)
        if isinstance(run, streaming.StreamRun):
            raise AnabranchError(f"{name} runs as a stream; {hint}")
        return _whole(run)

    def _last(self, name: str) -> QueryRun:
        run = self._runs.get(name.lower())
        if run is None:
            self._catalog.require_query(name)
            raise AnabranchError(f"{name} has not been run yet")
        return run


def _whole(run: batch.Run | batch.GroupRun) -> batch.Run:
    """The run of a query, or of the group that it is in."""
    return run.run if isinstance(run, batch.GroupRun) else run
