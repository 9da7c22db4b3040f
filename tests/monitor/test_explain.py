"""The plan of a MONITOR query."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.drawn import examples
from tests.local import bound_query, declared

from anabranch.monitor.analysis import analyse
from anabranch.plan import Plan
from anabranch.planning.planner import Planner

STREAM = """
CREATE STREAM e KEY (id STRING, zone STRING) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 1 PERIOD 10;
CREATE STREAM f KEY (zone STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 5;
"""


def plan(query: str) -> Plan:
    catalog = declared(f"{STREAM} CREATE QUERY q AS MONITOR {query};")
    return Planner(catalog).prepare(catalog.query("q")).plan


def test_a_plan_lists_the_forms_and_their_numbers() -> None:
    explained = plan(
        "a, b FROM e AS a, e AS b WHERE ABS(b.x - a.x) <= 5 AND a.x > 2 AND a.x <= 9 SEMANTICS MUST WITHIN 3"
    )
    assert "b.x - a.x must be in [-5, 5]" in explained.why
    assert "a.x must be in (2, 9]" in explained.why
    assert "compared instants are at most 3 apart" in explained.why
    assert [step.id for step in explained.steps] == ["read", "apply", "search", "clip", "note"]


@pytest.mark.parametrize("on_positions", [True, False])
def test_the_plan_says_how_degrees_become_metres(on_positions: bool) -> None:
    columns, space = "KEY (car STRING) VALUE (lon DOUBLE, lat DOUBLE) TIME t DOUBLE", "SPACE (lon, lat) GEODESIC ORIGIN"
    origin = f"{space} (8.25, -46.5)"
    catalog = declared(
        f"CREATE STREAM fixes {columns} {origin if on_positions else ''};"
        f"CREATE STREAM cars {columns} {'' if on_positions else origin} PREDICTED FROM fixes ERROR 5 PERIOD 30;"
        "CREATE QUERY q AS MONITOR a FROM cars AS a WHERE a.lon > 5;"
        f"CREATE STREAM flat {columns} PREDICTED FROM plain ERROR 5 PERIOD 30; CREATE STREAM plain {columns};"
        "CREATE QUERY plane AS MONITOR a FROM flat AS a WHERE a.lon > 5;"
    )
    steps = [(step.id, step.does) for step in Planner(catalog).prepare(catalog.query("q")).plan.steps]
    projected = "positions in metres, by a local projection around longitude 8.25, latitude -46.5"
    assert ("prepare", f"cars: {projected}") in steps
    assert all(step.id != "prepare" for step in Planner(catalog).prepare(catalog.query("plane")).plan.steps)


def test_all_intervals_of_a_form_are_listed() -> None:
    explained = plan("a FROM e AS a WHERE ABS(a.x) >= 3 AND a.x <> 7")
    assert explained.why[0] == "a.x must be in (-inf, -3] or in [3, 7) or in (7, inf)"
    assert explained.classification == "value constraints"
    assert explained.routing == "predictions are routed by key"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("a FROM e WHERE a.x > 5 AND a.y > 0 AND a.x < 3", "the constraints contradict each other: a.x > 5, a.x < 3"),
        (
            "a, b FROM f AS a, f AS b WHERE a.x > 5 AND b.x < 3 AND a.x < b.x AND a.x < 9",
            "the constraints contradict each other: a.x > 5, b.x < 3, a.x - b.x < 0",
        ),
        ("a FROM f WHERE a.x = 3 AND a.x <> 3", "the constraints contradict each other: a.x = 3, a.x <> 3"),
        ("a FROM e WHERE ABS(a.x) < 0", "no values satisfy a constraint: ABS(a.x) < 0"),
        (
            "a FROM e WHERE a.x <= 5 AND a.x >= 5",
            "a single number has probability 0, because the values have errors: a.x <= 5, a.x >= 5",
        ),
        (
            "a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 1 SEMANTICS MUST",
            "ABS(a.x - b.x) <= 1 is never certain (SEMANTICS MUST): the true value may be 2 off, in both directions",
        ),
    ],
)
def test_contradictory_constraints_are_refused(query: str, message: str) -> None:
    refused = plan(query).refused
    assert refused is not None
    assert (refused.code, refused.message) == ("contradiction", f"q: {message}")


@pytest.mark.parametrize(
    "query",
    [
        "a FROM f WHERE a.x <= 5 AND a.x >= 5",
        "a, b FROM f AS a, f AS b WHERE a.x > 5 AND b.x < 3 AND a.x > b.x",
        "a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 2 SEMANTICS MUST",
        "a FROM e WHERE a.x < NULL AND a.x > 3",
        # 0.1 + 0.7 is below 0.8 in doubles.
        "a, b FROM f AS a, f AS b WHERE a.x - b.x <= 0.1 AND b.x <= 0.7 AND a.x >= 0.8",
    ],
)
def test_constraints_that_some_values_satisfy_are_accepted(query: str) -> None:
    assert plan(query).refused is None


@examples(40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a.x", "b.x", "a.x - b.x", "ABS(a.x - b.x)", "ABS(b.x)"]),
            st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]),
            st.integers(-2, 2),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_query_is_refused_exactly_if_no_values_satisfy_it(constraints: list[tuple[str, str, int]]) -> None:
    """Two numbers that satisfy bounds of whole numbers exist among the multiples of a quarter, if any do."""
    texts = [f"{form} {op} {bound}" for form, op, bound in constraints]
    grid = [k / 4 for k in range(-24, 25)]
    possible = any(
        all(_COMPARE[op](_FORMS[form](a, b), bound) for form, op, bound in constraints) for a in grid for b in grid
    )
    refused = plan(f"a, b FROM f AS a, f AS b WHERE {' AND '.join(texts)}").refused
    event("possible" if possible else "contradictory")
    assert (refused is None) == possible


_FORMS: dict[str, Callable[[float, float], float]] = {
    "a.x": lambda a, b: a,
    "b.x": lambda a, b: b,
    "a.x - b.x": lambda a, b: a - b,
    "ABS(a.x - b.x)": lambda a, b: abs(a - b),
    "ABS(b.x)": lambda a, b: abs(b),
}


_COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne
}  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "equated"),
    [
        ("a.zone = b.zone", ("zone", "zone")),
        ("a.zone = b.id", None),  # a row of one stream goes to one bucket
        ("a.zone < b.zone", None),
        ("a.zone = b.zone OR a.id = b.id", None),
    ],
)
def test_rows_are_routed_by_equated_keys(condition: str, equated: tuple[str, str] | None) -> None:
    text = f"{STREAM} CREATE QUERY q AS MONITOR a, b FROM e AS a, e AS b WHERE a.x < b.x AND ({condition});"
    assert analyse(bound_query(text, "q")).equated == equated


def test_different_columns_of_different_streams_may_be_equated() -> None:
    text = f"{STREAM} CREATE QUERY q AS MONITOR a, b FROM e AS a, f AS b WHERE a.x < b.x AND a.id = b.zone;"
    assert analyse(bound_query(text, "q")).equated == ("id", "zone")


def test_may_over_three_names_with_a_window_needs_single_intervals() -> None:
    query = "a, b, c FROM e WHERE ABS(a.x - b.x) > 5 AND ABS(b.x - c.x) <= 5 SEMANTICS MAY"
    assert plan(query).refused is None
    refused = plan(f"{query} WITHIN 1").refused
    assert refused is not None
    assert "two intervals" in refused.message


def test_a_buffer_of_three_names_does_not_stream() -> None:
    query = "a, b, c FROM e WHERE ABS(a.x - b.x) <= 5 AND ABS(b.x - c.x) <= 5 BUFFER 10"
    assert plan(query).streams.startswith("BUFFER supports one or two names")
    assert plan("a, b FROM e WHERE ABS(a.x - b.x) <= 5 BUFFER 10").streams == "yes"


def test_the_graph_has_the_names_and_the_constraints_between_them() -> None:
    graph = plan("a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 5 AND a.y > 2").graph
    assert graph is not None
    assert graph.nodes == (("a", "a.y in (2, inf)"), ("b", ""))
    assert [(edge.one, edge.other, edge.label) for edge in graph.edges] == [("a", "b", "a.x - b.x in [-5, 5]")]


@pytest.mark.parametrize(("errors", "most"), [("1", 4), ("1 NORMAL 1", 3), ("0", 9)])
def test_the_number_of_uncertain_values_that_are_connected_in_a_cycle_is_limited(errors: str, most: int) -> None:
    stream = f"CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {errors} PERIOD 1;"
    for count in (3, 4):
        names = "abcd"[:count]
        pairs = [*itertools.pairwise(names), (names[0], names[-1])]
        links = " AND ".join(f"ABS({one}.x - {other}.x) < 9" for one, other in pairs)
        for semantics in ("EXPECTED", "MUST"):
            text = f"{stream} CREATE QUERY q AS MONITOR {', '.join(names)} FROM e WHERE {links} SEMANTICS {semantics};"
            catalog = declared(text)
            refused = Planner(catalog).prepare(catalog.query("q")).plan.refused
            assert (refused is not None) == (count > most and semantics != "MUST")


@pytest.mark.parametrize(
    ("query", "routing"),
    [
        ("a FROM e WHERE a.x < 1", "predictions are routed by key"),
        ("a, b FROM e WHERE a.x < b.x AND a.zone = b.zone", "predictions are routed by a.zone = b.zone"),
        ("a, b FROM e WHERE a.x < b.x AND a.zone < 'z'", "each pair of parts of the keys has a bucket;"),
        ("a, b, c FROM e WHERE a.x < b.x AND b.x < c.x", "each triple of parts of the keys has a bucket;"),
        (
            "a, b, c, d FROM e WHERE a.x < b.x AND b.x < c.x AND c.x < d.x",
            "each quadruple of parts of the keys has a bucket;",
        ),
    ],
)
def test_routing(query: str, routing: str) -> None:
    assert plan(query).routing.startswith(routing)
