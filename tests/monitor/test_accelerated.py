"""Accelerated predictions: x + x_rate (s - t) + x_accel / 2 (s - t)^2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import shapely
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import declared
from tests.monitor.compare import assert_same
from tests.monitor.local import accelerated_query, accelerated_run
from tests.monitor.test_or import cases as or_cases
from tests.monitor.test_or import combinations
from tests.oracles.monitor import Answer, pairs
from tests.oracles.monitor_accelerated import comparisons, distances, polygon
from tests.oracles.monitor_distance import golden
from tests.oracles.monitor_or import matches_at
from tests.oracles.monitor_or import probability_at as worlds_probability_at
from tests.oracles.monitor_predictions import Prediction
from tests.splits import splits

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.language.parser import parse
from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan
from anabranch.monitor.predictions import Predictions, no_predictions
from anabranch.monitor.query import BoundMonitor
from anabranch.planning.layouts import layouts_for

STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER SPACE (x, y) "
    "MODEL PREDICTED ERROR (x = {x}, y = {y}) PERIOD {period};"
)
SEMANTICS = ("EXPECTED", "MAY", "MUST")
#: Ends of regions are right up to this. The share of a polygon grows with the square at a corner, and the oracle takes
#: small shares as 0.
NEAR, NEAR_CORNER = Fraction(1, 10**6), Fraction(1, 10**4)
EIGHTH = Fraction(1, 8)
STEPS = 24


# ---------------------------------------------------------------- against the definition


@st.composite
def rows_of(draw: Draw, keys: str) -> Rows:
    """A few predictions, of which most turn within their period of 6."""
    rows: list[dict[str, Any]] = []
    for id in keys:
        row = {"id": id, "t": draw(st.integers(0, 3))}
        for column in "xy":
            row[column] = draw(st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, -3.0]))
            row[f"{column}_rate"] = draw(st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.0, 3.0]))
            row[f"{column}_accel"] = draw(st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.0, 0.5, None]))
        if all((row["id"], row["t"]) != (other["id"], other["t"]) for other in rows):
            rows.append(row)
    return {"e": rows}


@st.composite
def constraint(draw: Draw, labels: str) -> str:
    bound, op = draw(st.sampled_from([0, 1, -1, 0.5, 2, 3])), draw(st.sampled_from(["<=", "<", ">=", ">"]))
    label, column = draw(st.sampled_from(labels)), draw(st.sampled_from("xy"))
    shapes = [f"{label}.{column} {op} {bound}", f"ABS({label}.{column}) {op} {abs(bound)}"]
    if len(labels) == 2:
        shapes += [f"a.{column} - b.{column} {op} {bound}", f"ABS(a.{column} - b.{column}) {op} {abs(bound)}"] * 2
    return draw(st.sampled_from(shapes))


@st.composite
def cases(draw: Draw, clauses: str = "") -> Case:
    """One or two names, compared at the same instant, and one or two constraints."""
    labels = draw(st.sampled_from(["a", "ab", "ab"]))
    errors = {column: draw(st.sampled_from([0, 0.5, 1])) for column in "xy"}
    where = " AND ".join(draw(st.lists(constraint(labels), min_size=1, max_size=2)))
    keys = " AND a.id < b.id" if labels == "ab" else ""
    semantics = draw(st.sampled_from(SEMANTICS))
    query = f"CREATE QUERY q AS MONITOR {', '.join(labels)} FROM e WHERE {where}{keys} SEMANTICS {semantics}{clauses};"
    rows = draw(rows_of("abab"[: draw(st.integers(2, 4))]))
    return Case(STREAM.format(**errors, period=6) + query, "q", rows, {})


def is_refused(case: Case) -> bool:
    """Whether a query is refused, as one with contradictory constraints is."""
    refused = plan(analyse(accelerated_query(case.workbook, case.query, case.rows))).refused
    event("refused" if refused else "accepted")
    return refused is not None


def about(answers: list[Answer], chosen: tuple[Prediction, ...], labels: str) -> list[Answer]:
    """The answers about some predictions, in order of time."""
    structs = {label: prediction.answer_struct for label, prediction in zip(labels, chosen, strict=False)}
    own = [answer for answer in answers if all(answer[label] == struct for label, struct in structs.items())]
    return sorted(own, key=lambda answer: answer["valid_from"])


Chance = Callable[[Fraction], float]
ChanceOf = Callable[[BoundMonitor, tuple[Prediction, Prediction]], Chance]


def assert_defined(
    case: Case, answers: list[Answer], chance_of: ChanceOf, level: float = 0.0, near: Fraction = NEAR
) -> None:
    """The answers are those that the probability at each instant defines."""
    query = accelerated_query(case.workbook, case.query, case.rows)
    labels = "".join(operand.label for operand in query.operands)
    for pair in pairs(query, case.rows):
        low, high = max(part.time for part in pair), min(part.end for part in pair)
        if low < high and (len(labels) == 1 or pair[0].key < pair[1].key):
            assert_regions(about(answers, pair, labels), low, high, chance_of(query, pair), level, near)


def assert_regions(
    answers: list[Answer], low: Fraction, high: Fraction, chance: Chance, level: float, near: Fraction
) -> None:
    """The intervals of some predictions are those at which the probability is above 0, and its maximum is right."""
    ends = [(Fraction(answer["valid_from"]), Fraction(answer["valid_to"])) for answer in answers]
    event(f"{len(answers)} regions")
    for (_, end), (begin, _) in pairwise(ends):
        assert end <= begin
    for step in range(STEPS):
        t = low + (high - low) * Fraction(2 * step + 1, 2 * STEPS)
        if all(abs(t - end) > near for own in ends for end in own):
            is_inside = any(begin < t < end for begin, end in ends)
            assert is_inside == (chance(t) > 0) or (level and not is_inside), (t, answers)
    for answer, (begin, end) in zip(answers, ends, strict=True):
        if end - begin <= 4 * near:
            continue
        assert chance(begin + near) > 0 < chance(end - near)
        assert begin <= low + near or chance(begin - near) == 0 or begin in [other for _, other in ends]
        assert end >= high - near or chance(end + near) == 0 or end in [other for other, _ in ends]
        best = highest(chance, begin, end, answer["sample"][0])
        assert best - 1e-9 <= answer["probability"] <= best + 1e-7, (answer, best)
        if level:
            assert_certain(answer, begin, end, chance, level)


def highest(chance: Chance, begin: Fraction, end: Fraction, sample: float) -> float:
    """The highest probability of an interval: at the sample of an answer, or the best of equal steps, refined."""
    if chance(Fraction(sample)) == 1.0:
        return 1.0
    inner = [begin + (end - begin) * Fraction(step, STEPS) for step in range(1, STEPS)]
    instants = [begin + NEAR / 10**3, *inner, end - NEAR / 10**3]
    values = [chance(t) for t in instants]
    peaks = sorted(range(len(values)), key=lambda k: -values[k])[:2]
    around = [(max(peak - 1, 0), min(peak + 1, len(values) - 1)) for peak in peaks]
    refined = [
        golden(lambda t: -chance(Fraction(t)), float(instants[left]), float(instants[right])) for left, right in around
    ]
    return max(*values, *(chance(Fraction(t)) for t in refined))


def assert_certain(answer: Answer, begin: Fraction, end: Fraction, chance: Chance, level: float) -> None:
    """The certain range begins and ends where the probability reaches the level."""
    first, last = Fraction(answer["certain_from"]), Fraction(answer["certain_to"])
    assert begin <= first <= last <= end
    for t in (first, last):
        around = [chance(min(max(t + move, begin + NEAR), end - NEAR)) for move in (-NEAR, 0, NEAR)]
        assert max(around) >= level - 1e-5, (answer, around)
    for step in range(1, STEPS):
        t = begin + (end - begin) * Fraction(step, STEPS)
        if not first - NEAR <= t <= last + NEAR:
            assert chance(t) < level + 1e-9, (answer, t)


def assert_batch_and_live(data: st.DataObject, case: Case, chance_of: ChanceOf, near: Fraction = NEAR) -> None:
    """The answers are those of the definition, in batch and for any split into micro-batches."""
    answers = accelerated_run(case, [case.rows]).rows()
    assert_defined(case, answers, chance_of, near=near)
    live = accelerated_run(case, data.draw(splits(case.rows)), live=True).rows()
    assert_same(live, answers, "ab" if "MONITOR a, b" in case.workbook else "a", several_maxima=True)


@examples(40)
@given(st.data(), cases())
def test_matches_are_those_of_the_definition(data: st.DataObject, case: Case) -> None:
    if not is_refused(case):
        assert_batch_and_live(data, case, comparisons)


@examples(20)
@given(cases(" THRESHOLD 0.6"))
def test_the_certain_range_is_that_of_the_definition(case: Case) -> None:
    if not is_refused(case):
        assert_defined(case, accelerated_run(case, [case.rows]).rows(), comparisons, 0.6)


@st.composite
def distance_cases(draw: Draw) -> Case:
    """The distance of two locations, or of one and a point; sometimes both a largest and a smallest one."""
    labels = draw(st.sampled_from(["a", "ab"]))
    second = "b" if labels == "ab" else "'POINT(0.3 -1.1)'"
    radius = draw(st.sampled_from([2.1, 1.05, 0.55, 3.3]))
    near = f"DISTANCE(a, {second}) {draw(st.sampled_from(['<=', '<']))} {radius}"
    far = f"DISTANCE(a, {second}) {draw(st.sampled_from(['>', '>=']))} {radius / 4}"
    where = " AND ".join(draw(st.sampled_from([[near], [near], [far], [near, far]])))
    errors = {column: draw(st.sampled_from([0, 0.5, 1])) for column in "xy"}
    keys = " AND a.id < b.id" if labels == "ab" else ""
    semantics = draw(st.sampled_from(SEMANTICS))
    query = f"CREATE QUERY q AS MONITOR {', '.join(labels)} FROM e WHERE {where}{keys} SEMANTICS {semantics};"
    return Case(STREAM.format(**errors, period=6) + query, "q", draw(rows_of("aba")), {})


@examples(15)
@given(st.data(), distance_cases())
def test_distances_are_those_of_the_definition(data: st.DataObject, case: Case) -> None:
    if not is_refused(case):
        assert_batch_and_live(data, case, distances)


#: A triangle, and one with a notch and a hole.
POLYGONS = (
    "POLYGON((-1.05 -1.2, 2.1 -0.7, 0.4 2.3, -1.05 -1.2))",
    "POLYGON((-3.1 -3.2, 3.1 -3.2, 3.1 3.3, 0.05 0.4, -3.1 3.3, -3.1 -3.2), (-1 -2, 1 -2, 1 -1, -1 -2))",
)


@examples(30)
@given(
    st.data(), rows_of("aba"), st.sampled_from(POLYGONS), st.booleans(), st.sampled_from(SEMANTICS),
    st.sampled_from([(0, 0), (0.5, 1), (0.5, 0)]),
)  # fmt: skip
def test_polygons_are_those_of_the_definition(
    data: st.DataObject, rows: Rows, area: str, inside: bool, semantics: str, errors: tuple[float, float]
) -> None:
    where = f"{'' if inside else 'NOT '}WITHIN(a, '{area}')"
    query = f"CREATE QUERY q AS MONITOR a FROM e WHERE {where} SEMANTICS {semantics};"
    case = Case(STREAM.format(x=errors[0], y=errors[1], period=6) + query, "q", rows, {})
    shape = shapely.from_wkt(area)
    assert_batch_and_live(data, case, lambda bound, pair: polygon(shape, inside, bound.semantics, pair[0]), NEAR_CORNER)


@examples(40)
@given(st.data(), or_cases(rates=(0.0, 1.0, -2.0), windows=("",), errors=(0, 0.5)))
def test_or_is_that_of_the_definition(data: st.DataObject, case: Case) -> None:
    """At instants at which all values are multiples of an eighth, in all possible worlds."""
    accelerations = st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.0])
    rows = [{**row, "x_accel": data.draw(accelerations), "y_accel": data.draw(accelerations)} for row in case.rows["e"]]
    case = replace(case, rows={"e": rows})
    if is_refused(case):
        return
    query = accelerated_query(case.workbook, case.query, case.rows)
    batch = accelerated_run(case, [case.rows]).rows()
    live = accelerated_run(case, data.draw(splits(case.rows)), live=True).rows()
    for chosen in list(combinations(query, case.rows))[:2]:
        low, high = max(part.time for part in chosen), min(part.end for part in chosen)
        own = [about(answers, chosen, "ab") for answers in (batch, live)]
        for t in [low + Fraction(step, 2) for step in range(int(2 * (high - low)))]:
            chance = worlds_probability_at(query, chosen, [t] * len(chosen), EIGHTH)
            is_match = matches_at(query, chosen, [t] * len(chosen), EIGHTH)
            for answers in own:
                inside = [answer for answer in answers if answer["valid_from"] - NEAR <= t <= answer["valid_to"] + NEAR]
                is_end = any(abs(t - Fraction(end)) <= NEAR for part in intervals(inside) for end in part)
                assert is_end or bool(inside) == is_match, (t, answers)
                if inside and is_match:
                    assert max(answer["probability"] for answer in inside) >= float(chance) - 1e-9


# ---------------------------------------------------------------- by hand

#: A ball that is thrown to 25, at second 5.
BALL = {"id": "a", "t": 0, "x": 0.0, "x_rate": 10.0, "x_accel": -2.0, "y": 0.0, "y_rate": 0.0, "y_accel": None}
#: A wall at 16, which is also predicted later.
WALL = {"id": "b", "t": 1, "x": 16.0, "x_rate": 0.0, "x_accel": 0.0, "y": 0.0, "y_rate": 0.0}


def answers_to(query: str, rows: Sequence[Mapping[str, Any]] = (BALL,), error: float = 0) -> list[Answer]:
    """The answers about predictions that apply for 10, in order of time."""
    case = Case(STREAM.format(x=error, y=0, period=10) + f"CREATE QUERY q AS {query};", "q", {"e": list(rows)}, {})
    return sorted(accelerated_run(case, [case.rows]).rows(), key=lambda row: row["valid_from"])


def intervals(answers: Sequence[Answer]) -> list[tuple[float, float]]:
    return [(answer["valid_from"], answer["valid_to"]) for answer in answers]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.x >= 16", [(2, 8)]),
        ("a.x <= 16", [(0, 2), (8, 10)]),
        ("a.x < 16 OR a.x > 24", [(0, 2), (4, 6), (8, 10)]),
        ("a.x = 16", [(2, 2), (8, 8)]),
        ("a.x <> 16", [(0, 2), (2, 8), (8, 10)]),
        ("a.x > 25", []),
        ("a.x >= 25", [(5, 5)]),
        ("a.x < 25", [(0, 5), (5, 10)]),
        ("a.x <= 25", [(0, 10)]),
        ("a.x <= 0", [(0, 0)]),
        ("a.x < 0", []),
        ("a.x <= 16 OR a.x >= 16", [(0, 10)]),
        ("a.x < 16 OR a.x > 16", [(0, 2), (2, 8), (8, 10)]),
        ("DISTANCE(a, 'POINT(20 0)') <= 4", [(2, 4), (6, 8)]),
        ("DISTANCE(a, 'POINT(25 3)') <= 5", [(3, 7)]),
        ("DISTANCE(a, 'POINT(20 3)') <= 5", [(2, 4), (6, 8)]),
        ("DISTANCE(a, 'POINT(30 0)') <= 5", [(5, 5)]),
        ("DISTANCE(a, 'POINT(30 0)') < 5", []),
        ("DISTANCE(a, 'POINT(30 0)') > 5", [(0, 5), (5, 10)]),
        ("DISTANCE(a, 'POINT(9 0)') >= 7", [(0, 10 - 5 - math.sqrt(23)), (2, 8), (5 + math.sqrt(23), 10)]),
        ("WITHIN(a, 'POLYGON((9 0, 24 0, 24 1, 9 1, 9 0))')", [(1, 4), (6, 9)]),
        ("NOT WITHIN(a, 'POLYGON((9 0, 24 0, 24 1, 9 1, 9 0))')", [(0, 1), (4, 6), (9, 10)]),
        ("WITHIN(a, 'POLYGON((25 -1, 30 0, 25 1, 25 -1))')", [(5, 5)]),
    ],
)
def test_exact_values(where: str, expected: list[tuple[float, float]]) -> None:
    answers = answers_to(f"MONITOR a FROM e WHERE {where}")
    assert intervals(answers) == [pytest.approx(part, abs=1e-9) for part in expected]


@pytest.mark.parametrize(("op", "expected"), [(">=", [(7, 7)]), (">", []), ("<", [(0, 7), (7, 10)])])
def test_a_contact_of_decimals(op: str, expected: list[tuple[float, float]]) -> None:
    """The value turns at 2.55 at second 7, which no double tells exactly."""
    row = {**BALL, "x": 0.1, "x_rate": 0.7, "x_accel": -0.1}
    answers = answers_to(f"MONITOR a FROM e WHERE a.x {op} 2.55", [row])
    assert intervals(answers) == [pytest.approx(part, abs=1e-6) for part in expected]


@pytest.mark.parametrize(("op", "expected"), [(">=", [(0, 5), (8, 10)]), (">", [(0, 2), (2, 5), (8, 10)])])
def test_alternatives_that_touch_are_connected_where_they_match(op: str, expected: list[tuple[float, float]]) -> None:
    """x is below 16 before second 2, and y is 2 at that instant."""
    answers = answers_to(f"MONITOR a FROM e WHERE a.x < 16 OR (a.y {op} 2 AND a.y <= 5)", [{**BALL, "y_rate": 1.0}])
    assert intervals(answers) == [pytest.approx(part, abs=1e-9) for part in expected]


def test_each_prediction_is_accelerated_from_its_own_time() -> None:
    falling = {**WALL, "x": 0.0, "x_accel": 2.0}
    (answer,) = answers_to(
        "MONITOR a, b FROM e WHERE b.x - a.x >= 4 AND a.id < b.id", ({**WALL, "id": "a", "t": 0}, falling)
    )
    assert intervals([answer]) == [pytest.approx((1 + math.sqrt(20), 10), abs=1e-9)]


@pytest.mark.parametrize(
    ("semantics", "expected"),
    [
        ("EXPECTED", (2, 8)),
        ("MAY", (5 - math.sqrt(11), 5 + math.sqrt(11))),
        ("MUST", (5 - math.sqrt(7), 5 + math.sqrt(7))),
    ],
)
def test_errors_shift_the_bounds(semantics: str, expected: tuple[float, float]) -> None:
    (answer,) = answers_to(f"MONITOR a FROM e WHERE a.x >= 16 SEMANTICS {semantics}", error=2)
    assert intervals([answer]) == [pytest.approx(expected, abs=1e-9)]
    assert answer["probability"] == 1.0


def test_the_highest_probability_is_where_a_value_turns() -> None:
    """At its highest, the ball is at 25, and at least 26 with probability 1/4."""
    (answer,) = answers_to("MONITOR a FROM e WHERE a.x >= 26 SEMANTICS MAY THRESHOLD 0.125", error=2)
    assert intervals([answer]) == [pytest.approx((4, 6), abs=1e-9)]
    assert answer["probability"] == pytest.approx(0.25, abs=1e-12)
    half = math.sqrt(0.5)
    assert (answer["certain_from"], answer["certain_to"]) == pytest.approx((5 - half, 5 + half), abs=1e-9)


def test_a_pair_that_leaves_and_returns_has_two_answers() -> None:
    for where in ("ABS(a.x - b.x) <= 7", "DISTANCE(a, b) <= 7"):
        answers = answers_to(f"MONITOR a, b FROM e WHERE {where} AND a.id < b.id", (BALL, WALL))
        expected = [(1, 5 - math.sqrt(2)), (5 + math.sqrt(2), 9)]
        assert intervals(answers) == [pytest.approx(part, abs=1e-9) for part in expected]
        assert [answer["boundary"] for answer in answers] == [
            [pytest.approx((end, end)) for end in part] for part in expected
        ]


def test_a_path_between_its_ends_is_found() -> None:
    """The ball is at 0 when its prediction begins and ends, and the wall is at 25 or at 24.5."""
    high = [{**WALL, "id": "b", "x": 25.0, "t": 0}, {**WALL, "id": "c", "x": -1.0, "t": 0}]
    answers = answers_to("MONITOR a, b FROM e WHERE ABS(a.x - b.x) <= 0.25 AND a.id < b.id", (BALL, *high))
    assert intervals(answers) == [pytest.approx((4.5, 5.5))]


def test_three_names() -> None:
    third = {**BALL, "id": "c", "x": 1.0}
    query = "MONITOR a, b, c FROM e WHERE ABS(a.x - b.x) <= 7 AND ABS(b.x - c.x) <= 7 AND a.id < b.id AND b.id < c.id"
    answers = answers_to(query, (BALL, WALL, third))
    first, last = 5 - math.sqrt(3), 5 + math.sqrt(3)
    assert intervals(answers) == [pytest.approx((1, first), abs=1e-9), pytest.approx((last, 9), abs=1e-9)]


def test_sums_of_values_are_accelerated() -> None:
    row = {**BALL, "y": 1.0, "y_rate": 2.0, "y_accel": 2.0}
    (answer,) = answers_to("MONITOR a FROM e WHERE a.x + a.y <= 49", [row])
    assert intervals([answer]) == [pytest.approx((0, 4), abs=1e-9)]


def test_large_times_lose_no_precision() -> None:
    shift = 10**12
    rows = [{**row, "t": row["t"] + shift} for row in (BALL, WALL)]
    (first, _) = answers_to("MONITOR a, b FROM e WHERE ABS(a.x - b.x) <= 7 AND a.id < b.id", rows)
    assert first["valid_to"] - shift == pytest.approx(5 - math.sqrt(2), abs=2e-4)  # a double of this size


def test_rounding_errors_of_large_times_do_not_grow_with_the_square() -> None:
    """A double of this size is exact to 2e-7, during which the ball moves by 2e-6."""
    stream = STREAM.format(x=0, y=0, period=10).replace("INTEGER", "DOUBLE")
    shift = 1.7e9
    rows: Rows = {"e": [{**BALL, "t": shift}]}
    case = Case(stream + "CREATE QUERY q AS MONITOR a FROM e WHERE a.x >= 24.99;", "q", rows, {})
    (answer,) = accelerated_run(case, [rows]).rows()
    assert answer["valid_from"] - shift == pytest.approx(4.9, abs=1e-6)
    assert answer["valid_to"] - shift == pytest.approx(5.1, abs=1e-6)


def test_a_later_prediction_cuts_a_path_and_the_rest_is_validated() -> None:
    """The ball is caught at second 7: the answer until second 8 is replaced by one until second 7."""
    caught = {**BALL, "t": 7, "x": 21.0, "x_rate": 0.0, "x_accel": None}
    later = {**caught, "t": 30, "x": 0.0}
    batches = [{"e": [BALL]}, {"e": [caught]}, {"e": [later]}]
    query = "CREATE QUERY q AS MONITOR a FROM e WHERE a.x >= 16;"
    case = Case(STREAM.format(x=0, y=0, period=10) + query, "q", {"e": [BALL, caught, later]}, {})
    run = accelerated_run(case, batches, live=True)
    assert intervals(run.rows("tentative")) == [(2, 8), (2, 7), (7, 17)]
    assert intervals(run.rows("invalidated")) == [(2, 8)]
    assert sorted(intervals(run.rows())) == [(2, 7), (7, 17)]


# ---------------------------------------------------------------- rows and declarations


def test_rows_that_differ_in_their_acceleration_are_two_predictions() -> None:
    slower = {**BALL, "x_accel": -1.0}
    assert len(answers_to("MONITOR a FROM e WHERE a.x >= 16", (BALL, slower, BALL))) == 2


@pytest.mark.parametrize(
    ("acceleration", "reason"),
    [(math.inf, "x_accel is not a finite number"), (math.nan, "x_accel is not a finite number"),
     (-1e200, "x_accel is above 1e+100")],
)  # fmt: skip
def test_an_acceleration_that_is_no_number_is_quarantined(acceleration: float, reason: str) -> None:
    rows: Rows = {"e": [BALL, {**BALL, "id": "b", "x_accel": acceleration}]}
    case = Case(
        STREAM.format(x=0, y=0, period=10) + "CREATE QUERY q AS MONITOR a FROM e WHERE a.x >= 16;", "q", rows, {}
    )
    run = accelerated_run(case, [rows])
    assert [row["reason"] for row in run.rejected] == [reason]
    assert len(run.rows()) == 1


@pytest.mark.parametrize(
    ("constraints", "name"), [("ABS(a.x - b.x) <= 1", "x"), ("a.y < 1 AND DISTANCE(a, b) <= 1", "y")]
)
def test_different_instants_are_refused(constraints: str, name: str) -> None:
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE {constraints} WITHIN 3;"
    bound = accelerated_query(STREAM.format(x=0, y=0, period=10) + query, "q", {"e": [BALL, WALL]})
    refused = plan(analyse(bound)).refused
    assert refused is not None
    assert refused.message == f"q: {name} is accelerated, so it can be compared at the same instant only"
    assert refused.hint == f"use WITHIN 0, or a source without {name}_accel"


def test_the_nearest_are_refused() -> None:
    query = "CREATE QUERY q AS MONITOR a, b FROM e WHERE DISTANCE(a, b) <= 9 NEAREST 1;"
    bound = accelerated_query(STREAM.format(x=0, y=0, period=10) + query, "q", {"e": [BALL, WALL]})
    refused = plan(analyse(bound)).refused
    assert refused is not None
    assert refused.message == "q: x is accelerated, which NEAREST does not support"


def test_other_values_may_be_compared_at_different_instants() -> None:
    rows = [{name: value for name, value in row.items() if name != "y_accel"} for row in (BALL, WALL)]
    answers = answers_to("MONITOR a, b FROM e WHERE ABS(a.y - b.y) <= 1 AND a.id < b.id WITHIN 3", rows)
    assert len(answers) == 1


def test_a_buffer_does_not_stream() -> None:
    query = "CREATE QUERY q AS MONITOR a, b FROM e WHERE ABS(a.x - b.x) <= 1 BUFFER 10;"
    found = plan(analyse(accelerated_query(STREAM.format(x=0, y=0, period=10) + query, "q", {"e": [BALL]})))
    assert found.refused is None
    assert found.streams == "BUFFER supports linear predictions only; remove it, or the columns of accelerations"


def test_the_plan_says_which_values_are_accelerated() -> None:
    query = "CREATE QUERY q AS MONITOR a FROM e WHERE a.x <= 1;"
    found = plan(analyse(accelerated_query(STREAM.format(x=0, y=0, period=10) + query, "q", {"e": [BALL]})))
    step = "x is accelerated: find the roots of polynomials, and test the constraints between them"
    assert [own.does for own in found.steps if own.id == "bend"] == [step]


def test_a_stream_without_accelerations_has_the_same_state_as_before() -> None:
    """Its columns are those of a version without accelerations, and nothing is saved for them."""
    held = no_predictions(layouts_for([declared(STREAM.format(x=0, y=0, period=10)).require_stream("e")]))
    assert not any("accelerations" in name for name in held.save().column_names)
    assert Predictions.load(held.save()).accelerations.shape == (0, 0)


def test_a_value_cannot_have_the_name_of_an_acceleration() -> None:
    workbook = "CREATE STREAM e KEY (id) VALUE (x, x_accel) TIME t MODEL PREDICTED ERROR 1 PERIOD 10;"
    (finding,) = declare(parse(workbook), Catalog())
    assert finding.message == "MODEL PREDICTED already uses the column 'x_accel'"
