"""The plan of a CONSTRAIN query says what is really done."""

from __future__ import annotations

import pytest
from tests.local import declared

from anabranch.plan import Plan
from anabranch.planning.planner import Planner

STREAM = "CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp DOUBLE) TIME t {time} SPACE (x, y){globe};"


def plan(query: str, time: str = "INTEGER", globe: str = "") -> Plan:
    workbook = f"{STREAM.format(time=time, globe=globe)} CREATE QUERY q AS CONSTRAIN {query};"
    catalog = declared(workbook)
    return Planner(catalog).prepare(catalog.query("q")).plan


def steps(query: str, name: str) -> list[str]:
    return [step.does for step in plan(query).steps if step.id == name]


@pytest.mark.parametrize(
    "condition",
    [
        "u.kind = v.kind",
        "u.temp + 1 < v.temp * 2",
        "ABS(u.temp - v.temp) <= 3",
        "v.t - u.t IN [0, 5]",
        "u.t + 3 <= v.t",
        "DISTANCE(u, v) > 2",
        "u.kind < v.kind",
    ],
)
def test_what_is_decided_during_the_search_is_no_filter(condition: str) -> None:
    assert steps(f"u, v FROM e WHERE {condition}", "filter") == []


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("u.kind = v.kind OR u.temp < v.temp", "(u.kind = v.kind OR u.temp < v.temp)"),
        ("NOT (u.kind = v.kind)", "NOT (u.kind = v.kind)"),
        ("u.temp + v.temp < 3", "u.temp + v.temp < 3"),
        ("u.temp + v.temp < w.temp", "u.temp + v.temp < w.temp"),
        ("INTERSECTS(u.kind, v.kind)", "INTERSECTS(u.kind, v.kind)"),
        ("u.t + v.t < w.t", "u.t + v.t < w.t"),  # no difference of two times
    ],
)
def test_what_is_asked_of_whole_configurations_is_told(condition: str, told: str) -> None:
    assert steps(f"u, v, w FROM e WHERE {condition}", "filter") == [f"{told}: asked of whole configurations"]


def test_what_follows_is_told_and_drawn() -> None:
    chain = plan("u, v, w FROM e WHERE v.t - u.t IN [0, 5] AND w.t - v.t IN [1, 5] AND DISTANCE(u, v) < 1")
    assert "u and w: 1 to 10 later (follows)" in chain.why
    assert [(edge.one, edge.other, edge.given) for edge in chain.graph.edges] == [
        ("u", "v", True),
        ("u", "w", False),
        ("v", "w", True),
    ]


def test_times_and_distances_have_their_units() -> None:
    told = plan("v*2 FROM e WHERE SPAN(v, v) <= 3 DAYS AND DISTANCE(v, v) <= 1500000", "TIMESTAMP", " GEODESIC").why
    assert "v and v': at most 3 days from each other in time, <= 1500 km apart" in told


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("v.t = u.t", "at the same time"),
        ("v.t - u.t = 7", "7 seconds later"),
        ("v.t - u.t >= 90", "at least 1.5 minutes later"),
        ("v.t - u.t <= 7200", "at most 2 hours later"),
        ("v.t - u.t IN [-60, 60]", "at most 1 minute from each other in time"),
        ("v.t - u.t IN [0, 172800]", "0 seconds to 2 days later"),
    ],
)
def test_the_time_between_two_events_is_told(condition: str, told: str) -> None:
    assert f"u and v: {told}" in plan(f"u, v FROM e WHERE {condition}", "TIMESTAMP").why


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "v*2 FROM e",
            "the time between two events of v, so events would be kept for good; add a bound such as SPAN(v, v)",
        ),
        (
            "u, v FROM e WHERE v.t > u.t",
            "between u and v, so events would be kept for good; add a bound such as u.t - v.t IN",
        ),
    ],
)
def test_a_query_that_could_forget_nothing_says_what_would_mend_it(query: str, told: str) -> None:
    assert told in plan(query).streams


def test_the_plane_and_the_globe_are_not_mixed() -> None:
    on_globe = STREAM.format(time="INTEGER", globe=" GEODESIC").replace("STREAM e", "STREAM g")
    query = (
        f"{on_globe} {STREAM.format(time='INTEGER', globe='')} CREATE QUERY q AS CONSTRAIN u, v FROM e AS u, g AS v;"
    )
    catalog = declared(query)
    refused = Planner(catalog).prepare(catalog.query("q")).plan.refused
    assert refused is not None
    assert refused.message == "g is on the globe (GEODESIC) and e in the plane"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("u, v FROM e WHERE u.id = v.id AND SPAN(u, v) <= 2", "by u.id = v.id and by stretches of time, 16 long"),
        ("u, v FROM e WHERE DISTANCE(u, v) <= 2", "by cells of space, 16 wide;"),
        ("u, v FROM e WHERE u.t = v.t", "by instants;"),
        ("u, v FROM e WHERE u.kind < v.kind", "all events in one place"),
    ],
)
def test_where_events_meet_is_told(query: str, told: str) -> None:
    assert told in plan(query).routing


def test_a_text_that_is_no_geometry_is_refused_with_its_place() -> None:
    refused = plan("u FROM e WHERE WITHIN(u, 'POLYGON((0 0, 1 1, 0 1))')").refused
    assert refused is not None
    assert refused.message.startswith("this is no geometry: Points of LinearRing do not form a closed linestring")


def test_more_variables_than_bits_are_refused() -> None:
    names = ", ".join(f"v{number}" for number in range(65))
    assert "at most 64 are allowed" in plan(f"{names} FROM e").refused.message
