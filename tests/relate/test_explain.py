"""The plan of a RELATE query."""

from __future__ import annotations

import pytest
from tests.local import bound_query

from anabranch.plan import Plan
from anabranch.relate.analysis import analyse
from anabranch.relate.explain import plan

STREAMS = """
CREATE STREAM jam KEY (road STRING, sector INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
CREATE STREAM known KEY (road STRING) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH n;
CREATE STREAM trips KEY (line STRING, trip STRING) VALUE (stop STRING) TIME t INTEGER MODEL INTERVALS ORDER seq;
CREATE STREAM wide KEY (road STRING) TIME t INTEGER MODEL INTERVALS ORDER seq HORIZON [0, 99] ROLE what;
CREATE STREAM bounded KEY (road STRING) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH n WINDOW (lo, hi);
"""


def plan_of(query: str) -> Plan:
    return plan(analyse(bound_query(f"{STREAMS} CREATE QUERY q AS RELATE {query};", "q")))


def steps(query: str, name: str) -> list[str]:
    return [step.does for step in plan_of(query).steps if step.id == name]


def test_a_plan_in_full() -> None:
    query = "AT LEAST 2 a INTERSECTS SOME b FROM jam AS a, jam AS b WHERE a.road = b.road AND a.sector < b.sector"
    assert str(plan_of(f"{query} TIMEOUT 60")).splitlines() == [
        "q: RELATE",
        "  class      quantified relation of segments",
        "  why        at least 2 segments of a must be in one of 11 relations to some segment of b",
        "             lost events keep their order, and may be anywhere in their windows, between the recorded events "
        "around them",
        "  method     exact",
        "  routing    entities are routed by a.road = b.road; each is sent once",
        "  cost       time grows with the pairs that overlap in time, times their events; for consecutive lost events, "
        "times the events of the other entity that may lie between them; and with the AT LEAST of the first operand",
        "  streaming  yes",
        "  read       jam",
        "  assemble   check each entity, and determine the window of each lost event",
        "  pair       the pairs of entities that WHERE joins, never a key with itself",
        "  skip       pairs that do not overlap in time (PRECEDES and PRECEDED BY not in the query)",
        "  sweep      run the kernel over the recorded instants of each pair, in one pass",
        "  note       for a, an entity with fewer than 2 segments has probability 0",
    ]


def test_quantifiers_and_relations_are_listed() -> None:
    (why, _) = plan_of("ALL a (MEETS OR STARTED BY) SOME b FROM known AS a, wide AS b").why
    assert why == "every segment of a must be in the relation MEETS or STARTED BY to some segment of b"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "AT MOST 1 a MEETS EXACTLY 2 b",
            "at most 1 segment of a must be in the relation MEETS to exactly 2 segments of b",
        ),
        ("EXACTLY 0 a MEETS SOME b", "at most 0 segments of a must be in the relation MEETS to some segment of b"),
    ],
)
def test_limits_are_described(query: str, why: str) -> None:
    described = plan_of(f"{query} FROM known AS a, known AS b TIMEOUT 9")
    assert described.why[0] == why
    assert "times their events" in described.cost
    assert not [step for step in described.steps if step.id == "skip"]
    assert [step.does for step in described.steps if step.id == "note"] == [
        "pairs without any related segments have answers too: a quantifier admits no segment",
        "streaming: entities of known are kept forever: no segment need be related",
    ]


def test_conditions_on_segments_are_described() -> None:
    where = "WHERE a.line = b.line AND a.stop = b.stop AND b.stop <> 'depot'"
    described = plan_of(f"AT LEAST 3 a INTERSECTS SOME b FROM trips AS a, trips AS b {where} COUNT")
    assert described.why[1:3] == (
        "only segments of b count that satisfy b.stop <> 'depot'",
        "two segments are related only if a.stop = b.stop",
    )
    assert "; and with the number of segments of the first operand; conditions on segments cost" in described.cost
    assert described.routing == "entities are routed by a.line = b.line; each is sent once"


