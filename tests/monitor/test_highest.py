"""The highest probability over a set of instants: no instant of a lattice has a higher one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.drawn import examples
from tests.monitor.arrays import no_shapes

from anabranch.monitor.kernel.highest import highest
from anabranch.monitor.kernel.lines import Lines, probability_at
from anabranch.monitor.kernel.polygons import Body
from anabranch.monitor.kernel.probabilities import Constraints

#: The length of the sides of the simplex of instants.
SIDE = 4.0
#: Steps of the lattice along a side.
STEPS = {1: 60, 2: 24, 3: 9}

Draw = Any
#: A value: its axis, the prediction at instant 0, the rate, the error, and the spread of a normal error or 0.
Value = tuple[int, float, float, float, float]
#: One value or the difference of two, and the interval in which it must be.
Form = tuple[Sequence[Value], tuple[float, float]]


def simplex(dims: int) -> Body:
    """All points with coordinates of at least 0 whose sum is at most SIDE."""
    corners = np.concatenate([np.zeros((1, dims)), SIDE * np.eye(dims)])
    planes = np.concatenate(
        [np.append(np.ones(dims), SIDE)[None], np.append(-np.eye(dims), np.zeros((dims, 1)), axis=1)]
    )
    return Body(corners, len(corners), with_slack(planes), len(planes))


def face() -> Body:
    """The points of the simplex in three dimensions whose sum is SIDE: a flat triangle."""
    corners = SIDE * np.eye(3)
    planes = np.concatenate([simplex(3).planes[:, :-1], np.append(-np.ones(3), -SIDE)[None]])
    return Body(corners, len(corners), with_slack(planes), len(planes))


def with_slack(planes: np.ndarray) -> np.ndarray:
    """Planes with the rounding error of small numbers."""
    return np.append(planes, np.full((len(planes), 1), 1e-11), axis=1)


def lattice(dims: int) -> Iterator[np.ndarray]:
    for steps in product(range(STEPS[dims] + 1), repeat=dims):
        if sum(steps) <= STEPS[dims]:
            yield np.array(steps) * SIDE / STEPS[dims]


def arrays_of(dims: int, forms: Sequence[Form]) -> tuple[Lines, Constraints]:
    """Forms that share no value, as input of the kernel."""
    values = [value for form_values, _ in forms for value in form_values]
    axis, base, rate, error, spread = map(np.array, zip(*values, strict=True))
    ends = np.cumsum([len(form_values) for form_values, _ in forms])
    pairs = [
        (end - len(form_values), end - 1 if len(form_values) == 2 else -1)
        for end, (form_values, _) in zip(ends, forms, strict=True)
    ]
    sets = np.array([interval for _, interval in forms])
    constraints = Constraints(
        np.array(pairs),
        np.arange(len(forms) + 1),
        sets,
        np.eye(len(forms), dtype=np.bool_),
        np.ones((len(values), 1)),
        spread.astype(float).reshape(-1, 1),
        axis,
        no_shapes(),
    )
    return Lines(
        base.astype(float), rate.astype(float), error.astype(float), np.abs(base) + SIDE * np.abs(rate),
        np.empty(len(values)), np.empty(dims + 2), np.empty((40, dims + 2)),
    ), constraints  # fmt: skip


def highest_probability(dims: int, forms: Sequence[Form]) -> tuple[float, np.ndarray]:
    point = np.empty(dims)
    return highest(simplex(dims), *arrays_of(dims, forms), 0.0, point), point


@st.composite
def cases(draw: Draw, least_dims: int = 1) -> tuple[int, list[Form]]:
    dims = draw(st.integers(least_dims, 3))

    def value() -> Value:
        error = draw(st.sampled_from([0.5, 1.0, 2.0, 3.0]))
        rate = draw(st.sampled_from([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]))
        return (
            draw(st.integers(0, dims - 1)),
            draw(st.integers(-4, 4)),
            rate,
            error,
            error * draw(st.sampled_from([0, 0.7])),
        )

    def interval() -> tuple[float, float]:
        low, width = draw(st.integers(-4, 4)), draw(st.sampled_from([1.0, 3.0]))
        return draw(st.sampled_from([(-np.inf, low), (low, np.inf), (low, low + width)]))

    count = draw(st.integers(2, 3))
    return dims, [([value() for _ in range(draw(st.integers(1, 2)))], interval()) for _ in range(count)]


@examples(100)
@given(cases())
def test_no_instant_is_more_probable_than_the_returned_one(case: tuple[int, list[Form]]) -> None:
    dims, forms = case
    lines, constraints = arrays_of(dims, forms)
    slope = np.empty(dims)
    best = max(probability_at(point, lines, constraints, slope) for point in lattice(dims))
    top, point = highest_probability(dims, forms)
    event(f"{'between' if 0 < best < 1 else 'certain'} in {dims}")
    assert top >= best - 1e-7
    assert top == pytest.approx(probability_at(point, lines, constraints, slope), abs=1e-7)
    assert point.min() >= -1e-9
    assert point.sum() <= SIDE + 1e-9


@examples(60)
@given(cases())
def test_the_bound_of_the_groups_is_never_below_the_probability(case: tuple[int, list[Form]]) -> None:
    """With a threshold that nothing reaches, the bound is returned: no search is needed to drop the region."""
    dims, forms = case
    lines, constraints = arrays_of(dims, forms)
    slope, point = np.empty(dims), np.empty(dims)
    best = max(probability_at(at, lines, constraints, slope) for at in lattice(dims))
    bound = highest(simplex(dims), lines, constraints, np.inf, point)
    event("reached" if bound <= best + 1e-9 else "above")
    assert bound >= best - 1e-12


@examples(60)
@given(cases(), st.floats(0.01, 0.99))
def test_a_threshold_drops_no_region_that_reaches_it(case: tuple[int, list[Form]], threshold: float) -> None:
    dims, forms = case
    lines, constraints = arrays_of(dims, forms)
    exact, point = highest_probability(dims, forms)
    top = highest(simplex(dims), lines, constraints, threshold, point)
    event("reached" if exact >= threshold else "below")
    if exact >= threshold:
        assert top == pytest.approx(exact, abs=1e-7)
    else:
        assert top < threshold + 1e-7 or top >= exact


@examples(60)
@given(cases())
def test_without_a_slope_the_probability_is_the_same(case: tuple[int, list[Form]]) -> None:
    dims, forms = case
    lines, constraints = arrays_of(dims, forms)
    for at in lattice(dims):
        with_slope = probability_at(at, lines, constraints, np.empty(dims))
        assert probability_at(at, lines, constraints, np.empty(0)) == with_slope


@examples(30)
@given(cases(least_dims=3))
def test_no_instant_of_a_flat_set_is_more_probable_than_the_returned_one(case: tuple[int, list[Form]]) -> None:
    dims, forms = case
    lines, constraints = arrays_of(dims, forms)
    slope, point = np.empty(dims), np.empty(dims)
    on_face = [at for at in lattice(dims) if abs(at.sum() - SIDE) < 1e-9]
    best = max(probability_at(at, lines, constraints, slope) for at in on_face)
    top = highest(face(), lines, constraints, 0.0, point)
    assert top >= best - 1e-7
    assert top == pytest.approx(probability_at(point, lines, constraints, slope), abs=1e-7)
    assert point.sum() == pytest.approx(SIDE)
    assert point.min() >= -1e-9


@pytest.mark.parametrize(
    ("other_forms", "expected", "expected_point"),
    [([], 1 / 4, (2, 2)), ([([(0, 5.0, -1.0, 1.0, 0.0)], (3.0, np.inf))], 4 / 27, (5 / 3, 7 / 3))],
)
def test_the_maximum_of_a_product_is_that_of_calculus(
    other_forms: list[Form], expected: float, expected_point: tuple[float, float]
) -> None:
    """For x + y = 4, (x - 1) (y - 1) / 4 is highest in the middle; times (3 - x) / 2, it is highest for a smaller x."""
    rising: list[Form] = [([(axis, 0.0, 1.0, 1.0, 0.0)], (2.0, np.inf)) for axis in range(2)]
    top, point = highest_probability(2, [*rising, *other_forms])
    assert top == pytest.approx(expected, abs=1e-7)
    assert point == pytest.approx(expected_point, abs=1e-3)


@pytest.mark.parametrize(
    ("interval", "expected", "expected_instant"),
    [((-np.inf, -1.0), 1 / 4, 0.0), ((5.0, np.inf), 1 / 4, SIDE), ((-1.0, 2.0), 3 / 4, 0.5)],
)
def test_one_form_is_highest_where_its_prediction_is_nearest_to_the_interval(
    interval: tuple[float, float], expected: float, expected_instant: float
) -> None:
    """The prediction goes from 0 to 4, with an error of 2."""
    top, point = highest_probability(1, [([(0, 0.0, 1.0, 2.0, 0.0)], interval)])
    assert top == pytest.approx(expected, abs=1e-12)
    assert point[0] == pytest.approx(expected_instant, abs=1e-12)
