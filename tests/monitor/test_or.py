"""OR over constraints: unions of regions, and the probability that at least one alternative holds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, permutations

import pytest
import shapely
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.local import run_of
from tests.oracles.monitor import Answer
from tests.oracles.monitor_or import are_comparable, matches_at, probability_at
from tests.oracles.monitor_predictions import Prediction, predictions
from tests.splits import splits

from anabranch.errors import Finding
from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan
from anabranch.monitor.query import BoundMonitor

STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER "
    "MODEL PREDICTED ERROR (x = {x}, y = {y}) PERIOD 3;"
)
SEMANTICS = ("EXPECTED", "MAY", "MUST")
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


@st.composite
def conditions(draw: Draw, labels: str, errors: dict[str, float], rows: bool) -> str:
    """A constraint or, with `rows`, a condition on a row."""
    bound = draw(st.sampled_from([0, 1, -1, 0.5, 2]))
    op = draw(st.sampled_from(["<=", "<", ">=", ">"]))
    label, column = draw(st.sampled_from(labels)), draw(st.sampled_from("xy"))
    shapes = [f"{label}.{column} {op} {bound}", f"ABS({label}.{column}) {op} {abs(bound)}"]
    if len(labels) == 2:
        shapes += [f"a.{column} - b.{column} {op} {bound}", f"ABS(a.{column} - b.{column}) {op} {abs(bound)}"] * 2
    shapes += [f"{label}.x - {label}.y {op} {bound}"]
    shapes += [f"{label}.id = 'a'", f"{label}.x_rate > 0"] if rows else []
    if not errors[column]:
        shapes += [f"{label}.{column} = {bound}", f"{label}.{column} IN ({bound}, 2)"]
    return draw(st.sampled_from(shapes))


@st.composite
def wheres(draw: Draw, labels: str, errors: dict[str, float]) -> str:
    """AND over OR, OR over AND, and NOT, of two to four conditions."""
    one, two, three, four = (draw(conditions(labels, errors, rows=number > 0)) for number in range(4))
    shapes = ["{0} OR {1}", "({0} OR {1}) AND {2}", "{0} AND {1} OR {2}", "NOT ({0} AND {1})", "NOT ({0} OR {1})"]
    shapes += ["({0} OR {1}) AND ({2} OR {3})", "{0} OR ({1} OR {2}) AND {3}", "{0} AND ({1} OR NOT ({2} AND {3}))"]
    return draw(st.sampled_from(shapes)).format(one, two, three, four)


@st.composite
def cases(
    draw: Draw, rates: tuple[float, ...], windows: tuple[str, ...], errors: tuple[float, ...] = (0, 0.5, 1)
) -> Case:
    """One or two names and a few predictions; values, errors and bounds are multiples of a half."""
    labels = draw(st.sampled_from(["a", "ab", "ab"]))
    own_errors = {column: draw(st.sampled_from(errors)) for column in "xy"}
    if labels == "ab" and all(own_errors.values()):
        own_errors["y"] = 0  # the worlds of four uncertain values are too many
    where = draw(wheres(labels, own_errors))
    keys = " AND a.id < b.id" if labels == "ab" else ""
    within = draw(st.sampled_from(windows)) if labels == "ab" else ""
    semantics = draw(st.sampled_from(SEMANTICS))
    rows: Rows = {"e": []}
    for id in "abab"[: draw(st.integers(2, 4))]:
        row = {"id": id, "t": draw(st.integers(0, 2))}
        for column in "xy":
            row[column] = draw(st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]))
            row[f"{column}_rate"] = draw(st.sampled_from(rates))
        if all((row["id"], row["t"]) != (other["id"], other["t"]) for other in rows["e"]):
            rows["e"].append(row)
    query = f"CREATE QUERY q AS MONITOR {', '.join(labels)} FROM e WHERE ({where}){keys}{within} SEMANTICS {semantics};"
    return Case(STREAM.format(**own_errors) + query, "q", rows, {})


def combinations(query: BoundMonitor, rows: Rows) -> Iterator[tuple[Prediction, ...]]:
    """The predictions of all combinations whose keys satisfy WHERE."""
    known = predictions(query.operands[0].stream, rows["e"])
    for chosen in permutations(known, len(query.operands)):
        if [prediction.key for prediction in chosen] == sorted({prediction.key for prediction in chosen}):
            yield chosen


def about(answers: list[Answer], chosen: tuple[Prediction, ...]) -> list[Answer]:
    """The answers about some predictions, in order of time."""
    structs = [prediction.answer_struct for prediction in chosen]
    own = [answer for answer in answers if [answer[label] for label in "ab"[: len(structs)]] == structs]
    return sorted(own, key=lambda answer: answer["valid_from"])


def accepted(case: Case) -> BoundMonitor | None:
    """The query, unless it is refused, as one with contradictory constraints is."""
    query = bound_query(case.workbook, case.query)
    refused = plan(analyse(query)).refused
    event("refused" if refused else "accepted")
    return None if refused else query


@examples(80)
@given(st.data(), cases(rates=(0.0,), windows=("", " WITHIN 2")))
def test_without_rates_the_probability_is_the_share_of_worlds(data: st.DataObject, case: Case) -> None:
    """In batch and for any split: the predictions match at all instants or at none."""
    query = accepted(case)
    if query is None:
        return
    for answers in (
        run_of(case, [case.rows]).rows(),
        run_of(case, data.draw(splits(case.rows)), live=True).rows(),
    ):
        for chosen in combinations(query, case.rows):
            low = max(prediction.time for prediction in chosen)
            high = min(prediction.end for prediction in chosen)
            gap = low - high
            if gap >= 0 and (query.within == 0 or gap >= query.within):
                continue
            instants = [prediction.time for prediction in chosen]
            is_match = matches_at(query, chosen, instants, HALF)
            event(f"{query.semantics} {'matches' if is_match else 'does not match'}")
            chance = probability_at(query, chosen, instants, HALF)
            expected = [pytest.approx(float(chance), abs=1e-9)] if is_match else []
            assert [answer["probability"] for answer in about(answers, chosen)] == expected


def expected_parts(
    query: BoundMonitor, chosen: tuple[Prediction, ...], instants: list[Fraction], step: Fraction
) -> list[tuple[Fraction, Fraction]]:
    """The matching instants of equal steps, as ranges; they change only at every second step."""
    truths = [matches_at(query, chosen, [instant] * len(chosen), step) for instant in instants]
    parts: list[tuple[Fraction, Fraction]] = []
    for number, (instant, truth) in enumerate(zip(instants, truths, strict=True)):
        if truth:
            # A range that begins or ends between two steps is open there, at the step on its other side.
            begin = instant if number % 2 == 0 else instant - step
            end = instant if number % 2 == 0 else instant + step
            if parts and number and truths[number - 1]:
                begin = parts.pop()[0]
            parts.append((begin, end))
    return parts


@examples(50)
@given(st.data(), cases(rates=(0.0, 1.0, -1.0), windows=("",), errors=(0, 0.5)))
def test_at_one_instant_the_regions_are_those_of_the_definition(data: st.DataObject, case: Case) -> None:
    """Values are halves and rates differ by at most 2, so matches begin and end at multiples of a quarter."""
    query = accepted(case)
    if query is None:
        return
    batch = run_of(case, [case.rows]).rows()
    live = run_of(case, data.draw(splits(case.rows)), live=True).rows()
    for chosen in list(combinations(query, case.rows))[:2]:
        low = max(prediction.time for prediction in chosen)
        high = min(prediction.end for prediction in chosen)
        instants = [low + QUARTER / 2 * number for number in range(int((high - low) / QUARTER * 2))]
        if instants:
            expected = expected_parts(query, chosen, instants, QUARTER / 2)
            event(f"{len(expected)} regions")
            for answers in (batch, live):
                found = [(answer["valid_from"], answer["valid_to"]) for answer in about(answers, chosen)]
                assert found == [pytest.approx(tuple(map(float, part)), abs=1e-9) for part in expected]
                for (_, end), (begin, _) in pairwise(found):
                    assert begin >= end


@examples(40)
@given(cases(rates=(0.0, 1.0, -1.0), windows=(" WITHIN 1", " WITHIN 20"), errors=(0, 0.5)))
def test_with_a_window_points_are_in_a_region_if_and_only_if_they_match(case: Case) -> None:
    """At points of a lattice that are not on a side, because sides are at multiples of a quarter."""
    query = accepted(case)
    if query is not None and len(query.operands) == 2:
        assert_points(query, case, run_of(case, [case.rows]).rows())


def assert_points(query: BoundMonitor, case: Case, answers: list[Answer]) -> None:
    """Points of a lattice are in a region if and only if they match."""
    for chosen in list(combinations(query, case.rows))[:2]:
        outlines = [
            shapely.Polygon(answer["boundary"]) for answer in about(answers, chosen) if len(answer["boundary"]) > 2
        ]
        assert all(outline.exterior.is_ccw for outline in outlines)
        for one, other in permutations(outlines, 2):
            assert shapely.intersection(one, other).area < 1e-9 or one.contains(other) or other.contains(one)
        for ta in range(4):
            for tb in range(4):
                point = [chosen[0].time + Fraction(3 + 6 * ta, 8), chosen[1].time + Fraction(1 + 6 * tb, 8)]
                is_comparable = are_comparable(query, point) and all(
                    instant < prediction.end for instant, prediction in zip(point, chosen, strict=True)
                )
                is_match = is_comparable and matches_at(query, chosen, point, QUARTER / 2)
                covers = [outline.covers(shapely.Point(*map(float, point))) for outline in outlines]
                if is_match:
                    assert any(covers), (point, answers)
                elif any(covers):  # a hole of the region
                    around = [
                        matches_at(query, chosen, [point[0] + dx, point[1] + dy], QUARTER / 2)
                        for dx, dy in ((QUARTER, 0), (-QUARTER, 0), (0, QUARTER), (0, -QUARTER))
                    ]
                    assert not all(around), (point, answers)


# ---------------------------------------------------------------- by hand

CARS = "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR {} PERIOD 10;"
CROSSING: Rows = {
    "e": [
        {"id": "a", "t": 0, "x": 0.0, "x_rate": 1.0, "y": 0.0, "y_rate": -1.0},
        {"id": "b", "t": 0, "x": 5.0, "x_rate": 0.0, "y": -8.0, "y_rate": 0.0},
    ]
}


def answers_to(where: str, clauses: str = "", error: str = "0") -> list[Answer]:
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE ({where}) AND a.id < b.id {clauses};"
    rows = run_of(Case(CARS.format(error) + query, "q", CROSSING, {}), [CROSSING]).rows()
    return sorted(rows, key=lambda row: row["valid_from"])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("ABS(a.x - b.x) <= 1 OR ABS(a.y - b.y) <= 1", [(4, 6), (7, 9)]),
        ("ABS(a.x - b.x) <= 1.5 OR ABS(a.y - b.y) <= 1.5", [(3.5, 9.5)]),
        ("ABS(a.x - b.x) < 1.5 OR ABS(a.y - b.y) < 1.5", [(3.5, 6.5), (6.5, 9.5)]),
        ("ABS(a.x - b.x) < 1.5 OR ABS(a.y - b.y) <= 1.5", [(3.5, 9.5)]),
        ("(a.x <= 2 OR a.x >= 7) AND (a.y >= -1 OR a.y <= -8)", [(0, 1), (8, 10)]),
        ("a.x <= 2 OR a.id = 'b' OR b.x = 4", [(0, 2)]),
        ("a.x <= 2 OR a.id = 'a'", [(0, 10)]),
        # more conditions on rows than a number has bits
        (" OR ".join(["a.x <= 2", *(f"a.id = '{number}'" for number in range(70)), "a.id = 'a'"]), [(0, 10)]),
        ("a.x NOT BETWEEN 2 AND 3", [(0, 2), (3, 10)]),
        ("a.x IN (2, 3, 3.5)", [(2, 2), (3, 3), (3.5, 3.5)]),
        ("a.x NOT IN (2, 3)", [(0, 2), (2, 3), (3, 10)]),
        ("NOT (a.x > 2 AND a.x < 3)", [(0, 2), (3, 10)]),
    ],
)
def test_exact_values(where: str, expected: list[tuple[float, float]]) -> None:
    assert [(row["valid_from"], row["valid_to"]) for row in answers_to(where)] == [
        pytest.approx(part, abs=1e-9) for part in expected
    ]


def test_the_outline_of_a_union_is_counter_clockwise_and_not_convex() -> None:
    """a.x is ta and b.x is 5: an L of two strips, ta <= 2 or tb <= 2 by a moving b."""
    rows: Rows = {"e": [{**row, "x": 0.0, "x_rate": 1.0} for row in CROSSING["e"]]}
    query = "CREATE QUERY q AS MONITOR a, b FROM e WHERE (a.x <= 2 OR b.x <= 3) AND a.id < b.id WITHIN 20;"
    (answer,) = run_of(Case(CARS.format("0") + query, "q", rows, {}), [rows]).rows()
    assert answer["boundary"] == [
        pytest.approx(corner, abs=1e-9) for corner in [(0, 0), (10, 0), (10, 3), (2, 3), (2, 10), (0, 10)]
    ]
    assert (answer["valid_from"], answer["valid_to"]) == pytest.approx((0, 10))


@pytest.mark.parametrize(
    ("where", "probability"),
    [
        ("a.x <= 0 OR b.y <= -8", 3 / 4),
        ("a.x <= 0 OR a.x >= 0.5", 3 / 4),
        ("a.x <= 0 OR a.x - b.x >= -5", 3 / 4 + 1 / 8),
        ("a.x <= 0 AND b.x <= 5 OR a.x > 0 AND b.x > 5", 1 / 2),
        ("(a.x <= 0 OR b.x <= 5) AND (a.x > 0 OR b.x > 5)", 1 / 2),
        ("a.x <= 0 OR a.id = 'a'", 1.0),
        ("a.x <= 0 OR a.id = 'b'", 1 / 2),
    ],
)
def test_probabilities_by_hand(where: str, probability: float) -> None:
    """At t = 0, with errors of 1; a.x is 0 and b.x is 5. In the third, half of the worlds with a.x > 0 are left."""
    rows: Rows = {"e": [{**row, "x_rate": 0.0, "y_rate": 0.0} for row in CROSSING["e"]]}
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE ({where}) AND a.id < b.id SEMANTICS MAY THRESHOLD 0.1;"
    (answer,) = run_of(Case(CARS.format("1") + query, "q", rows, {}), [rows]).rows()
    assert answer["probability"] == pytest.approx(probability, abs=1e-12)
    assert (answer["certain_from"], answer["certain_to"]) == (0.0, 10.0)


def test_the_certain_range_of_a_union() -> None:
    """The true value of a.x is uniform around t: it is below 2 with at least 1/2 until 2, and above 7 from 7 on."""
    one, two = answers_to("a.x <= 2 OR a.x - b.y >= 15", "SEMANTICS MAY THRESHOLD 0.5", "(x = 1, y = 0)")
    assert (one["certain_from"], one["certain_to"]) == pytest.approx((0, 2), abs=1e-7)
    assert (two["certain_from"], two["certain_to"]) == pytest.approx((7, 10), abs=1e-7)


def test_must_is_certain_although_no_alternative_is() -> None:
    """One of two alternatives that cover all values always holds."""
    rows = answers_to("a.x <= 4 OR a.x - b.y >= 12", "SEMANTICS MUST", "(x = 1, y = 0)")
    assert [(row["valid_from"], row["valid_to"], row["probability"]) for row in rows] == [(0.0, 10.0, 1.0)]


def test_must_in_ranges_that_are_narrower_than_the_errors_has_no_answers() -> None:
    assert answers_to("a.x BETWEEN 1 AND 2 OR a.x BETWEEN 5 AND 6", "SEMANTICS MUST", "1") == []


# ---------------------------------------------------------------- plans


def plan_of(where: str, clauses: str = "", names: str = "a, b") -> tuple[str, Finding | None]:
    query = f"CREATE QUERY q AS MONITOR {names} FROM e WHERE {where} {clauses};"
    described = plan(analyse(bound_query(CARS.format("1") + query, "q")))
    return str(described), described.refused


PAIRS = [
    ("a.x", "b.x"),
    ("a.y", "b.y"),
    ("a.x - b.x", "a.y - b.y"),
    ("a.x - a.y", "b.x - b.y"),
    ("a.x - b.y", "a.y - b.x"),
]
MANY = " AND ".join(f"({one} < 3 OR {other} < 3)" for one, other in PAIRS)


def test_explain_states_alternatives() -> None:
    text, refused = plan_of("(ABS(a.x - b.x) <= 5 OR a.y > 2 AND a.id = 'a') AND a.x < 9")
    assert refused is None
    assert "at least one must hold: a.x - b.x in [-5, 5] or a.y in (2, inf) and a.id = 'a'" in text
    assert "a.x must be in (-inf, 9)" in text
    assert "sum over cases that exclude each other" in text
    assert "alternatives of OR" in text


@pytest.mark.parametrize(
    ("where", "clauses", "names", "message"),
    [
        ("a.x > 5 AND a.x < 3 OR a.y > 5 AND a.y < 3", "", "a, b", "no values satisfy WHERE"),
        ("a.x - b.x <= 5 OR b.x - c.x <= 5", "WITHIN 2", "a, b, c", "OR over 3 names needs WITHIN 0"),
        (MANY, "", "a, b", "OR leaves 32 alternatives (at most 16 are allowed)"),
        ("a.x = 5 OR b.x < 5", "", "a, b", "= has probability 0"),
        ("(ABS(a.x) < 0 OR ABS(a.x) < -1)", "", "a", "no values satisfy WHERE"),
        ("(a.x < 3 OR a.x > 6) AND a.x = 4", "", "a", "= has probability 0"),
        ("(a.x < 3 OR a.x > 6) AND a.x >= 4 AND a.x < 5", "", "a", "no values satisfy WHERE"),
    ],
)
def test_what_cannot_be_answered_is_refused_without_data(where: str, clauses: str, names: str, message: str) -> None:
    try:
        _, refused = plan_of(where, clauses, names)
    except Exception as error:
        assert message in str(error)
    else:
        assert refused is not None and message in refused.message and refused.hint
