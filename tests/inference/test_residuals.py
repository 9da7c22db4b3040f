"""Residuals of dead reckoning, found one row after the other, and the laws that fit them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from anabranch.columns.times import TimeKind
from anabranch.inference.reporting import Reporting
from anabranch.inference.residuals import (
    ErrorLaw,
    Residuals,
    covered,
    fit_error,
    growth,
    residuals_of_positions,
    residuals_of_predictions,
)
from tests.drawn import examples

rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 9), st.integers(-9, 9), st.integers(-3, 3)), min_size=1, max_size=20
)


def columns(steps: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    """The keys, distinct times, values and rates of rows."""
    key, dt, values, rates = (np.array(column) for column in zip(*steps, strict=True))
    return key.astype(np.int32), np.cumsum(dt), values[:, np.newaxis].astype(float), rates[:, np.newaxis].astype(float)


@given(rows, st.integers(2, 20))
def test_a_report_is_withheld_while_an_earlier_one_applies(steps: list[tuple[int, int, int, int]], period: int) -> None:
    key, t, values, rates = columns(steps)
    accelerations = values % 3
    expected = []
    for k in (0, 1):
        last = None
        for i in np.flatnonzero(key == k):
            if last is None or t[i] - t[last] >= period:
                last = i
            else:
                since = t[i] - t[last]
                predicted = values[last, 0] + rates[last, 0] * since + accelerations[last, 0] / 2 * since**2
                expected.append(values[i, 0] - predicted)
    shuffled = np.random.default_rng(0).permutation(len(key))
    arrays = [array[shuffled] for array in (key, t, values, rates, accelerations)]
    residuals = residuals_of_predictions(*arrays, float(period), TimeKind.INTEGER)
    assert sorted(residuals.values.ravel()) == pytest.approx(sorted(expected))


@given(rows, st.integers(2, 20), st.booleans())
def test_a_position_is_withheld_while_its_sensor_is_silent(
    steps: list[tuple[int, int, int, int]], period: int, correcting: bool
) -> None:
    key, t, values, _ = columns(steps)
    reporting = Reporting((4.0,), float(period))
    expected = []
    reports = reporting.open(TimeKind.INTEGER).report(key, t, values, correcting)
    rate_of = dict(zip(reports.row.tolist(), reports.rates[:, 0].tolist(), strict=True))
    for k in (0, 1):
        last, before = None, None
        for i in np.flatnonzero(key == k):
            if i in rate_of:
                last = i if before is not None and t[i] - t[before] <= period else None
            elif last is not None and t[i] - t[last] < period:
                expected.append(values[i, 0] - values[last, 0] - rate_of[last] * (t[i] - t[last]))
            before = i
    residuals = residuals_of_positions(key, t, values, reporting, TimeKind.INTEGER, correcting)
    assert sorted(residuals.values.ravel()) == pytest.approx(sorted(expected))
    if correcting:
        assert (abs(residuals.values) <= 4.0 + 1e-9).all()


@examples(15)
@given(st.floats(0.1, 100), st.floats(0.2, 3), st.integers(0, 1000))
def test_the_deviation_of_a_truncated_normal_law_is_found(error: float, ratio: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = rng.normal(0, ratio * error, 40_000)
    law = fit_error(draws[abs(draws) <= error][:4000], coverage=1.0)
    if ratio < 0.7:
        assert law.deviation == pytest.approx(ratio * error, rel=0.12)
    total, _ = integrate.quad(lambda x: float(law.density(np.array([x]))[0]), -law.error, law.error)
    assert total == pytest.approx(1.0, abs=1e-6)


def test_uniform_residuals_have_a_uniform_law() -> None:
    law = fit_error(np.linspace(-5, 5, 2001), coverage=0.9)
    assert (law.error, law.deviation) == (pytest.approx(4.5, abs=0.01), None)
    assert law.clause() == "4.5"
    assert ErrorLaw(812.3, 210.04, 0, 0).clause() == "812.3 NORMAL 210"


def test_the_error_covers_the_stated_share_also_of_other_keys() -> None:
    rng = np.random.default_rng(1)
    residuals, key = rng.normal(0, 3, 20_000), rng.integers(0, 20, 20_000).astype(np.int32)
    law = fit_error(residuals, 0.95)
    assert float((abs(residuals) <= law.error).mean()) == pytest.approx(0.95, abs=1e-3)
    assert covered(residuals, key, 0.95) == pytest.approx(0.95, abs=0.01)
    assert math.isnan(covered(residuals, np.zeros(20_000, np.int32), 0.95)), "one key cannot be held out"


def test_growing_residuals_are_noticed() -> None:
    age = np.linspace(0.01, 0.99, 400)
    residuals = Residuals((age * np.tile([1, -1], 200))[:, np.newaxis], np.zeros(400, np.int32), age)
    assert growth(residuals, 0) == pytest.approx(0.87 / 0.13, rel=0.05)
    with pytest.raises(ValueError, match="all residuals are 0"):
        fit_error(np.zeros(5))
