"""SEMANTICS EXPECTED: the probabilities of the oracle, which integrates over true locations, and sampled ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.constrain.local import ConstrainRun, job_of
from tests.constrain.test_against_loops import is_possible
from tests.constrain.test_location_errors import STREAM, Blurred, blurred
from tests.drawn import examples
from tests.local import FINGERPRINT, declared, in_context, local_job, make_job, prepared_query
from tests.oracles import true_locations as oracle
from tests.oracles.events import frozen
from tests.rows import RowsRun
from tests.splits import disordered_splits

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.columns.globe import RADIUS
from anabranch.constrain.nearness import PLANE, SOLID, SPHERE, Space, chance_within
from anabranch.language.parser import parse
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext

SPACES = {"plane": (PLANE, oracle.PLANE), "solid": (SOLID, oracle.SOLID), "sphere": (SPHERE, oracle.SPHERE)}

#: Pairs of events with bounds: the first ones share no event, so that probabilities are exact.
ALONE = [[(0, 1)], [(0, 1), (0, 1)], [(0, 1), (2, 3)], [(0, 1), (0, 1), (2, 3)]]
JOINT = [[(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]]


@examples(60)
@given(st.sampled_from([*SPACES]), st.lists(st.integers(0, 12), min_size=4, max_size=4), st.sampled_from([8.0, 9.7]))
def test_a_distance_has_the_probability_of_the_oracle(space: str, numbers: list[int], unit: float) -> None:
    """Many of these discs touch each other, or contain each other."""
    bound, one, other, gap = (number / unit for number in numbers)
    ours, theirs = SPACES[space]
    chance = chance_within(ours, *(np.array([number]) for number in (bound, one, other, gap)))[0]
    if bound == gap and not one and not other:
        return
    assert chance == pytest.approx(oracle.chance_of_distance(theirs, bound, one, other, gap), abs=1e-9)


@examples(30)
@given(st.sampled_from([*SPACES]), st.lists(st.floats(0.001, 1.5), min_size=4, max_size=4))
def test_any_numbers_have_the_probability_of_the_oracle(space: str, numbers: list[float]) -> None:
    ours, theirs = SPACES[space]
    chance = chance_within(ours, *(np.array([number]) for number in numbers))[0]
    assert chance == pytest.approx(oracle.chance_of_distance(theirs, *numbers), abs=1e-9)
    if ours is not SPHERE:
        for scale in (1e-6, 1e6):
            assert chance_within(ours, *(scale * np.array([number]) for number in numbers))[0] == pytest.approx(chance)


@pytest.mark.parametrize("space", [PLANE, SPHERE, SOLID])
def test_a_tiny_error_does_not_lose_digits(space: Space) -> None:
    """A disc that is tiny compared with the bound is cut by a nearly straight line, through its centre, into halves.

    The difference to a half is proportional to the ratio of the two.
    """
    slopes = []
    for ratio in (1e-4, 1e-6, 1e-8, 1e-10):
        radii = np.array([0.0, ratio, ratio / 3])
        chance = chance_within(space, np.ones(3), np.full(3, ratio), radii, np.ones(3))
        slopes.append((0.5 - chance) / ratio)
    assert (slopes[0] > 0.01).all()
    for slope in slopes[1:]:
        assert slope == pytest.approx(slopes[0], rel=1e-4)


def test_a_cap_beyond_the_other_pole_has_whole_circles() -> None:
    numbers = (1.5, 1.4, 0.6, 2.9)
    chance = chance_within(SPHERE, *(np.array([number]) for number in numbers))[0]
    assert chance == pytest.approx(oracle.chance_of_distance(oracle.SPHERE, *numbers), abs=1e-9)


def test_small_caps_are_discs() -> None:
    numbers = np.array([[1.0, 0.8, 0.5, 1.2], [2.0, 1.0, 0.0, 1.5]]).T * 1e-5
    assert chance_within(SPHERE, *numbers) == pytest.approx(chance_within(PLANE, *numbers), abs=1e-9)


def test_far_from_is_near_the_other_side() -> None:
    numbers = np.array([[2.5], [0.3], [0.2], [2.6]])
    chance = chance_within(SPHERE, *numbers)[0]
    assert chance == pytest.approx(
        1 - oracle.chance_of_distance(oracle.SPHERE, math.pi - 2.5, 0.3, 0.2, math.pi - 2.6), abs=1e-9
    )


# ---------------------------------------------------------------- queries


def chances_of(query: Blurred, batches: Sequence[Any], n_buckets: int) -> dict[Hashable, dict[str, Any]]:
    run = ConstrainRun(in_context(job_of(query.case), live=len(batches) > 1), n_buckets)
    run.run(batches)
    assert run.counts.late == 0
    rows = [row for row in run.rows_of(0) if row["probability"] > 1e-12]
    answers = {frozen(run._answer(0, row)): row for row in rows}
    assert len(answers) == len(rows)
    return answers


def truth_of(query: Blurred, threshold: float = 0.0) -> dict[Hashable, oracle.Answer]:
    answers = oracle.expected_tuples(query.case.rows["e"], query.errors, query.near, 3, len(query.names))
    return {frozen(query.answer(found.rows)): found for found in answers if found.probability >= threshold - 1e-12}


def assert_same(answers: dict[Hashable, dict[str, Any]], truth: dict[Hashable, oracle.Answer]) -> None:
    event(f"{'some' if truth else 'no'} answers")
    chances = {answer: found.probability for answer, found in truth.items()}
    assert {answer: row["probability"] for answer, row in answers.items()} == pytest.approx(chances, abs=1e-9)
    for answer, row in answers.items():
        assert row["method"] == ("sampling" if truth[answer].sampled else "exact")
        if row["method"] == "exact":
            assert row["lower"] == row["probability"] == row["upper"]
        else:
            assert 0 <= row["lower"] < row["probability"] <= row["upper"] <= min(1.0, row["lower"] + 0.02)


@examples(50)
@given(st.data(), st.sampled_from(ALONE), st.sampled_from([1, 7]), st.sampled_from([0.0, 0.5]))
def test_batch_gives_the_probabilities_of_the_oracle(
    data: st.DataObject, pairs: list, n_buckets: int, threshold: float
) -> None:
    query = data.draw(blurred("EXPECTED", pairs, f" THRESHOLD {threshold}" if threshold else ""))
    if not is_possible(query.case):
        assert not truth_of(query)
        return
    assert_same(chances_of(query, [query.case.rows], n_buckets), truth_of(query, threshold))


@examples(40)
@given(st.data(), st.sampled_from(ALONE), st.sampled_from([1, 7]))
def test_any_arrival_gives_the_same_probabilities(data: st.DataObject, pairs: list, n_buckets: int) -> None:
    query = data.draw(blurred("EXPECTED", pairs, data.draw(st.sampled_from(["", " EMIT EARLY"]))))
    assume(is_possible(query.case))
    assert_same(chances_of(query, data.draw(disordered_splits(query.case.rows, 2)), n_buckets), truth_of(query))


@examples(8)
@given(st.data(), st.sampled_from(JOINT), st.sampled_from([1, 7]))
def test_conditions_on_one_location_are_sampled(data: st.DataObject, pairs: list, n_buckets: int) -> None:
    query = data.draw(blurred("EXPECTED", pairs))
    assume(is_possible(query.case) and len(query.case.rows["e"]) <= 4)
    batches = data.draw(st.just([query.case.rows]) | disordered_splits(query.case.rows, 2))
    assert_same(chances_of(query, batches, n_buckets), truth_of(query))


def answers(where: str, locations: list[tuple], stream: str = STREAM, names: str = "u, v") -> list[dict[str, Any]]:
    """The answers for events at these locations, at one time, with their probabilities."""
    job = local_job(f"{stream} CREATE QUERY q AS CONSTRAIN {names} FROM e WHERE {where} SEMANTICS EXPECTED;", "q")
    run = ConstrainRun(job, 5)
    axes = ("x", "y", "z")
    rows = [{"id": i, "t": 0} | dict(zip(axes, at, strict=False)) for i, at in enumerate(locations)]
    run.run([{"e": rows}])
    return run.rows_of(0)


def grid(radius: float, steps: int) -> list[tuple[float, float]]:
    """Points of a disc, in the middle of the cells of a grid."""
    middles = [radius * ((2 * k + 1) / steps - 1) for k in range(steps)]
    return [(x, y) for x in middles for y in middles if math.hypot(x, y) <= radius]


@pytest.mark.parametrize("gaps", [(1.0, 1.0), (2.5, 2.0), (3.0, 1.5)])
def test_intervals_contain_the_share_of_all_locations(gaps: tuple[float, float]) -> None:
    """u, v and w are in a row, and v must be near both: the share of all v, times the shares of u and w near it."""
    points = grid(1.0, 40)
    share = 0.0
    for x, y in points:
        of_u = sum(math.hypot(x + gaps[0] - a, y - b) <= 2 for a, b in points) / len(points)
        of_w = sum(math.hypot(x - gaps[1] - a, y - b) <= 2 for a, b in points) / len(points)
        share += of_u * of_w / len(points)
    where = "u.id = 0 AND v.id = 1 AND w.id = 2 AND DISTANCE(u, v) <= 2 AND DISTANCE(v, w) <= 2"
    (row,) = answers(where, [(-gaps[0], 0.0), (0.0, 0.0), (gaps[1], 0.0)], names="u, v, w")
    assert row["lower"] - 0.003 <= share <= row["upper"] + 0.003
    assert row["upper"] - row["lower"] <= 0.02


def test_the_order_of_a_set_does_not_change_its_worlds() -> None:
    locations = [(0.0, 0.0), (2.0, 0.0), (1.0, 2.0)]
    found = set()
    for order in itertools.permutations(range(3)):
        job = local_job(
            f"{STREAM} CREATE QUERY q AS CONSTRAIN v*3 FROM e WHERE DISTANCE(v, v) <= 2 SEMANTICS EXPECTED;", "q"
        )
        run = ConstrainRun(job, 1)
        for i in order:
            run.step({"e": [{"id": i, "t": 0, "x": locations[i][0], "y": locations[i][1]}]})
        run.step({}, end=True)
        found |= {row["probability"] for row in run.rows_of(0)}
    assert len(found) == 1


def test_a_pair_of_a_set_is_exact() -> None:
    (row,) = answers("DISTANCE(v, v) <= 2", [(0.0, 0.0), (2.0, 0.0)], names="v*2")
    assert row["method"] == "exact"
    assert row["probability"] == pytest.approx(oracle.chance_of_distance(oracle.PLANE, 2.0, 1.0, 1.0, 2.0), abs=1e-9)


def test_two_bounds_on_one_distance_are_exact() -> None:
    (row,) = answers("u.id < v.id AND DISTANCE(u, v) >= 1.5 AND DISTANCE(u, v) < 2.5", [(0.0, 0.0), (2.0, 0.0)])
    below = [oracle.chance_of_distance(oracle.PLANE, bound, 1.0, 1.0, 2.0) for bound in (1.5, 2.5)]
    assert row["method"] == "exact"
    assert row["probability"] == pytest.approx(below[1] - below[0], abs=1e-9)


def test_a_fixed_point_has_no_error() -> None:
    (row,) = answers("DISTANCE(u, 'POINT(1 1)') <= 1.5", [(2.0, 1.0)], names="u")
    assert row["probability"] == pytest.approx(oracle.chance_of_distance(oracle.PLANE, 1.5, 1.0, 0.0, 1.0), abs=1e-9)


def test_metres_on_the_globe_and_in_space() -> None:
    globe = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) GEODESIC ERROR 30000;"
    (row,) = answers("u.id < v.id AND DISTANCE(u, v) <= 111000", [(0.0, 0.0), (0.0, 1.0)], globe)
    numbers = (111_000 / RADIUS, 30_000 / RADIUS, 30_000 / RADIUS, math.radians(1))
    assert row["probability"] == pytest.approx(oracle.chance_of_distance(oracle.SPHERE, *numbers), abs=1e-9)
    (row,) = answers("DISTANCE(u, 'POINT(0 1)') <= 111000", [(0.0, 0.0)], globe, "u")
    numbers = (111_000 / RADIUS, 30_000 / RADIUS, 0.0, math.radians(1))
    assert row["probability"] == pytest.approx(oracle.chance_of_distance(oracle.SPHERE, *numbers), abs=1e-9)
    high = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y, z) ERROR 2;"
    (row,) = answers("DISTANCE(u, 'POINT Z (1 2 2)') <= 3", [(0.0, 0.0, 0.0)], high, "u")
    assert row["probability"] == pytest.approx(oracle.chance_of_distance(oracle.SOLID, 3.0, 2.0, 0.0, 3.0), abs=1e-9)
    (row,) = answers("u.id < v.id AND DISTANCE(u, v) <= 3", [(0.0, 0.0, 0.0), (1.0, 2.0, 2.0)], high)
    assert row["probability"] == pytest.approx(oracle.chance_of_distance(oracle.SOLID, 3.0, 2.0, 2.0, 3.0), abs=1e-9)


def test_sampled_worlds_on_the_globe_and_in_space_agree_with_exact_ones() -> None:
    """Of three events, the third is so near the second that its bound is always true."""
    globe = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) GEODESIC ERROR 30000;"
    high = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y, z) ERROR 2;"
    for stream, unit, far, third in ((globe, 37_000, (0.0, 1.0), 0.9), (high, 1, (1.0, 2.0, 2.0), 2.0)):
        start = tuple(0.0 for _ in far)
        pair = f"u.id = 0 AND v.id = 1 AND DISTANCE(u, v) <= {3 * unit}"
        (exact,) = answers(pair, [start, far], stream)
        both = f"{pair} AND w.id = 2 AND DISTANCE(v, w) <= {9 * unit}"
        (sampled,) = answers(both, [start, far, (*far[:-1], third)], stream, "u, v, w")
        assert sampled["lower"] <= exact["probability"] <= sampled["upper"]


def test_an_error_of_zero_is_a_known_location() -> None:
    stream = STREAM.replace("ERROR 1", "ERROR 0")
    for op, count in (("<=", 1), ("<", 0), (">=", 1), (">", 0)):
        found = answers(f"u.id < v.id AND DISTANCE(u, v) {op} 5", [(0.0, 0.0), (3.0, 4.0)], stream)
        assert [row["probability"] for row in found] == [1.0] * count


def test_probabilities_of_events_and_of_locations_are_multiplied() -> None:
    stream = (
        "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) PROBABILITY p MODEL INDEPENDENT ERROR 1 "
        "WATERMARK 1;"
    )
    text = "CONSTRAIN u, v FROM e WHERE u.id < v.id AND DISTANCE(u, v) <= 2 AND SPAN(u, v) <= 3 SEMANTICS EXPECTED"
    run = ConstrainRun(local_job(f"{stream} CREATE QUERY q AS {text};", "q"), 3)
    run.run([{"e": [{"id": i, "t": 0, "x": 2.0 * i, "y": 0.0, "p": p} for i, p in enumerate((0.5, 0.8))]}])
    (row,) = run.rows_of(0)
    chance = oracle.chance_of_distance(oracle.PLANE, 2.0, 1.0, 1.0, 2.0)
    assert row["probability"] == row["upper"] == pytest.approx(0.4 * chance, abs=1e-9)


def test_the_plan_says_what_is_sampled() -> None:
    near = "DISTANCE(u, v) <= 2 AND SPAN(u, v) <= 1 AND SPAN(v, w) <= 1"
    text = f"{STREAM} CREATE QUERY q AS CONSTRAIN u, v, w FROM e WHERE {near}"
    exact = prepared_query(f"{text} SEMANTICS EXPECTED;", "q").plan
    sampled = prepared_query(f"{text} AND DISTANCE(v, w) <= 2 SEMANTICS EXPECTED;", "q").plan
    assert exact.method == "exact"
    assert sampled.method == (
        "sampling in 16,704 worlds, with confidence 0.99: v is in several conditions on true locations"
    )
    assert sampled.cost.endswith("with the answers; each answer is tested in 16,704 worlds")
    assert "worlds" not in exact.cost
    steps = {step.id: step.does for step in sampled.steps}
    assert steps["locate"].startswith(
        "the probability of the conditions on true locations, uniform within their errors"
    )


def test_an_error_without_a_disc_has_no_answer() -> None:
    globe = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) GEODESIC ERROR 11000000;"
    plane = "CREATE STREAM e KEY (id INTEGER) VALUE (z DOUBLE) TIME t INTEGER SPACE (x, y) ERROR z;"
    three = [(0.0, 0.0, math.inf), (1.0, 0.0, 1.0), (2.0, 0.0, 1.0)]
    for where, names in (("DISTANCE(u, v) <= 3", "u, v"), ("DISTANCE(u, v) <= 3 AND DISTANCE(v, w) <= 3", "u, v, w")):
        assert answers(f"u.id = 0 AND {where}", three, globe, names) == []
        assert answers(f"u.id = 0 AND {where}", three, plane, names) == []


def test_rows_of_several_answers_have_the_highest_probability() -> None:
    text = "CONSTRAIN u, v FROM e WHERE u.id < v.id AND DISTANCE(u, v) <= 2 AND SPAN(u, v) <= 1 SEMANTICS EXPECTED"
    run = RowsRun(local_job(f"{STREAM} CREATE QUERY q AS {text} PER KEYS;", "q"))
    run.run([{"e": [{"id": i, "t": t, "x": 2.0 * i + t, "y": 0.0} for t in (0, 5) for i in (0, 1)]}])
    (row,) = run.rows
    chance = oracle.chance_of_distance(oracle.PLANE, 2.0, 1.0, 1.0, 2.0)
    assert (row["count"], row["probability"], row["expected"]) == pytest.approx((2, chance, 2 * chance))


def test_another_query_of_the_same_pass_has_no_interval() -> None:
    texts = [
        "CONSTRAIN u, v FROM e WHERE u.id < v.id AND DISTANCE(u, v) <= 2 AND SPAN(u, v) <= 1 SEMANTICS EXPECTED",
        "CONSTRAIN u, v FROM e WHERE u.id < v.id AND SPAN(u, v) <= 1",
    ]
    catalog = declared(STREAM + "".join(f"CREATE QUERY q{number} AS {text};" for number, text in enumerate(texts)))
    bound = [bind(query, catalog) for query in catalog.queries()]
    job = make_job(bound, JobContext(layouts_for(bound[0].streams), {}, FINGERPRINT))
    run = ConstrainRun(job, 3)
    run.run([{"e": [{"id": i, "t": 0, "x": 2.0 * i, "y": 0.0} for i in (0, 1)]}])
    ((blurred_row,), (row,)) = run.rows_of(0), run.rows_of(1)
    assert 0 < blurred_row["probability"] < row["probability"] == 1.0
    names = [[column.name for column in job.result_columns(query)] for query in (0, 1)]
    assert names == [["t", "u", "v", "probability", "lower", "upper", "method"], ["t", "u", "v", "probability"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u, NOT v FROM e WHERE DISTANCE(u, v) < 1 SEMANTICS EXPECTED", "EXPECTED has no probability for NOT v"),
        ("AT LEAST 2 v FROM e WHERE DISTANCE(v, v) < 1 SEMANTICS EXPECTED", "no probability for AT LEAST 2 v"),
        (
            "u, v, w FROM e WHERE DISTANCE(u, v) < 1 AND DISTANCE(v, w) < 1 SEMANTICS EXPECTED PER 10",
            "PER needs exact probabilities, but 'v' is in several conditions on true locations",
        ),
        ("lower, v FROM e WHERE DISTANCE(lower, v) < 1 SEMANTICS EXPECTED", "already have a column 'lower'"),
    ],
)
def test_probabilities_that_are_not_given_are_refused(text: str, message: str) -> None:
    findings = declare(parse(f"{STREAM} CREATE QUERY q AS CONSTRAIN {text};"), Catalog())
    assert any(message in finding.message for finding in findings), findings
