"""The analysis of CONSTRAIN queries: implied bounds, contradictions, equal columns and the strategy."""

from __future__ import annotations

from math import inf

import pytest
from tests.local import bound_query

from anabranch.constrain.analysis import ConstrainAnalysis, analyse, strategy_of

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp DOUBLE, n INTEGER) TIME t DOUBLE SPACE (x, y);
    CREATE STREAM f KEY (id STRING) VALUE (n DOUBLE) TIME t DOUBLE SPACE (x, y);
    CREATE STREAM stays KEY (id STRING) TIME (began, ended) DOUBLE SPACE (x, y);
"""


def analysis_of(query: str) -> ConstrainAnalysis:
    return analyse(bound_query(f"{STREAMS} CREATE QUERY q AS CONSTRAIN {query};", "q"))


def test_bounds_of_chains_are_implied() -> None:
    analysis = analysis_of(
        "v1, v2, v3 FROM e WHERE v2.t - v1.t IN [0, 5] AND v3.t - v2.t IN [1, 5] "
        "AND DISTANCE(v1, v2) < 1 AND DISTANCE(v2, v3) < 1"
    )
    assert (-analysis.times.value[2, 0], analysis.times.value[0, 2]) == (1, 10)
    assert str(analysis.distances.bound(0, 2)) == "< 2"
    assert (analysis.span, analysis.extent) == (10, 2)
    assert analysis.contradiction() is None
    assert analysis.unbounded() is None


@pytest.mark.parametrize(
    "bound",
    [
        "v.t - u.t <= 5 AND u.t <= v.t",
        "v.t <= u.t + 5 AND u.t - v.t <= 0",
        "v.t - 5 <= u.t AND v.t >= u.t",
        "5 >= v.t - u.t AND 0 <= v.t - u.t",
        "v.t - u.t BETWEEN 0 AND 5",
        "v.t + 1 - u.t <= 3 + 3 AND u.t <= v.t",
    ],
)
def test_a_bound_on_time_is_recognised_in_any_form(bound: str) -> None:
    analysis = analysis_of(f"u, v FROM e WHERE {bound}")
    assert (-analysis.times.value[1, 0], analysis.times.value[0, 1]) == (0, 5)


@pytest.mark.parametrize("bound", ["SPAN(v, v) <= 3", "ABS(v.t - v.t) <= 3", "v.t - v.t <= 3"])
def test_a_bound_within_one_variable_applies_in_both_directions(bound: str) -> None:
    analysis = analysis_of(f"v*5 FROM e WHERE {bound}")
    assert (analysis.times.value[0, 1], analysis.times.value[1, 0]) == (3, 3)


def test_bounds_on_the_start_of_events_imply_bounds_on_their_end() -> None:
    analysis = analysis_of("u, v FROM stays WHERE v.t_from - u.t IN [0, 5] AND v.t - v.t_from <= 2 AND v.t <= u.t + 9")
    # v ends at or after its start, which is at or after the end of u, and at most 2 later.
    assert (-analysis.times.value[1, 0], analysis.times.value[0, 1]) == (0, 7)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "u, v, w FROM e WHERE v.t - u.t >= 3 AND w.t - v.t >= 2 AND w.t - u.t < 5",
            "the time from w to v is <= -2, the time from v to u is <= -3, the time from u to w is < 5",
        ),
        ("u, v FROM e WHERE u.t < v.t AND v.t < u.t", "the time from v to u is < 0, the time from u to v is < 0"),
        ("v*2 FROM e WHERE v.t < v.t", "the time from v' to v is < 0"),
        ("u, v FROM stays WHERE u.t < v.t_from AND v.t <= u.t", "the start of v"),
        (
            "u, v FROM e WHERE DISTANCE(u, v) < 1 AND DISTANCE(u, v) >= 1",
            "the distance from u to v must be >= 1, but other bounds make it < 1",
        ),
        (
            "u, v, w FROM e WHERE DISTANCE(u, v) <= 1 AND DISTANCE(v, w) <= 1 AND DISTANCE(u, w) > 2",
            "the distance from u to w must be > 2, but other bounds make it <= 2",
        ),
        ("u, v FROM e WHERE DISTANCE(u, v) < -1", "the distance from"),
    ],
)
def test_a_contradiction_names_its_cycle(query: str, message: str) -> None:
    finding = analysis_of(query).contradiction()
    assert finding is not None
    assert message in finding.message


@pytest.mark.parametrize(
    "bounds",
    [
        "DISTANCE(u, v) <= 0.7 AND DISTANCE(v, w) <= 0.1 AND DISTANCE(u, w) >= 0.8",
        "v.t - u.t <= 0.7 AND w.t - v.t <= 0.1 AND w.t - u.t >= 0.8",
    ],
)
def test_decimal_bounds_that_meet_do_not_contradict_each_other(bounds: str) -> None:
    assert analysis_of(f"u, v, w FROM e WHERE {bounds}").contradiction() is None


@pytest.mark.parametrize(
    ("query", "pair"),
    [
        ("u, v FROM e", ("u", "v")),
        ("u, v, w FROM e WHERE SPAN(u, v) <= 3 AND v.t - w.t <= 5", ("u", "w")),
        ("v*2 FROM e WHERE v.kind = v.kind", ("v", "v'")),
    ],
)
def test_a_pair_without_a_bound_on_time_is_named(query: str, pair: tuple[str, str]) -> None:
    assert set(analysis_of(query).unbounded() or ()) == set(pair)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("u, v, w FROM e WHERE u.id = v.id AND v.id = w.id", (("id",), ("id",), ("id",))),
        ("u, v, w FROM e WHERE u.id = v.id", ((), (), ())),
        ("u, v FROM e WHERE u.id = v.kind", (("id",), ("kind",))),
        ("v*3 FROM e WHERE v.kind = v.kind", (("kind",),)),
        ("v*2 FROM e WHERE v.id = v.kind", ((),)),
        ("u, v FROM e WHERE u.id = v.id AND u.kind = v.kind", (("id", "kind"), ("id", "kind"))),
        ("u, v FROM e WHERE u.id = v.id OR u.kind = v.kind", ((), ())),
    ],
)
def test_equal_columns_have_a_column_of_every_variable(query: str, columns: tuple) -> None:
    equal_columns, as_doubles = analysis_of(query).equal_columns
    assert equal_columns == columns
    assert not any(as_doubles)


def test_integers_are_compared_with_doubles_as_doubles() -> None:
    equal_columns, as_doubles = analysis_of("u, v FROM e AS u, f AS v WHERE u.n = v.n").equal_columns
    assert (equal_columns, as_doubles) == ((("n",), ("n",)), (True,))


def test_the_strategy_depends_on_the_bounds_unless_it_is_stated() -> None:
    near, anywhere = analysis_of("v*2 FROM e WHERE DISTANCE(v, v) < 1"), analysis_of("v*2 FROM e WHERE SPAN(v, v) < 1")
    named = analysis_of("v*2 FROM e WHERE DISTANCE(v, v) < 1 STRATEGY LOOSE")
    assert anywhere.extent == inf
    assert [strategy_of([analysis]) for analysis in (near, anywhere, named)] == ["TIGHT", "NOINDEX", "LOOSE"]
