"""The files that a workbook names are checked before data are read, also where types are not known yet."""

from __future__ import annotations

from anabranch.errors import Finding
from anabranch.language.parser import parse
from anabranch.planning.files import file_findings
from anabranch.planning.planner import Planner

SEGMENTS = """
CREATE STREAM cars KEY (car STRING) VALUE (x DOUBLE) TIME t MODEL PREDICTED ERROR 5 PERIOD 3;
CREATE STREAM speeds KEY (car) VALUE (speed) TIME t;
CREATE QUERY near AS MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 2 AND a.car < b.car SEMANTICS MAY;
CREATE STREAM nearness KEY (a.car AS car) TIME valid_from
  INTERVALS FROM QUERY near WHILE probability >= 0.3 SILENCE 5 HORIZON [0, 100];
CREATE STREAM slow KEY (car) TIME t INTERVALS FROM speeds WHILE speed < 30 SILENCE 5 {law} HORIZON [0, 100];
CREATE QUERY both AS RELATE SOME n INTERSECTS SOME s FROM nearness AS n, slow AS s WHERE n.car = s.car;
"""


def findings(text: str) -> list[Finding]:
    planner = Planner()
    assert planner.declare(parse(text)) == []
    queries = planner.with_read(planner.catalog.queries())
    return file_findings([planner.prepare(query) for query in queries], planner.catalog, lambda name: ".")


def test_segments_of_columns_whose_types_are_not_known_are_accepted() -> None:
    assert findings(SEGMENTS.format(law="")) == []


def test_a_missing_file_of_such_segments_is_reported() -> None:
    found = findings(SEGMENTS.format(law="DURATION FITTED 'none.csv'"))
    assert ["none.csv" in finding.message for finding in found] == [True]
