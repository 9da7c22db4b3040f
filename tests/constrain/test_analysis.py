"""What a query says of itself: what follows from its bounds, what contradicts, and what must meet."""

from __future__ import annotations

from math import inf

import pytest
from tests.local import bound_query

from anabranch.constrain.analysis import ConstrainAnalysis, analyse, strategy_of

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp DOUBLE, n INTEGER) TIME t DOUBLE SPACE (x, y);
    CREATE STREAM f KEY (id STRING) VALUE (n DOUBLE) TIME t DOUBLE SPACE (x, y);
    CREATE STREAM lasting KEY (id STRING) TIME (began, ended) DOUBLE SPACE (x, y);
"""


def analysis_of(query: str) -> ConstrainAnalysis:
    return analyse(bound_query(f"{STREAMS} CREATE QUERY q AS CONSTRAIN {query};", "q"))


def test_bounds_of_chains_follow() -> None:
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
def test_a_bound_on_time_is_seen_however_it_is_written(bound: str) -> None:
    analysis = analysis_of(f"u, v FROM e WHERE {bound}")
    assert (-analysis.times.value[1, 0], analysis.times.value[0, 1]) == (0, 5)


@pytest.mark.parametrize("bound", ["SPAN(v, v) <= 3", "ABS(v.t - v.t) <= 3", "v.t - v.t <= 3"])
def test_events_of_one_variable_bound_each_other_both_ways(bound: str) -> None:
    analysis = analysis_of(f"v*5 FROM e WHERE {bound}")
    assert (analysis.times.value[0, 1], analysis.times.value[1, 0]) == (3, 3)


def test_bounds_on_the_beginning_of_events_that_last_reach_their_ends() -> None:
    analysis = analysis_of(
        "u, v FROM lasting WHERE v.t_from - u.t IN [0, 5] AND v.t - v.t_from <= 2 AND v.t <= u.t + 9"
    )
    # v ends at or after its beginning, which is at or after the end of u. What is asked of v alone bounds no pair.
    assert (-analysis.times.value[1, 0], analysis.times.value[0, 1]) == (0, 9)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "u, v, w FROM e WHERE v.t - u.t >= 3 AND w.t - v.t >= 2 AND w.t - u.t < 5",
            "the time from w to v is <= -2, the time from v to u is <= -3, the time from u to w is < 5",
        ),
        ("u, v FROM e WHERE u.t < v.t AND v.t < u.t", "the time from v to u is < 0, the time from u to v is < 0"),
        ("v*2 FROM e WHERE v.t < v.t", "the time from v' to v is < 0"),
        ("u, v FROM lasting WHERE u.t < v.t_from AND v.t <= u.t", "the beginning of v"),
        ("u, v FROM e WHERE DISTANCE(u, v) < 1 AND DISTANCE(u, v) >= 1", "u and v must be >= 1 apart"),
        (
            "u, v, w FROM e WHERE DISTANCE(u, v) <= 1 AND DISTANCE(v, w) <= 1 AND DISTANCE(u, w) > 2",
            "u and w must be > 2 apart, and can only be <= 2",
        ),
        ("u, v FROM e WHERE DISTANCE(u, v) < -1", "the way from"),
    ],
)
def test_a_contradiction_names_its_cycle(query: str, told: str) -> None:
    finding = analysis_of(query).contradiction()
    assert finding is not None
    assert told in finding.message


@pytest.mark.parametrize(
    ("query", "pair"),
    [
        ("u, v FROM e", ("u", "v")),
        ("u, v, w FROM e WHERE SPAN(u, v) <= 3 AND v.t - w.t <= 5", ("u", "w")),
        ("v*2 FROM e WHERE v.kind = v.kind", ("v", "v'")),
    ],
)
def test_what_cannot_be_forgotten_is_named(query: str, pair: tuple[str, str]) -> None:
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
def test_events_meet_by_values_that_are_equal_in_all_of_them(query: str, columns: tuple) -> None:
    found, as_doubles = analysis_of(query).equal_columns
    assert found == columns
    assert not any(as_doubles)


def test_whole_numbers_meet_doubles_as_doubles() -> None:
    found, as_doubles = analysis_of("u, v FROM e AS u, f AS v WHERE u.n = v.n").equal_columns
    assert (found, as_doubles) == ((("n",), ("n",)), (True,))


def test_the_strategy_is_chosen_by_what_is_bounded_unless_it_is_named() -> None:
    near, anywhere = analysis_of("v*2 FROM e WHERE DISTANCE(v, v) < 1"), analysis_of("v*2 FROM e WHERE SPAN(v, v) < 1")
    named = analysis_of("v*2 FROM e WHERE DISTANCE(v, v) < 1 STRATEGY LOOSE")
    assert anywhere.extent == inf
    assert [strategy_of([each]) for each in (near, anywhere, named)] == ["TIGHT", "NOINDEX", "LOOSE"]
