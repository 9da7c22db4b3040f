"""The plan of a RELATE query, in words."""

from __future__ import annotations

import pytest
from tests.local import bound_query

from anabranch.plan import Plan
from anabranch.relate.explain import plan

STREAMS = """
CREATE STREAM jam KEY (road STRING, sector INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
CREATE STREAM known KEY (road STRING) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH n;
CREATE STREAM wide KEY (road STRING) TIME t INTEGER MODEL INTERVALS ORDER seq HORIZON [0, 99] ROLE what;
CREATE STREAM told KEY (road STRING) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH n WINDOW (lo, hi);
"""


def plan_of(query: str) -> Plan:
    return plan(bound_query(f"{STREAMS} CREATE QUERY q AS RELATE {query};", "q"))


def steps(query: str, name: str) -> list[str]:
    return [step.does for step in plan_of(query).steps if step.id == name]


def test_a_plan_in_full() -> None:
    query = "AT LEAST 2 a INTERSECTS SOME b FROM jam AS a, jam AS b WHERE a.road = b.road AND a.sector < b.sector"
    told = str(plan_of(f"{query} TIMEOUT 60")).splitlines()
    assert told == [
        "q: RELATE",
        "  class      quantified relation of segments",
        "  why        at least 2 segments of a must lie in one of 11 relations to some segment of b",
        "             lost events lie anywhere in their windows, which end at the recorded ones around them, in their "
        "order",
        "  method     exact",
        "  routing    entities meet by a.road = b.road; each travels once",
        "  cost       time grows with the pairs that may meet in time, times their events; for events lost in one run, "
        "times those of the other entity that may fall between them; and with the number that AT LEAST asks of the "
        "first",
        "  streaming  yes",
        "  read       jam",
        "  assemble   check each entity, and give every lost event its window",
        "  pair       a join of entities by WHERE, never a key with itself",
        "  skip       pairs wholly apart in time (PRECEDES and PRECEDED BY not asked for)",
        "  sweep      the kernel over the recorded instants of a pair, in one pass",
        "  note       an entity of fewer than 2 segments as a has probability 0",
    ]


def test_quantifiers_and_relations_in_words() -> None:
    (why, _) = plan_of("ALL a (MEETS OR STARTED BY) SOME b FROM known AS a, wide AS b").why
    assert why == "every segment of a must lie in the relation MEETS or STARTED BY to some segment of b"


def test_entities_of_two_streams_may_have_one_key() -> None:
    assert steps("SOME a MEETS SOME b FROM known AS a, wide AS b", "pair") == ["every pair of entities"]
    assert steps("SOME a MEETS SOME b FROM known AS a, known AS b", "pair") == [
        "every pair of entities, never a key with itself"
    ]


@pytest.mark.parametrize(
    ("where", "routing"),
    [
        ("", "WHERE equates no columns: entities meet in a square of blocks"),
        ("WHERE a.sector < b.sector", "WHERE equates no columns: entities meet in a square of blocks"),
        ("WHERE b.road = a.road", "entities meet by a.road = b.road; each travels once"),
        ("WHERE a.road = 'M1' AND b.sector = a.sector", "entities meet by a.sector = b.sector; each travels once"),
    ],
)
def test_who_meets_whom(where: str, routing: str) -> None:
    assert plan_of(f"SOME a MEETS SOME b FROM jam AS a, jam AS b {where}").routing.startswith(routing)


@pytest.mark.parametrize(
    ("relation", "skipped"),
    [
        ("INTERSECTS", ["pairs wholly apart in time (PRECEDES and PRECEDED BY not asked for)"]),
        ("PRECEDES", ["pairs wholly apart in time (PRECEDED BY not asked for)"]),
        ("ENDS AFTER", ["pairs wholly apart in time (PRECEDES not asked for)"]),
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
                "an entity of fewer than 3 segments as a has probability 0",
                "an entity of fewer than 2 segments as b has probability 0",
            ],
        ),
        (
            "SOME a MEETS SOME b FROM known AS a, known AS b",
            ["live, an entity of known whose last event is lost ends with the input only"],
        ),
        (
            "SOME a MEETS SOME b FROM jam AS a, jam AS b",
            ["live, entities of jam end with the input only: give TIMEOUT, LENGTH or ROLE"],
        ),
        (
            "SOME a PRECEDES SOME b FROM known AS a, jam AS b TIMEOUT 9",
            ["live, entities of known are kept for good: one may precede what comes later"],
        ),
        (
            "SOME a ENDS AFTER SOME b FROM known AS a, jam AS b TIMEOUT 9",
            ["live, entities of jam are kept for good: one may precede what comes later"],
        ),
        (
            "SOME a MEETS SOME b FROM known AS a, wide AS b TIMEOUT 9",
            [
                "live, entities of known are kept for good: the HORIZON or WINDOW of wide lets lost events reach back",
                "live, entities of wide are kept for good: the HORIZON or WINDOW of wide lets lost events reach back",
            ],
        ),
        (
            "SOME a PRECEDES SOME b FROM told AS a, told AS b TIMEOUT 9",
            ["live, entities of told are kept for good: one may precede what comes later"],
        ),
        (
            "SOME a MEETS SOME b FROM told AS a, told AS b TIMEOUT 9",
            ["live, entities of told are kept for good: the HORIZON or WINDOW of told lets lost events reach back"],
        ),
    ],
)  # fmt: skip
def test_notes_on_large_numbers_and_on_what_a_stream_keeps(query: str, notes: list[str]) -> None:
    assert steps(query, "note") == notes
