"""PER and ORDER BY ... LIMIT: what the bound query has, and what a checkpoint belongs to."""

from __future__ import annotations

import pytest

from anabranch.binding.bound import BoundQuery
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


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_limit_is_planned_and_does_not_stream(query: str) -> None:
    assert bound(query).limit is None
    limited = prepared(f"{query} ORDER BY probability DESC LIMIT 3")
    assert limited.bound.limit == 3
    assert "keep the 3 most probable rows" in str(limited.plan)
    with pytest.raises(WorkbookError, match=r"q cannot stream: ORDER BY ... LIMIT needs all answers.*; remove it"):
        limited.require_live()
