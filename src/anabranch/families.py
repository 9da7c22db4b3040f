"""The kinds of question that can be run: a new kind is registered here, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.catalog import Catalog, Query
from anabranch.errors import Finding, NotYetBuilt, WorkbookError
from anabranch.language.binder import bind
from anabranch.language.bound import (
    BoundConstrain,
    BoundMonitor,
    BoundPattern,
    BoundQuestion,
    BoundRelate,
    BoundSequence,
)
from anabranch.pattern import explain as pattern
from anabranch.plan import Plan
from anabranch.relate import explain as relate
from anabranch.rows.operator import Job
from anabranch.rows.packing import Layout


@dataclass(frozen=True, slots=True)
class Family:
    """What a kind of question brings.

    Attributes
    ----------
    plan : how a bound question is run
    job : makes it ready for the workers
        Takes the question, the layouts of its streams, the rows of its relations, the fingerprint of its state, and
        whether its inputs are live.
    """

    plan: Callable[[Any], Plan]
    job: Callable[[Any, tuple[Layout, ...], Mapping[str, pa.Table], str, bool], Job]


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


_BUILT: dict[type, Family] = {
    BoundPattern: Family(pattern.plan, _pattern_job),
    BoundRelate: Family(relate.plan, _relate_job),
}

_KINDS = {
    BoundPattern: "PATTERN",
    BoundSequence: "SEQUENCE",
    BoundRelate: "RELATE",
    BoundMonitor: "MONITOR",
    BoundConstrain: "CONSTRAIN",
}


def family_of(bound: BoundQuestion) -> Family:
    """The family of a bound question.

    Raises
    ------
    NotYetBuilt
        If the kind is understood, but cannot be run yet.
    """
    family = _BUILT.get(type(bound))
    if family is None:
        kind = _KINDS[type(bound)]
        built = ", ".join(_KINDS[each] for each in _BUILT)
        raise NotYetBuilt(
            [
                Finding(
                    "not-yet-built",
                    f"{bound.name} is a {kind} question, which this version can check but not run",
                    f"it runs {built}",
                    bound.span,
                )
            ]
        )
    return family


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """How a query will be answered, with what is known of its streams now.

    Raises
    ------
    WorkbookError
        If it is wrong, or of a kind that cannot be run yet.
    """
    bound = bind(query, catalog)
    return family_of(bound).plan(bound)


#: Findings against a query that is right, but beyond this version.
NOT_BUILT = ("not-yet-built",)


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
