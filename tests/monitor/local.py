"""MONITOR without a JVM: the buckets of a query, and its answers in the form of the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests import local
from tests.cases import Case
from tests.oracles.monitor import Answer
from tests.oracles.monitor_predictions import instant

from anabranch.binding.binder import bind
from anabranch.binding.reading import with_optional_columns
from anabranch.catalog import Catalog
from anabranch.language import nodes
from anabranch.monitor.job import MonitorJob
from anabranch.monitor.query import BoundMonitor
from anabranch.planning.derived import layouts_of
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext


class MonitorRun(local.LocalRun):
    """The buckets of one job."""

    job: MonitorJob

    def rows(self, status: str = "validated") -> list[Answer]:
        """The answers of one status."""
        rows = [row for outcome in self.outcomes for row in outcome.answers.to_pylist()]
        return [with_numbers(row) for row in rows if row["status"] == status]


def with_numbers(row: dict[str, Any]) -> Answer:
    """A row with its instants as numbers."""
    answer = dict(row)
    for name in ("valid_from", "valid_to", "certain_from", "certain_to"):
        answer[name] = None if row[name] is None else float(instant(row[name]))
    if row.get("boundary") is not None:
        answer["boundary"] = [tuple(float(instant(time)) for time in corner.values()) for corner in row["boundary"]]
    answer["sample"] = tuple(float(instant(time)) for time in row["sample"].values())
    return answer


def run_of(case: Case, batches: Sequence[Any], n_buckets: int = 3, live: bool = False) -> MonitorRun:
    """A run over micro-batches, to the end of the input."""
    run = MonitorRun(local.local_job(case.workbook, case.query, case.relations, live), n_buckets)
    run.run(batches)
    return run


def accelerated_query(workbook: str, name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> BoundMonitor:
    """The bound query of a workbook whose sources have the columns of these rows, also the optional ones."""
    catalog = local.declared(workbook)
    for stream_name, stream_rows in rows.items():
        stream = catalog.require_stream(stream_name)
        found = with_optional_columns(stream, {column for row in stream_rows for column in row})
        catalog = Catalog({**catalog.entries, stream_name.lower(): found})
    return bind(catalog.query(name), catalog)


def accelerated_run(case: Case, batches: Sequence[Any], live: bool = False) -> MonitorRun:
    """A run over micro-batches of rows with accelerations, to the end of the input."""
    query = accelerated_query(case.workbook, case.query, case.rows)
    context = JobContext(layouts_for(query.streams), {}, local.FINGERPRINT, live)
    run = MonitorRun(local.make_job([query], context), 3)
    run.run(batches)
    return run


def positions_job(workbook: str, name: str, live: bool = False) -> MonitorJob:
    """The job of a query whose streams are predicted from others, as the session makes it."""
    catalog = local.declared(workbook)
    query = bind(catalog.query(name), catalog)
    input_streams = []
    for stream in query.streams:
        source = stream.source
        input_streams.append(catalog.stream(source.stream) if isinstance(source, nodes.PredictedSource) else stream)
    layouts = layouts_of(query.streams, input_streams, ["."] * len(input_streams))
    return local.make_job([query], JobContext(layouts, {}, local.FINGERPRINT, live))
