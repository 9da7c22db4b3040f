"""From bound queries to plans and jobs, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anabranch.binding.binder import bind
from anabranch.binding.bound import BoundQuery
from anabranch.catalog import Catalog, Query
from anabranch.errors import Finding, WorkbookError
from anabranch.kinds import load_kind_module
from anabranch.plan import Plan
from anabranch.transport.job import Job, JobContext


def plan_for(query: BoundQuery) -> Plan:
    """How a bound query is run."""
    plan: Plan = load_kind_module(query.kind, "explain").plan(query)
    return plan


def job_for(queries: Sequence[BoundQuery], context: JobContext) -> Job:
    """A query made ready for the workers; or several of one kind, which share a pass over their streams."""
    job: Job = load_kind_module(queries[0].kind, "job").make_job(queries, context)
    return job


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """How a query will be answered, with what is known of its streams now.

    Raises
    ------
    WorkbookError
        If it is wrong.
    """
    return plan_for(bind(query, catalog))


def groups_of(queries: Sequence[Query], catalog: Catalog) -> list[list[Query]]:
    """Queries that can share one pass over their streams, together; every other by itself."""
    groups: dict[object, list[Query]] = {}
    for query in queries:
        bound = bind(query, catalog)
        streams = tuple(sorted(stream.name.lower() for stream in bound.streams))
        groups.setdefault((bound.kind, streams) if bound.shares_pass else query.name, []).append(query)
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
