"""Growth curves, their exponents, and the fit of costs."""

from __future__ import annotations

import pytest
from benchmarks.cost import KEY, ROW, RUN, fit
from benchmarks.growth import curve, exponent, points
from benchmarks.harness import Options, recorder


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_the_exponent_is_that_of_the_power(power: float) -> None:
    assert exponent({size: 3.0 * size**power for size in (10, 20, 80)}) == pytest.approx(power, abs=1e-9)


def test_a_curve_has_the_times_of_all_sizes_and_an_exponent() -> None:
    runs = {size: (lambda size=size: sum(range(20 * size))) for size in (1_000, 2_000)}
    records = list(curve(recorder("a.growth", "w", Options()), "rows", runs, 3))
    assert [record.metric for record in records] == ["rows: 1,000", "rows: 2,000", "rows: exponent"]
    seconds = {record.metric: record.value for record in records if record.unit == "s"}
    assert points(seconds) == {"rows": {1_000.0: records[0].value, 2_000.0: records[1].value}}
    assert records[1].ratio == pytest.approx(records[1].value / records[0].value)


def test_the_fit_finds_the_costs() -> None:
    rows, keys = [10**6, 2 * 10**6, 4 * 10**6, 4 * 10**6], [1_000, 1_000, 1_000, 500_000]
    seconds = [0.5 + 2.0 * r / 1e6 + 3.0 * k / 1e6 for r, k in zip(rows, keys, strict=True)]
    costs, error = fit(rows, keys, seconds)
    assert costs == pytest.approx({RUN: 0.5, ROW: 2.0, KEY: 3.0})
    assert error < 1e-9


def test_no_cost_is_negative() -> None:
    costs, error = fit([10**6, 2 * 10**6, 2 * 10**6], [10, 10, 10**6], [1.0, 2.0, 1.5])
    assert costs[KEY] == 0.0
    assert error > 0.05