def test_without_conditions_on_entities_every_pair_is_compared() -> None:
    query = "SOME a INTERSECTS SOME b FROM trips AS a, known AS b WHERE a.stop = 'depot'"
    assert steps(query, "pair") == ["every pair of entities"]


def test_entities_of_two_streams_may_have_the_same_key() -> None:
    assert steps("SOME a MEETS SOME b FROM known AS a, wide AS b", "pair") == ["every pair of entities"]
    assert steps("SOME a MEETS SOME b FROM known AS a, known AS b", "pair") == [
        "every pair of entities, never a key with itself"
    ]


@pytest.mark.parametrize(
    ("where", "routing"),
    [
        ("", "WHERE equates no columns: entities go to several blocks"),
        ("WHERE a.sector < b.sector", "WHERE equates no columns: entities go to several blocks"),
        ("WHERE b.road = a.road", "entities are routed by a.road = b.road; each is sent once"),
        (
            "WHERE a.road = 'M1' AND b.sector = a.sector",
            "entities are routed by a.sector = b.sector; each is sent once",
        ),
    ],
)
def test_routing(where: str, routing: str) -> None:
    assert plan_of(f"SOME a MEETS SOME b FROM jam AS a, jam AS b {where}").routing.startswith(routing)


@pytest.mark.parametrize(
    ("relation", "skipped"),
    [
        ("INTERSECTS", ["pairs that do not overlap in time (PRECEDES and PRECEDED BY not in the query)"]),
        ("PRECEDES", ["pairs that do not overlap in time (PRECEDED BY not in the query)"]),
        ("ENDS AFTER", ["pairs that do not overlap in time (PRECEDES not in the query)"]),
        ("(PRECEDES OR PRECEDED BY)", []),
    ],
)
def test_pairs_that_cannot_be_related_are_skipped(relation: str, skipped: list[str]) -> None:
    assert steps(f"SOME a {relation} SOME b FROM known AS a, known AS b", "skip") == skipped


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ("SOME a MEETS SOME b FROM known AS a, known AS b TIMEOUT 9", []),
        (
            "AT LEAST 3 a MEETS AT LEAST 2 b FROM known AS a, known AS b TIMEOUT 9",
            [
                "for a, an entity with fewer than 3 segments has probability 0",
                "for b, an entity with fewer than 2 segments has probability 0",
            ],
        ),
        (
            "SOME a MEETS SOME b FROM known AS a, known AS b",
            ["streaming: an entity of known whose last event is lost only ends with the input; add TIMEOUT"],
        ),
        (
            "SOME a MEETS SOME b FROM jam AS a, jam AS b",
            ["streaming: entities of jam only end with the input; add TIMEOUT, LENGTH or ROLE"],
        ),
        (
            "SOME a PRECEDES SOME b FROM known AS a, jam AS b TIMEOUT 9",
            ["streaming: entities of known are kept forever: they may precede later ones"],
        ),
        (
            "SOME a ENDS AFTER SOME b FROM known AS a, jam AS b TIMEOUT 9",
            ["streaming: entities of jam are kept forever: they may precede later ones"],
        ),
        (
            "SOME a MEETS SOME b FROM known AS a, wide AS b TIMEOUT 9",
            [
                f"streaming: entities of {name} are kept forever: "
                "the HORIZON or WINDOW of wide lets lost events lie in the past"
                for name in ("known", "wide")
            ],
        ),
        (
            "SOME a PRECEDES SOME b FROM bounded AS a, bounded AS b TIMEOUT 9",
            ["streaming: entities of bounded are kept forever: they may precede later ones"],
        ),
        (
            "SOME a MEETS SOME b FROM bounded AS a, bounded AS b TIMEOUT 9",
            [
                "streaming: entities of bounded are kept forever: "
                "the HORIZON or WINDOW of bounded lets lost events lie in the past"
            ],
        ),
    ],
)  # fmt: skip
def test_notes_on_large_numbers_and_on_state(query: str, notes: list[str]) -> None:
    assert steps(query, "note") == notes
