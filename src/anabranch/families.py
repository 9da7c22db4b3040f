"""The kinds of question that can be run: a new kind is registered here, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.catalog import Catalog, Query
from anabranch.constrain import explain as constrain
from anabranch.errors import Finding, WorkbookError
from anabranch.language.binder import bind
from anabranch.language.bound import (
    BoundConstrain,
    BoundMonitor,
    BoundPattern,
    BoundQuestion,
    BoundRelate,
    BoundSequence,
)
from anabranch.monitor import explain as monitor
from anabranch.pattern import explain as pattern
from anabranch.plan import Plan
from anabranch.relate import explain as relate
from anabranch.rows.operator import Job, SharedJob
from anabranch.rows.packing import Layout
from anabranch.sequence import explain as sequence


@dataclass(frozen=True, slots=True)
class Family:
    """What a kind of question brings.

    Attributes
    ----------
    plan : how a bound question is run
    job : makes it ready for the workers
        Takes the question, the layouts of its streams, the rows of its relations, the fingerprint of its state, and
        whether its inputs are live.
    together : makes several questions over the same streams ready as one job, where the kind can do that
    read : reads the files that a question names, relative to the folder of its workbook, where it can name some
    """

    plan: Callable[[Any], Plan]
    job: Callable[[Any, tuple[Layout, ...], Mapping[str, pa.Table], str, bool], Job]
    together: Callable[[Sequence[Any], tuple[Layout, ...], Mapping[str, pa.Table], str], SharedJob] | None = None
    read: Callable[[Any, str], Any] | None = None


def _pattern_job(
    bound: BoundPattern, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> Job:
    # Imported when it is needed: checking a workbook takes no Spark.
    from anabranch.pattern.job import make_job

    return make_job(bound, layouts, relations, fingerprint, live)


def _relate_job(
    bound: BoundRelate, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> Job:
    from anabranch.relate.operator import make_job

    return make_job(bound, layouts, relations, fingerprint, live)


def _constrain_job(
    bound: BoundConstrain, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> Job:
    return _constrain_together([bound], layouts, relations, fingerprint)


def _constrain_together(
    bounds: Sequence[BoundConstrain], layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str
) -> SharedJob:
    from anabranch.constrain.operator import make_job

    return make_job(bounds, layouts, relations, fingerprint)


def _monitor_job(
    bound: BoundMonitor, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> Job:
    from anabranch.monitor.operator import make_job

    return make_job(bound, layouts, relations, fingerprint, live)


def _sequence_job(
    bound: BoundSequence, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> Job:
    return _sequence_together([bound], layouts, relations, fingerprint)


def _sequence_together(
    bounds: Sequence[BoundSequence], layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str
) -> SharedJob:
    from anabranch.sequence.operator import make_job

    return make_job(bounds, layouts, relations, fingerprint)


def _sequence_files(bound: BoundSequence, folder: str) -> BoundSequence:
    from anabranch.sequence.files import with_files

    return with_files(bound, folder)


_FAMILIES: dict[type, Family] = {
    BoundPattern: Family(pattern.plan, _pattern_job),
    BoundSequence: Family(sequence.plan, _sequence_job, _sequence_together, _sequence_files),
    BoundRelate: Family(relate.plan, _relate_job),
    BoundMonitor: Family(monitor.plan, _monitor_job),
    BoundConstrain: Family(constrain.plan, _constrain_job, _constrain_together),
}


def family_of(bound: BoundQuestion) -> Family:
    """The family of a bound question."""
    return _FAMILIES[type(bound)]


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """How a query will be answered, with what is known of its streams now.

    Raises
    ------
    WorkbookError
        If it is wrong.
    """
    bound = bind(query, catalog)
    return family_of(bound).plan(bound)


def groups_of(queries: Sequence[Query], catalog: Catalog) -> list[list[Query]]:
    """Queries that can share one pass over their streams, together; every other by itself."""
    groups: dict[object, list[Query]] = {}
    for query in queries:
        bound = bind(query, catalog)
        streams = tuple(sorted(stream.name.lower() for stream in bound.streams))
        shares = family_of(bound).together is not None
        groups.setdefault((type(bound), streams) if shares else query.name, []).append(query)
    return list(groups.values())


def objections(queries: Iterable[Query], catalog: Catalog) -> list[Finding]:
    """Everything that stands against running these queries; empty where nothing does."""
    findings: list[Finding] = []
    for query in queries:
        try:
            plan = plan_of(query, catalog)
        except WorkbookError as error:
            findings += error.findings
        else:
            findings += [plan.refused] if plan.refused else []
    return findings
