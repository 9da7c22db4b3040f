"""PER and ORDER BY ... LIMIT: what the bound query has, and what a checkpoint belongs to."""

from __future__ import annotations

import pytest

from anabranch.binding.bound import BoundQuery
from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.errors import WorkbookError
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner
from anabranch.planning.prepared import Prepared

STREAM = "CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER;"
QUERIES = {
    "PATTERN": "PATTERN e(k, 'a') GROUP BY k",
    "SEQUENCE": "SEQUENCE (x, y) FROM e WHERE x.id = y.id AND x.kind = 'a' AND y.kind = 'b' WITHIN 5",
    "CONSTRAIN": "CONSTRAIN v, w FROM e WHERE w.t - v.t IN [0, 5]",
}


def prepared(query: str) -> Prepared:
    planner = Planner()
    findings = planner.declare(parse(f"{STREAM} CREATE QUERY q AS {query};"))
    if findings:
        raise WorkbookError(findings)
    return planner.prepare(planner.catalog.query("q"))


def bound(query: str) -> BoundQuery:
    return prepared(query).bound


EVENTS = [query for kind, query in QUERIES.items() if kind != "PATTERN"]


@pytest.mark.parametrize("query", EVENTS)
def test_the_threshold_applies_to_rows(query: str) -> None:
    for clause, per in (
        ("PER 5", PerWindow(5.0, threshold=0.7)),
        ("PER 5 AT LEAST 3 TIMES", PerWindow(5.0, 3, threshold=0.7)),
        ("PER EPISODE ABOVE 0.2 GAP 1 MINUTE", PerEpisode(0.2, 60.0, threshold=0.7)),
        ("PER KEYS", PerKeys(threshold=0.7)),
    ):
        found = bound(f"{query} {clause} THRESHOLD 0.7")
        assert found.per == per
        assert found.threshold == per.least


def test_the_plan_says_what_becomes_a_row() -> None:
    query = QUERIES["CONSTRAIN"]
    assert "one row per window of 5 and keys: the probability that at least 2 answers are true, if" in str(
        prepared(f"{query} PER 5 AT LEAST 2 TIMES THRESHOLD 0.7").plan
    )
    assert "answers with the same keys with a probability above 0.2 that overlap or follow within 3" in str(
        prepared(f"{query} PER EPISODE ABOVE 0.2 GAP 3").plan
    )
    assert "one row per set of keys" in str(prepared(f"{query} PER KEYS").plan)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_limit_is_planned_and_does_not_stream(query: str) -> None:
    assert bound(query).limit is None
    limited = prepared(f"{query} ORDER BY probability DESC LIMIT 3")
    assert limited.bound.limit == 3
    assert "keep the 3 most probable rows" in str(limited.plan)
    with pytest.raises(WorkbookError, match=r"q cannot stream: ORDER BY ... LIMIT needs all answers.*; remove it"):
        limited.require_live()
