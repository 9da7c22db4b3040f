"""A window per constraint, `ABS(a.x - b.x) <= 5 WITHIN 3`: against its definition, a linear program, and by hand."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import assert_same
from tests.monitor.local import run_of
from tests.monitor.test_distance import refusals
from tests.monitor.test_or import STREAM, accepted, assert_points
from tests.splits import splits

from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan

SHAPES = (
    "{0} OR {1}",
    "({0} OR {1}) AND {2}",
    "{0} AND {1} OR {2}",
    "NOT ({0} AND {1})",
    "({0} OR {1}) WITHIN 1.2 AND {2}",
    "NOT ({0} AND {1}) WITHIN 0.6 OR {2}",
    "{0} AND {1}",
)


@st.composite
def constraints(draw: Draw, names: int) -> str:
    """A constraint on two names with or without a window, or on one name."""
    column, op = draw(st.sampled_from("xy")), draw(st.sampled_from(["<=", ">=", "<"]))
    bound = draw(st.sampled_from([0, 1, -1, 0.5, 2]))
    if names == 1:
        return f"a.{column} {op} {bound}"
    difference = f"a.{column} - b.{column}"
    condition = draw(st.sampled_from([f"{difference} {op} {bound}", f"ABS({difference}) {op} {abs(bound)}"]))
    window = draw(st.sampled_from(["", 0.6, 1.2, 2.2]))
    return f"({condition} WITHIN {window})" if window else condition


@st.composite
def cases(draw: Draw) -> Case:
    """Two names and a few predictions."""
    names = [2, *(draw(st.sampled_from([2, 2, 1])) for _ in range(2))]
    where = draw(st.sampled_from(SHAPES)).format(*(draw(constraints(number)) for number in names))
    within = draw(st.sampled_from([0.6, 1.7]))  # with 0, alternatives would have no area
    semantics = draw(st.sampled_from(["EXPECTED", "MAY", "MUST"]))
    rows: Rows = {"e": []}
    for id in "abab"[: draw(st.integers(2, 4))]:
        row: dict[str, Any] = {"id": id, "t": draw(st.integers(0, 2))}
        for column in "xy":
            row[column] = draw(st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]))
            row[f"{column}_rate"] = draw(st.sampled_from([0.0, 1.0, -1.0]))
        if all((row["id"], row["t"]) != (other["id"], other["t"]) for other in rows["e"]):
            rows["e"].append(row)
    query = (
        f"CREATE QUERY q AS MONITOR a, b FROM e WHERE ({where}) AND a.id < b.id WITHIN {within} SEMANTICS {semantics};"
    )
    return Case(STREAM.format(x=draw(st.sampled_from([0, 0.5])), y=0) + query, "q", rows, {})


@examples(80)
@given(cases())
def test_points_are_in_a_region_if_and_only_if_they_match(case: Case) -> None:
    query = accepted(case)
    if query is not None and analyse(query).window > 0:
        event("with OR" if query.junctions else "without OR")
        assert_points(query, case, run_of(case, [case.rows]).rows())


@examples(40)
@given(st.data(), cases())
def test_any_split_gives_the_same_answers(data: st.DataObject, case: Case) -> None:
    if accepted(case) is not None:
        live = run_of(case, data.draw(splits(case.rows)), live=True).rows()
        assert_same(live, run_of(case, [case.rows]).rows(), ["a", "b"])


# ---------------------------------------------------------------- three names

NAMES = "abc"


@st.composite
def triples(draw: Draw) -> tuple[Case, dict[tuple[int, int], tuple[float, float]]]:
    """Three names; for each pair that is compared the largest difference of x, and the window."""
    pairs = [(0, 1), (1, 2), *draw(st.sampled_from([[], [(0, 2)]]))]
    within = draw(st.sampled_from([0, 0.9]))
    own = {pair: draw(st.sampled_from([None, 0, 0.35, 1.15, 2])) for pair in pairs}
    bounds = {pair: draw(st.sampled_from([0.3, 1.1, 2])) for pair in pairs}
    texts = []
    for (one, other), window in own.items():
        text = f"ABS({NAMES[one]}.x - {NAMES[other]}.x) <= {bounds[one, other]}"
        texts.append(text if window is None else f"({text} WITHIN {window})")
    where = " AND ".join([*texts, "a.id < b.id AND b.id < c.id"])
    rows: Rows = {
        "e": [
            {
                "id": id, "t": draw(st.integers(0, 2)), "x": draw(st.sampled_from([0.0, 1.03, -0.7, 2.4])),
                "x_rate": draw(st.sampled_from([0.0, 1.0, -0.8, 0.45])), "y": 0.0, "y_rate": 0.0,
            }
            for id in "abca"[: draw(st.integers(3, 4))]
        ]
    }  # fmt: skip
    semantics, error = draw(st.sampled_from([("EXPECTED", 0.5), ("EXPECTED", 0), ("MUST", 0.1)]))
    query = f"CREATE QUERY q AS MONITOR a, b, c FROM e WHERE {where} WITHIN {within} SEMANTICS {semantics};"
    case = Case(STREAM.format(x=error, y=0) + query, "q", rows, {})
    narrower = 2 * error if semantics == "MUST" else 0.0
    limits = {pair: (bounds[pair] - narrower, within if own[pair] is None else own[pair]) for pair in pairs}
    return case, limits


def valid_range(
    chosen: tuple[dict[str, Any], ...], ends: list[float], limits: dict[tuple[int, int], tuple[float, float]],
    margin: float,
) -> tuple[float, float] | None:  # fmt: skip
    """The range of the latest of three instants, by linear programs; None if none match. All is widened by a margin."""
    rows, most = [], []
    for (one, other), (bound, window) in limits.items():
        apart, difference = np.zeros(4), np.zeros(4)
        apart[[one, other]] = 1, -1
        rates = chosen[one]["x_rate"], chosen[other]["x_rate"]
        difference[[one, other]] = rates[0], -rates[1]
        start = (chosen[one]["x"] - rates[0] * chosen[one]["t"]) - (chosen[other]["x"] - rates[1] * chosen[other]["t"])
        rows += [apart, -apart, difference, -difference]
        most += [window, window, bound + margin - start, bound + margin + start]
    for name in range(3):
        rows.append(np.eye(4)[name] - np.eye(4)[3])  # the last variable is at least each instant
        most.append(0.0)
    bounds = [*((row["t"], end + margin) for row, end in zip(chosen, ends, strict=True)), (None, None)]
    costs = [*-np.eye(4)[:3], np.eye(4)[3]]
    results = [scipy.optimize.linprog(cost, np.array(rows), most, bounds=bounds) for cost in costs]
    if any(result.status == 2 for result in results):
        return None
    return float(results[3].fun), max(-float(result.fun) for result in results[:3])


@examples(80)
@given(st.data(), triples())
def test_three_names_have_the_ranges_of_a_linear_program(
    data: st.DataObject, drawn: tuple[Case, dict[tuple[int, int], tuple[float, float]]]
) -> None:
    case, limits = drawn
    if plan(analyse(bound_query(case.workbook, case.query))).refused:
        return
    answers = run_of(case, [case.rows]).rows()
    live = run_of(case, data.draw(splits(case.rows)), live=True).rows()
    assert_same(live, answers, list(NAMES))
    rows = {(row["id"], row["t"], row["x"], row["x_rate"]): row for row in case.rows["e"]}.values()
    for chosen in permutations(rows, 3):
        if [row["id"] for row in chosen] != list(NAMES):
            continue
        later = [[other["t"] for other in rows if other["id"] == row["id"] and other["t"] > row["t"]] for row in chosen]
        ends = [float(min([row["t"] + 3, *times])) for row, times in zip(chosen, later, strict=True)]
        narrow, exact, wide = (valid_range(chosen, ends, limits, margin) for margin in (-1e-6, 0.0, 1e-6))
        structs = [{"id": row["id"], "t": row["t"]} for row in chosen]
        found = [answer for answer in answers if [answer[name] for name in NAMES] == structs]
        if len({(row["id"], row["t"]) for row in rows}) == len(rows):
            event("no answer" if wide is None else "an answer" if narrow else "a contact")
            if wide is None:
                assert not found
            elif narrow is not None and exact is not None:
                (answer,) = found
                assert (answer["valid_from"], answer["valid_to"]) == pytest.approx(exact, abs=1e-5)


# ---------------------------------------------------------------- by hand

CARS = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER SPACE (x, y) "
    "MODEL PREDICTED ERROR 0 PERIOD 10;"
)
#: a moves to the right, and reaches the x of b at 5 and that of c at 8.
ROWS: Rows = {
    "e": [
        {"id": id, "t": 0, "x": x, "x_rate": rate, "y": 0.0, "y_rate": 0.0}
        for id, x, rate in (("a", 0.0, 1.0), ("b", 5.0, 0.0), ("c", 8.0, 0.0))
    ]
}


def answers_to(query: str) -> list[dict[str, Any]]:
    return run_of(Case(f"{CARS}CREATE QUERY q AS MONITOR {query};", "q", ROWS, {}), [ROWS]).rows()


@pytest.mark.parametrize(
    ("where", "corners"),
    [
        # a is at 5 at ta = 5: the window is a segment of tb.
        ("(a.x - b.x = 0 WITHIN 2) AND", [(5, 3), (5, 7)]),
        ("(a.x - b.x = 0 WITHIN 2) AND a.y - b.y = 0 AND", [(5, 5)]),  # the other one has the window 0
        ("(a.x - b.x = 0 WITHIN 2 AND a.y - b.y = 0 WITHIN 1) AND", [(5, 4), (5, 6)]),
        ("((a.x - b.x = 0 AND a.y - b.y = 0) WITHIN 1) AND", [(5, 4), (5, 6)]),
        ("((a.x - b.x = 0 WITHIN 2 AND a.y - b.y = 0) WITHIN 1) AND", [(5, 4), (5, 6)]),
        ("(a.x - b.x BETWEEN 0 AND 1 WITHIN 1) AND", [(5, 4), (6, 5), (6, 7), (5, 6)]),
        ("(DISTANCE(a, b) <= 1 WITHIN 2 AND a.x >= 5) AND", [(5, 3), (6, 4), (6, 8), (5, 7)]),
    ],
)
def test_the_smallest_window_of_two_names_applies(where: str, corners: list[tuple[float, float]]) -> None:
    (answer,) = answers_to(f"a, b FROM e WHERE {where} a.id = 'a' AND b.id = 'b'")
    assert answer["boundary"] == [pytest.approx(corner) for corner in corners]


def test_alternatives_have_windows_of_their_own() -> None:
    """a is at b in a window of 1, or at c in a window of 3; both are within 10 of each other."""
    query = "a, b FROM e WHERE (a.x - b.x = 0 WITHIN 1 OR a.x - b.x = 3 WITHIN 3) AND a.id = 'a' AND b.id = 'b'"
    answers = sorted(answers_to(query), key=lambda answer: answer["valid_from"])
    assert [answer["boundary"] for answer in answers] == [
        [pytest.approx(corner) for corner in own] for own in ([(5, 4), (5, 6)], [(8, 5), (8, 10)])
    ]


def test_not_does_not_negate_the_window() -> None:
    (answer,) = answers_to("a, b FROM e WHERE NOT (a.x - b.x < 4 WITHIN 1) AND a.id = 'a' AND b.id = 'b'")
    assert answer["boundary"] == [pytest.approx(corner) for corner in [(9, 8), (10, 9), (10, 10), (9, 10)]]


def test_one_pair_of_three_names_is_compared_at_the_same_instant() -> None:
    """a passes b at 5. It is as far from c as b is, at the same instant, within 2 of this time."""
    (answer,) = answers_to(
        "a, b, c FROM e WHERE (a.x - b.x = 0 WITHIN 2) AND (b.x - c.x = -3 WITHIN 0) "
        "AND a.id = 'a' AND b.id = 'b' AND c.id = 'c'"
    )
    assert (answer["valid_from"], answer["valid_to"]) == (5, 7)
    assert sorted(answer["boundary"]) == [pytest.approx(corner) for corner in [(5, 3, 3), (5, 7, 7)]]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("(a.x < 5 WITHIN 3) AND b.x < 3", "needs a constraint that compares predicted values of two names"),
        ("a.id < b.id WITHIN 3 AND b.x < 3", "needs a constraint that compares predicted values of two names"),
        ("(a.x - a.y < 5 WITHIN 3) AND b.x < 3", "needs a constraint that compares predicted values of two names"),
        ("(WITHIN(a, 'POLYGON((0 0, 1 0, 1 1, 0 0))') WITHIN 3)", "needs a constraint that compares predicted values"),
        ("(ABS(a.x - b.x) <= 5 WITHIN -3)", "WITHIN must be 0 or more, not -3"),
    ],
)
def test_what_has_no_window_is_refused_without_data(where: str, message: str) -> None:
    refused = refusals(f"{CARS}CREATE QUERY q AS MONITOR a, b FROM e WHERE {where};")
    assert any(message in finding.message and finding.hint for finding in refused), refused


def test_other_kinds_have_no_windows_in_conditions() -> None:
    workbook = (
        "CREATE STREAM s KEY (id) VALUE (x DOUBLE) TIME t; "
        "CREATE QUERY q AS SEQUENCE (a, b) FROM s AS a, s AS b WHERE (a.x < b.x WITHIN 3) WITHIN 5;"
    )
    (refused,) = refusals(workbook)
    assert refused.message == "only MONITOR allows WITHIN behind a condition"


def test_explain_names_the_windows() -> None:
    text = "ABS(a.x - b.x) <= 5 WITHIN 3 AND ABS(b.x - c.x) <= 5 WITHIN 0"
    described = plan(analyse(bound_query(f"{CARS}CREATE QUERY q AS MONITOR a, b, c FROM e WHERE {text};", "q")))
    assert described.why[-2:] == (
        "the instants of a and b are at most 3 apart",
        "the instants of b and c are the same",
    )
    text = "(ABS(a.x - b.x) <= 5 WITHIN 3 OR a.y > b.y WITHIN 1)"
    described = plan(analyse(bound_query(f"{CARS}CREATE QUERY q AS MONITOR a, b FROM e WHERE {text};", "q")))
    assert "a.y - b.y in (0, inf) and instants at most 1 apart" in described.why[0]
    assert described.why[-1] == "compared instants are at most 3 apart"
