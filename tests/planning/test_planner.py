"""The planner: prepared queries are kept until a declaration changes, and groups share a pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.errors import WorkbookError
from anabranch.language.parser import parse
from anabranch.language.types import Type
from anabranch.planning.planner import Planner

STREAM = "CREATE STREAM s KEY (k STRING) VALUE (v{type}) TIME t INTEGER;"
PATTERN = "CREATE QUERY p AS PATTERN s(k, 'a') GROUP BY k;"
SEQUENCE = "CREATE QUERY {name} AS SEQUENCE (a, b) FROM s WHERE a.v = 'a' AND b.v = 'b' WITHIN 5;"


def planner_of(*statements: str) -> Planner:
    planner = Planner()
    assert not planner.declare(parse(" ".join(statements)))
    return planner


def test_a_query_is_prepared_once_until_a_declaration_changes() -> None:
    planner = planner_of(STREAM.format(type=""), PATTERN)
    query = planner.catalog.query("p")
    first = planner.prepare(query)
    assert planner.prepare(query) is first
    assert first.job is None
    changed = STREAM.format(type=" STRING").replace("CREATE", "CREATE OR REPLACE")
    assert not planner.declare(parse(changed))
    again = planner.prepare(query)
    assert again is not first
    assert again.bound.streams[0].values[0].type is Type.STRING


def test_a_workbook_with_findings_leaves_prepared_queries_alone() -> None:
    planner = planner_of(STREAM.format(type=""), PATTERN)
    first = planner.prepare(planner.catalog.query("p"))
    assert planner.declare(parse("CREATE QUERY p AS PATTERN nothing(k);"))
    assert planner.prepare(planner.catalog.query("p")) is first


def test_types_of_the_data_prepare_again_only_where_they_differ() -> None:
    planner = planner_of(STREAM.format(type=""), PATTERN)
    prepared = planner.prepare(planner.catalog.query("p"))
    stream = planner.catalog.stream("s")
    assert planner.with_types([prepared], {"s": replace(stream)}) == [prepared]
    (typed,) = planner.with_types([prepared], {"s": stream.with_types({"v": Type.STRING})})
    assert typed.bound.streams[0].values[0].type is Type.STRING
    assert planner.prepare(planner.catalog.query("p")) is prepared, "the declared types are unchanged"


def test_types_of_the_data_that_do_not_fit_are_findings() -> None:
    planner = planner_of(STREAM.format(type=""), PATTERN)
    prepared = planner.prepare(planner.catalog.query("p"))
    typed = planner.catalog.stream("s").with_types({"v": Type.INTEGER})
    with pytest.raises(WorkbookError):
        planner.with_types([prepared], {"s": typed})


def test_groups_share_kind_and_streams() -> None:
    names = ("one", "two")
    planner = planner_of(STREAM.format(type=""), PATTERN, *(SEQUENCE.format(name=name) for name in names))
    groups = planner.groups(planner.catalog.queries())
    assert [[query.name for query in group] for group in groups] == [["p"], ["one", "two"]]


def test_objections_name_every_query_that_cannot_run() -> None:
    endless = "CREATE QUERY {} AS CONSTRAIN v, w FROM s WHERE v.t - w.t > 1 AND w.t - v.t > 1;"
    planner = planner_of(STREAM.format(type=""), PATTERN, endless.format("one"), endless.format("two"))
    assert len(planner.objections(planner.catalog.queries())) == 2
    assert planner.objections([planner.catalog.query("p")]) == []
