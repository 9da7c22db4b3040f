"""The constants that rows must have for an answer, by kind of query."""

from __future__ import annotations

import pytest

from anabranch.language.parser import parse
from anabranch.planning.planner import Planner

STREAMS = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM e KEY (id STRING) VALUE (kind STRING, n INTEGER) TIME t INTEGER;
CREATE STREAM i KEY (id STRING) TIME t INTEGER MODEL INTERVALS ORDER seq;
CREATE STREAM c KEY (car STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 1 PERIOD 10;
"""


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("PATTERN at('ann', 'hall') THEN at(_, y)", [("at", "person", "ann"), ("at", "place", "hall")]),
        ("PATTERN at(x, y) THEN at(x, z)", []),
        (
            "SEQUENCE (u, !v, w) FROM e AS u, e AS v, e AS w WHERE u.kind = 'a' AND v.kind = 'b' AND 3 = w.n WITHIN 5",
            [("e", "kind", "a"), ("e", "n", 3)],
        ),
        ("CONSTRAIN u, v FROM e WHERE u.kind = 'a' AND (v.kind = 'b' OR v.n = 1) AND v.t = u.t", [("e", "kind", "a")]),
        ("RELATE ALL a OVERLAPS SOME b FROM i AS a, i AS b WHERE a.id = 'x'", [("i", "id", "x")]),
        ("MONITOR a, b FROM c AS a, c AS b WHERE a.x - b.x < 1 AND a.car = 'k'", [("c", "car", "k")]),
    ],
)
def test_constants_that_some_row_must_have(query: str, wanted: list[tuple[str, str, object]]) -> None:
    planner = Planner()
    assert planner.declare(parse(f"{STREAMS} CREATE QUERY q AS {query};")) == []
    bound = planner.bound(planner.catalog.require_query("q"))
    assert [(value.stream.name, value.column, value.value) for value in bound.wanted_values] == wanted
