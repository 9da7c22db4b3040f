"""MONITOR without a JVM: the buckets of a query, and its answers in a form that the truth has too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests import local
from tests.cases import Case
from tests.oracles.monitor import Answer
from tests.oracles.monitor_predictions import instant

from anabranch.binding.binder import bind
from anabranch.language import nodes
from anabranch.monitor.job import MonitorJob
from anabranch.planning.derived import layouts_of
from anabranch.transport.job import JobContext


class MonitorRun(local.LocalRun):
    """The buckets of one job."""

    job: MonitorJob

    def rows(self, status: str = "validated") -> list[Answer]:
        """The answers of one status."""
        every = [row for outcome in self.outcomes for row in outcome.answers.to_pylist()]
        return [told(row) for row in every if row["status"] == status]


def told(row: dict[str, Any]) -> Answer:
    """A row with its instants as numbers."""
    told = dict(row)
    for name in ("valid_from", "valid_to"):
        told[name] = float(instant(row[name]))
    if row.get("boundary") is not None:
        told["boundary"] = [tuple(float(instant(each)) for each in corner.values()) for corner in row["boundary"]]
    told["sample"] = tuple(float(instant(each)) for each in row["sample"].values())
    return told


def run_of(case: Case, batches: Sequence[Any], n_buckets: int = 3, live: bool = False) -> MonitorRun:
    """A run over micro-batches, to the end of the input."""
    run = MonitorRun(local.local_job(case.workbook, case.query, case.relations, live), n_buckets)
    run.run(batches)
    return run


def positions_job(workbook: str, name: str, live: bool = False) -> MonitorJob:
    """The job of a query whose streams are predicted from others, as the session makes it."""
    catalog = local.declared(workbook)
    query = bind(catalog.query(name), catalog)
    read = []
    for stream in query.streams:
        source = stream.source
        read.append(catalog.stream(source.stream) if isinstance(source, nodes.PredictedSource) else stream)
    layouts = layouts_of(query.streams, read, ["."] * len(read))
    return local.make_job([query], JobContext(layouts, {}, local.FINGERPRINT, live))


def who(row: Answer, case_names: Sequence[str]) -> tuple[Any, ...]:
    """The predictions that an answer is about."""
    return tuple(tuple((name, _plain(value)) for name, value in row[label].items()) for label in case_names)


def _plain(value: Any) -> Any:
    return instant(value) if isinstance(value, datetime) else value
