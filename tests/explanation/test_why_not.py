"""Why a query has no answers: the goal, condition, bound or row at which it fails."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.errors import AnabranchError
from anabranch.explanation.case import Case
from anabranch.explanation.why_not import (
    WhyNot,
    quarantine_facts,
    selections_of,
    typed_keys,
    watermark_fact,
    why_not,
)
from anabranch.planning.selection import Selection
from tests.explanation.local import case_of
from tests.explanation.test_kinds import CARS, COLLISION, JAMS, SHOP, car, event, jams, reads

OFFICE = """
CREATE RELATION hall (location STRING);
CREATE STREAM at KEY (person STRING) VALUE (location STRING) TIME t INTEGER MODEL INDEPENDENT WATERMARK 2;
CREATE QUERY late AS PATTERN at(p, 'office') THEN at(p, l)+<p | hall(l)> THEN at(p, 'coffee') GROUP BY p WITHIN 3;
CREATE QUERY tea AS PATTERN at(p, 'office') THEN at(p, 'tea') GROUP BY p;
CREATE QUERY seldom AS PATTERN at(p, 'office') THEN at(p, 'coffee') GROUP BY p THRESHOLD 0.5;
CREATE QUERY direct AS PATTERN at(p, 'office') THEN NOT at(p, 'hall') THEN at(p, 'coffee') GROUP BY p;
CREATE QUERY elsewhere AS PATTERN at(p, 'office') THEN at(p, l) WHERE l = 'coffee' GROUP BY p;
CREATE QUERY both AS tea AND seldom;
"""
ROWS = [("office", 1, 0.9), ("hall", 2, 1.0), ("coffee", 5, 0.05), ("hall", 5, 0.5)]


def office(query: str) -> Case:
    rows = [{"person": "joe", "location": location, "t": t, "p": p} for location, t, p in ROWS]
    return case_of(OFFICE, query, {"at": rows}, {"hall": [("hall",), ("lobby",)]})


def asked(case: Case, **keys: Any) -> WhyNot:
    return why_not(case, keys, case.bound.threshold, ())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("late", "WITHIN 3 is too short"),
        ("tea", "no event matches goal 2, at(p, 'tea')"),
        ("direct", "an event of a NOT before goal 3 always comes between"),
        ("elsewhere", "the conditions of WHERE or + on goal 2 exclude every event that follows"),
        ("both", "it combines tea, seldom; ask why one of these has no answers"),
    ],
)
def test_the_goal_at_which_a_pattern_fails(query: str, reason: str) -> None:
    assert reason in asked(office(query), person="joe").reasons


def test_a_threshold_above_every_probability() -> None:
    answer = why_not(office("seldom"), {"p": "joe"}, 0.5, ())
    assert answer.reasons == ("THRESHOLD 0.5 is above the highest probability, 0.045 (t = 5)",)
    assert why_not(office("seldom"), {"p": "joe"}, 0.0, ()).reasons[0].startswith("it has 1 answer;")


def test_a_row_that_prevents_a_match() -> None:
    case = case_of(SHOP, "shop", {"reads": reads(("shelf", 10), ("till", 20), ("exit", 40))})
    query = case.with_body(miss=())
    assert asked(query, tag="a").reasons == (
        "it has answers without the row of reads: tag = 'a', reader = 'till', t = 20",
    )
    apart = case_of(SHOP, "shop", {"reads": reads(("shelf", 10), ("exit", 400))}).with_body(miss=())
    assert "it has answers without WITHIN" in asked(apart, tag="a").reasons


def test_conditions_and_bounds_of_the_other_kinds() -> None:
    cars = [car(1, 0.0, 0.0, 0.0, 0.0), car(2, 0.0, 3.0, 50.0, 0.0)]
    assert "it has answers without ABS(a.y - b.y) <= 6" in asked(case_of(CARS, "near", {"cars": cars}), car=2).reasons
    apart = case_of(JAMS, "jams", {"jam": [*jams(1, 10, 20), *jams(2, 30, 45)]})
    assert "PRECEDES holds with probability 1.000" in asked(apart, sector=1).reasons
    rows = [event(1, "A", 0, 0.0, 0.9), event(2, "B", 7, 3.0, 0.5)]
    (reason,) = asked(case_of(COLLISION, "hit", {"e": rows})).reasons
    assert reason == "it has answers without all of: DISTANCE(v, w) < 1; w.t - v.t IN [0, 5]"


def test_what_the_inputs_say() -> None:
    case = office("tea")
    layouts = case.context.layouts
    assert list(watermark_fact({"at": 5}, layouts, case.tables)) == [
        "the watermark of a stream is at 3 after all rows; "
        "a stream has no answers yet about 2 rows of these keys, which are not before it"
    ]
    rejected = [
        {"stream": "at", "reason": "p is outside [0, 1]", "row": '{"person": "joe", "p": 30}'},
        {"stream": "at", "reason": "p is outside [0, 1]", "row": '{"person": "sue", "p": 40}'},
    ]
    assert list(quarantine_facts(rejected, {"person": "joe"})) == [
        'quarantined, 1 row of at: p is outside [0, 1], such as {"person": "joe", "p": 30}'
    ]
    empty = case.with_tables(tuple(table.slice(0, 0) for table in case.tables))
    assert asked(empty, person="joe").reasons[0] == "at has no valid rows of these keys"


def test_keys_select_rows_by_column_or_variable() -> None:
    case = office("tea")
    analysis, layouts = case.prepared.analysis, case.context.layouts
    for name in ("person", "p", "P"):
        assert selections_of(analysis, layouts, {name: "joe"}) == [Selection(({"person": "joe"},))]
    with pytest.raises(AnabranchError, match="there is no key colour; the keys are p, person"):
        selections_of(analysis, layouts, {"colour": "red"})
    cars = case_of(CARS, "near", {"cars": []})
    assert typed_keys({"car": "7"}, cars.context.layouts) == {"car": 7}
    with pytest.raises(AnabranchError, match="car is a column of int64, and 'x' is not"):
        typed_keys({"car": "x"}, cars.context.layouts)
