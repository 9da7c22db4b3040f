"""The highest probability over a set of instants: no instant of a lattice is better, and where the best is, is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.drawn import examples

from anabranch.monitor.kernel.chances import Asked
from anabranch.monitor.kernel.highest import Lines, highest, weigh
from anabranch.monitor.kernel.polygons import Body

#: How long the sides of the simplex are that the instants are in.
SIDE = 4.0
#: Steps of the lattice along a side.
STEPS = {1: 60, 2: 24, 3: 9}

Draw = Any
#: A value: its axis, what is predicted at instant 0, the rate, the error, and the spread of a normal error or 0.
Value = tuple[int, float, float, float, float]
#: One value or the difference of two, and the interval that it must be in.
Form = tuple[Sequence[Value], tuple[float, float]]


def simplex(dims: int) -> Body:
    """All instants from 0 on whose sum is at most SIDE."""
    corners = np.concatenate([np.zeros((1, dims)), SIDE * np.eye(dims)])
    planes = np.concatenate(
        [np.append(np.ones(dims), SIDE)[None], np.append(-np.eye(dims), np.zeros((dims, 1)), axis=1)]
    )
    return Body(corners, len(corners), planes, len(planes))


def lattice(dims: int) -> Iterator[np.ndarray]:
    for steps in product(range(STEPS[dims] + 1), repeat=dims):
        if sum(steps) <= STEPS[dims]:
            yield np.array(steps) * SIDE / STEPS[dims]


def query(dims: int, forms: Sequence[Form]) -> tuple[Lines, Asked]:
    """Forms that share no value."""
    values = [value for own, _ in forms for value in own]
    axis, base, rate, error, spread = map(np.array, zip(*values, strict=True))
    ends = np.cumsum([len(own) for own, _ in forms])
    pairs = [(end - len(own), end - 1 if len(own) == 2 else -1) for end, (own, _) in zip(ends, forms, strict=True)]
    sets = np.array([interval for _, interval in forms])
    asked = Asked(
        np.array(pairs), np.arange(len(forms) + 1), sets, np.eye(len(forms), dtype=np.bool_), spread.astype(float), axis
    )
    return Lines(
        base.astype(float), rate.astype(float), error.astype(float), np.empty(len(values)), np.empty(dims + 1)
    ), asked


def found(dims: int, forms: Sequence[Form]) -> tuple[float, np.ndarray]:
    point = np.empty(dims)
    return highest(simplex(dims), *query(dims, forms), 0.0, point), point


@st.composite
def cases(draw: Draw) -> tuple[int, list[Form]]:
    dims = draw(st.integers(1, 3))

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
def test_no_instant_is_more_probable_and_the_best_is_told(case: tuple[int, list[Form]]) -> None:
    dims, forms = case
    lines, asked = query(dims, forms)
    slope = np.empty(dims)
    best = max(weigh(point, lines, asked, slope) for point in lattice(dims))
    top, point = found(dims, forms)
    event(f"{'between' if 0 < best < 1 else 'certain'} in {dims}")
    assert top >= best - 1e-7
    assert top == pytest.approx(weigh(point, lines, asked, slope), abs=1e-7)
    assert point.min() >= -1e-9
    assert point.sum() <= SIDE + 1e-9


@pytest.mark.parametrize(
    ("others", "wanted", "place"),
    [([], 1 / 4, (2, 2)), ([([(0, 5.0, -1.0, 1.0, 0.0)], (3.0, np.inf))], 4 / 27, (5 / 3, 7 / 3))],
)
def test_the_best_of_products_is_where_calculus_puts_it(
    others: list[Form], wanted: float, place: tuple[float, float]
) -> None:
    """Where x + y = 4: (x - 1) (y - 1) / 4 is highest in the middle, and times (3 - x) / 2 it is a little before."""
    rising: list[Form] = [([(axis, 0.0, 1.0, 1.0, 0.0)], (2.0, np.inf)) for axis in range(2)]
    top, point = found(2, [*rising, *others])
    assert top == pytest.approx(wanted, abs=1e-7)
    assert point == pytest.approx(place, abs=1e-3)
