"""The plan of a CONSTRAIN query."""

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
        "u.t + 3 <= v.t - 1",
        "DISTANCE(u, v) > 2",
        "u.kind < v.kind",
    ],
)
def test_conditions_that_the_kernel_tests_are_no_filters(condition: str) -> None:
    assert steps(f"u, v FROM e WHERE {condition}", "filter") == []


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("u.kind = v.kind OR u.temp < v.temp", "(u.kind = v.kind OR u.temp < v.temp)"),
        ("NOT (u.kind = v.kind)", "NOT (u.kind = v.kind)"),
        ("u.temp + v.temp < 3", "u.temp + v.temp < 3"),
        ("u.temp + v.temp < w.temp", "u.temp + v.temp < w.temp"),
        ("INTERSECTS(u.kind, v.kind)", "INTERSECTS(u.kind, v.kind)"),
        ("u.t + v.t < w.t", "u.t + v.t < w.t"),  # no difference of two times
    ],
)
def test_other_conditions_are_filters(condition: str, text: str) -> None:
    assert steps(f"u, v, w FROM e WHERE {condition}", "filter") == [f"{text}: tested on complete configurations"]


def test_implied_bounds_are_listed_and_drawn() -> None:
    chain = plan("u, v, w FROM e WHERE v.t - u.t IN [0, 5] AND w.t - v.t IN [1, 5] AND DISTANCE(u, v) < 1")
    assert "u and w: 1 to 10 later (implied)" in chain.why
    assert [(edge.one, edge.other, edge.stated) for edge in chain.graph.edges] == [
        ("u", "v", True),
        ("u", "w", False),
        ("v", "w", True),
    ]


def test_times_and_distances_have_their_units() -> None:
    why = plan("v*2 FROM e WHERE SPAN(v, v) <= 3 DAYS AND DISTANCE(v, v) <= 1500000", "TIMESTAMP", " GEODESIC").why
    assert "v and v': at most 3 days apart in time, <= 1500 km apart" in why


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("v.t = u.t", "at the same time"),
        ("v.t - u.t = 7", "7 seconds later"),
        ("v.t - u.t >= 90", "at least 1.5 minutes later"),
        ("v.t - u.t <= 7200", "at most 2 hours later"),
        ("v.t - u.t IN [-60, 60]", "at most 1 minute apart in time"),
        ("v.t - u.t IN [0, 172800]", "0 seconds to 2 days later"),
        ("u.t <= v.t AND v.t - u.t <= 5", "0 seconds to 5 seconds later"),
    ],
)
def test_the_time_between_two_events_is_listed(condition: str, text: str) -> None:
    assert f"u and v: {text}" in plan(f"u, v FROM e WHERE {condition}", "TIMESTAMP").why


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "v*2 FROM e",
            "the time between two events of v is not bounded, so events would be kept forever; "
            "add a bound such as SPAN(v, v)",
        ),
        (
            "u, v FROM e WHERE v.t > u.t",
            "between u and v is not bounded, so events would be kept forever; add a bound such as u.t - v.t IN",
        ),
    ],
)
def test_a_query_without_bounds_on_time_cannot_stream(query: str, reason: str) -> None:
    assert reason in plan(query).streams


def test_the_plane_and_the_globe_are_not_mixed() -> None:
    on_globe = STREAM.format(time="INTEGER", globe=" GEODESIC").replace("STREAM e", "STREAM g")
    query = (
        f"{on_globe} {STREAM.format(time='INTEGER', globe='')} CREATE QUERY q AS CONSTRAIN u, v FROM e AS u, g AS v;"
    )
    catalog = declared(query)
    refused = Planner(catalog).prepare(catalog.query("q")).plan.refused
    assert refused is not None
    assert refused.message == "stream g is GEODESIC, but stream e is planar"


@pytest.mark.parametrize(
    ("query", "routing"),
    [
        ("u, v FROM e WHERE u.id = v.id AND SPAN(u, v) <= 2", "by u.id = v.id and periods of time (16 long);"),
        ("u, v FROM e WHERE DISTANCE(u, v) <= 2", "by cells of space (16 wide);"),
        ("u, v FROM e WHERE u.t = v.t", "by u.t = v.t and time;"),
        ("u, v FROM e WHERE u.kind < v.kind", "all events go to one bucket"),
    ],
)
def test_routing(query: str, routing: str) -> None:
    assert routing in plan(query).routing


def test_a_string_that_is_no_geometry_is_refused() -> None:
    refused = plan("u FROM e WHERE WITHIN(u, 'POLYGON((0 0, 1 1, 0 1))')").refused
    assert refused is not None
    assert refused.message.startswith(
        "this is not a valid geometry: Points of LinearRing do not form a closed linestring"
    )


def test_an_outline_around_a_pole_is_refused() -> None:
    around = "u FROM e WHERE WITHIN(u, 'POLYGON((0 70, 120 70, -120 70, 0 70))')"
    refused = plan(around, globe=" GEODESIC").refused
    assert refused is not None
    assert refused.message == "this is not a valid geometry: its outline goes around a pole"
    assert plan(around).refused is None
    as_on_map = "u FROM e WHERE WITHIN(u, 'POLYGON((-180 60, 0 60, 180 60, 180 90, -180 90, -180 60))')"
    assert plan(as_on_map, globe=" GEODESIC").refused is None


def test_early_answers_are_a_step_of_the_plan() -> None:
    early = "on a stream, each configuration when its last event arrives, before the watermark"
    assert steps("u, v FROM e WHERE SPAN(u, v) <= 3 EMIT EARLY", "emit") == [early]
    assert steps("u, v FROM e WHERE SPAN(u, v) <= 3", "emit") == []


def test_a_bound_on_a_duration_bounds_the_time_between_events() -> None:
    workbook = """
        CREATE STREAM stays KEY (id STRING) TIME (began, ended) INTEGER;
        CREATE QUERY q AS CONSTRAIN u, v FROM stays WHERE v.t_from - u.t IN [0, 4] AND v.t - v.t_from <= 3;
    """
    catalog = declared(workbook)
    streamed = Planner(catalog).prepare(catalog.query("q")).plan
    assert any(line.startswith("u and v: 0 to 7 later") for line in streamed.why)
    assert streamed.streams == "yes"


def test_more_variables_than_bits_are_refused() -> None:
    names = ", ".join(f"v{number}" for number in range(65))
    assert "at most 64 are allowed" in plan(f"{names} FROM e").refused.message
