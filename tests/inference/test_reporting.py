"""Reports of sensors: compared with the oracle, for any split of the rows, and the guarantees of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from anabranch.columns.globe import Projection
from anabranch.columns.times import TimeKind, order_doubles
from anabranch.inference.reporting import CORRECTION, FIRST, HEARTBEAT, METHODS, Reporting, Reports, Sensors
from tests.oracles import reporting as oracle

Draw = Callable[[st.SearchStrategy[Any]], Any]

#: The number of ticks per unit of time; doubles are quarters, so that nothing is rounded.
UNITS = {TimeKind.INTEGER: 1, TimeKind.DOUBLE: 4, TimeKind.TIMESTAMP: 1_000_000}


@dataclass(frozen=True)
class Case:
    """Measurements, and how they are reported; times are in the UNITS of their kind."""

    reporting: Reporting
    kind: TimeKind
    key: NDArray[np.int32]
    ticks: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def codes(self) -> NDArray[np.int64]:
        return order_doubles(self.ticks / UNITS[self.kind]) if self.kind is TimeKind.DOUBLE else self.ticks

    @property
    def measurements(self) -> list[oracle.Measurement]:
        return [
            oracle.Measurement(int(key), Fraction(int(tick), UNITS[self.kind]), tuple(map(Fraction, values)))
            for key, tick, values in zip(self.key, self.ticks, self.values, strict=True)
        ]

    def report(self) -> Reports:
        return Sensors(self.reporting, self.kind).report(self.key, self.codes, self.values)

    def truth(self) -> tuple[list[oracle.Report], int]:
        # The defaults of acceleration and noise have their own test.
        acceleration, noise = Fraction(self.reporting.accelerations()[0]), Fraction(self.reporting.noises()[0])
        errors, period = [Fraction(error) for error in self.reporting.errors], Fraction(self.reporting.period)
        result: tuple[list[oracle.Report], int] = oracle.reports(
            self.measurements, errors, period, self.reporting.method, acceleration, noise
        )
        return result


@st.composite
def cases(draw: Draw) -> Case:
    """A few keys with integer values. No difference of values can be equal to an error."""
    m = draw(st.integers(1, 2))
    kind = draw(st.sampled_from(TimeKind))
    error = st.integers(0, 30).map(lambda integer: integer + 0.3719)
    reporting = Reporting(
        errors=tuple(draw(error) for _ in range(m)),
        period=draw(st.sampled_from([1.0, 2.5, 7.0, 12.0, 30.0])),
        method=draw(st.sampled_from(METHODS)),
        acceleration=draw(st.sampled_from([0.0, 0.1, 1.0, 20.0])),
        noise=draw(st.sampled_from([0.05, 1.0, 8.0])),
    )
    n = draw(st.integers(0, 16))
    start = draw(st.sampled_from([0, -9, 1_790_000_000])) * UNITS[kind]
    finest = {TimeKind.INTEGER: 1, TimeKind.DOUBLE: 1, TimeKind.TIMESTAMP: 250_000}[kind]
    steps = draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))
    rows = st.tuples(st.integers(0, 2), *[st.integers(-60, 60)] * m)
    measured = draw(st.lists(rows, min_size=n, max_size=n))
    ticks = start + finest * np.cumsum(np.array(steps, np.int64))
    order = draw(st.permutations(range(n)))
    table = np.array(measured, np.float64).reshape(n, m + 1)[order]
    return Case(reporting, kind, table[:, 0].astype(np.int32), ticks[order].astype(np.int64), table[:, 1:])


@given(cases())
def test_reports_are_those_of_the_oracle(case: Case) -> None:
    reports, (expected, duplicates) = case.report(), case.truth()
    assert reports.row.tolist() == [report.row for report in expected]
    assert reports.duplicates == duplicates
    rates = np.array([[float(rate) for rate in report.rates] for report in expected]).reshape(reports.rates.shape)
    assert_allclose(reports.rates, rates, rtol=1e-9, atol=1e-9)


@given(cases(), st.data())
def test_any_split_of_the_rows_gives_the_same_reports_also_with_saved_state(case: Case, data: st.DataObject) -> None:
    n = len(case.key)
    one_call = case.report()
    arrival = np.argsort(case.ticks, kind="stable")
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    sensors, parts, duplicates = Sensors(case.reporting, case.kind), [], 0
    for start, end in zip([0, *cuts], [*cuts, n], strict=True):
        part = arrival[start:end]
        if data.draw(st.booleans()):
            saved = through_ipc(sensors.save())
            sensors = Sensors(case.reporting, case.kind)
            sensors.load(saved)
        reports = sensors.report(case.key[part], case.codes[part], case.values[part])
        duplicates += reports.duplicates
        parts += list(zip(part[reports.row].tolist(), reports.rates.tolist(), reports.cause.tolist(), strict=True))
    assert duplicates == one_call.duplicates
    expected = zip(one_call.row.tolist(), one_call.rates.tolist(), one_call.cause.tolist(), strict=True)
    assert sorted(parts) == sorted(expected)


def through_ipc(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@given(cases())
def test_measurements_stay_within_the_error_and_the_period_of_the_last_report(case: Case) -> None:
    """Up to the next report, a measurement is within the error of the line and less than a period after the report."""
    reports = case.report()
    rates = dict(zip(reports.row.tolist(), reports.rates.tolist(), strict=True))
    last: dict[int, tuple[float, Any, Any]] = {}
    t = case.ticks / UNITS[case.kind]
    seen: set[tuple[int, int]] = set()
    for row in np.lexsort((case.ticks, case.key)).tolist():
        key = int(case.key[row])
        if (key, int(case.ticks[row])) in seen:
            assert row not in rates
            continue
        seen.add((key, int(case.ticks[row])))
        if row in rates:
            last[key] = (t[row], case.values[row], np.array(rates[row]))
        since, value, rate = t[row] - last[key][0], *last[key][1:]
        assert np.all(np.abs(value + rate * since - case.values[row]) <= np.array(case.reporting.errors) + 1e-9)
        assert since < case.reporting.period


@given(cases())
def test_each_report_has_its_cause(case: Case) -> None:
    reports = case.report()
    t = case.ticks / UNITS[case.kind]
    for index, (row, cause) in enumerate(zip(reports.row.tolist(), reports.cause.tolist(), strict=True)):
        first = index == 0 or case.key[reports.row[index - 1]] != case.key[row]
        assert (cause == FIRST) == first
        if not first:
            before = reports.row[index - 1]
            since = t[row] - t[before]
            off = np.abs(case.values[before] + reports.rates[index - 1] * since - case.values[row])
            assert (cause == CORRECTION) == bool(np.any(off > case.reporting.errors))
            assert cause in (CORRECTION, HEARTBEAT)


# ---------------------------------------------------------------- single cars


def drive(reporting: Reporting, x: Sequence[float], every: float = 1.0, kind: TimeKind = TimeKind.DOUBLE) -> Reports:
    """The reports of one key with one value column, measured at regular intervals."""
    t = every * np.arange(len(x))
    codes = order_doubles(t) if kind is TimeKind.DOUBLE else np.rint(t * UNITS[kind]).astype(np.int64)
    values = np.asarray(x, np.float64)[:, None]
    return Sensors(reporting, kind).report(np.zeros(len(x), np.int32), codes, values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", TimeKind)
def test_a_straight_line_needs_only_heartbeats_after_the_second_report(method: str, kind: TimeKind) -> None:
    reports = drive(Reporting((5.0,), 30.0, method), 7.0 * np.arange(200) - 100, every=3.0, kind=kind)
    assert reports.row.tolist() == [0, 1, *range(11, 200, 10)]
    assert set(reports.cause[2:].tolist()) == {HEARTBEAT}
    assert_allclose(reports.rates[1:], 7 / 3, rtol=1e-12)


def test_a_value_off_by_exactly_the_error_is_silent_and_after_exactly_the_period_there_is_a_heartbeat() -> None:
    reports = drive(Reporting((5.0,), 3.0), [0, 5, 0, -5, 0.5, 6.5])
    assert reports.row.tolist() == [0, 3, 4]
    assert reports.cause.tolist() == [FIRST, HEARTBEAT, CORRECTION]
    assert reports.rates.ravel().tolist() == [0, -5, 5.5]


@pytest.mark.parametrize("times", [[0.4, 0.5, 0.6, 0.7, 0.8], [0.7, 0.8, 0.9, 1.0, 1.1]])
def test_a_heartbeat_of_double_times_is_not_missed_by_a_rounding_error(times: list[float]) -> None:
    """0.7 - 0.4 is less than 0.3, but a heartbeat at 0.8 would be too late; 0.9 is not too early for one at 1.0."""
    reports = Sensors(Reporting((1.0,), 0.3), TimeKind.DOUBLE).report(
        np.zeros(5, np.int32), order_doubles(np.array(times)), np.zeros((5, 1))
    )
    assert reports.row.tolist() == [0, 3]


def test_a_heartbeat_is_early_if_the_next_measurement_would_come_after_the_period() -> None:
    """Measurements every 7, with a period of 30: at 28 the next one is expected at 35."""
    reports = drive(Reporting((5.0,), 30.0), np.zeros(13), every=7.0)
    assert reports.row.tolist() == [0, 4, 8, 12]
    assert set(reports.cause[1:].tolist()) == {HEARTBEAT}


def test_the_next_interval_is_the_longest_of_the_last_four() -> None:
    """The interval of 9 still counts at 12: the next measurement could be at 21, after the period of 20."""
    codes = np.array([0, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
    reports = Sensors(Reporting((5.0,), 20.0), TimeKind.INTEGER).report(
        np.zeros(len(codes), np.int32), codes, np.zeros((len(codes), 1))
    )
    assert codes[reports.row].tolist() == [0, 12]


@given(st.lists(st.integers(1, 10), min_size=1, max_size=40), st.integers(10, 40))
def test_regular_measurements_never_leave_a_key_without_prediction(jitter: list[int], period: int) -> None:
    """If no interval is longer than the longest of the four before it, every report comes in time."""
    intervals = [10]
    for interval in jitter:
        intervals.append(min(interval, max(intervals[-4:])))
    codes = np.concatenate([[0], np.cumsum(intervals)])
    reports = Sensors(Reporting((1.0,), float(period)), TimeKind.INTEGER).report(
        np.zeros(len(codes), np.int32), codes, np.zeros((len(codes), 1))
    )
    assert (np.diff(codes[reports.row]) <= period).all()


def test_without_corrections_there_are_only_heartbeats() -> None:
    x = np.array([[0.0], [50.0], [0.0], [50.0], [0.0]])
    key, codes = np.zeros(5, np.int32), np.arange(5)
    reports = Sensors(Reporting((1.0,), 2.0), TimeKind.INTEGER).report(key, codes, x, correcting=False)
    assert reports.row.tolist() == [0, 2, 4]
    assert reports.values.ravel().tolist() == [0.0, 0.0, 0.0]


def test_projected_positions_are_reported_in_metres() -> None:
    """A hundredth of a degree of latitude is 1,112 m; the third column is not projected."""
    projection = Projection((1, 0), 8.0, 47.0)
    reporting = Reporting((100.0, 100.0, 1.0), 60.0, projection=projection)
    degrees = np.array([[47.0, 8.0, 5.0], [47.01, 8.0, 5.0], [47.02, 8.0, 5.0], [47.03, 8.0, 9.0]])
    reports = Sensors(reporting, TimeKind.INTEGER).report(np.zeros(4, np.int32), np.arange(0, 40, 10), degrees)
    assert reports.row.tolist() == [0, 1, 3], "the third is on the line of the second"
    assert_allclose(reports.values, projection.project(degrees)[[0, 1, 3]])
    assert_allclose(reports.rates[1], [111.195, 0.0, 0.0], rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_silence_longer_than_the_period_resets_the_sensor(method: str) -> None:
    reporting = Reporting((1.0,), 10.0, method)
    key, codes = np.zeros(6, np.int32), np.array([0, 1, 2, 13, 14, 24])
    values = np.array([[0.0], [3.0], [6.0], [39.0], [44.0], [94.0]])
    reports = Sensors(reporting, TimeKind.INTEGER).report(key, codes, values)
    assert reports.row.tolist() == [0, 1, 3, 4, 5]
    assert_allclose(reports.rates.ravel(), [0, 3, 0, 5, 5], rtol=1e-12)


def test_a_report_has_all_columns() -> None:
    sensors = Sensors(Reporting((1.0, 100.0), 30.0), TimeKind.INTEGER)
    reports = sensors.report(np.zeros(2, np.int32), np.arange(2), np.array([[0.0, 0.0], [2.0, 50.0]]))
    assert reports.row.tolist() == [0, 1]
    assert reports.rates.tolist() == [[0, 0], [2, 50]]


def test_a_later_call_may_repeat_the_time_of_an_earlier_one() -> None:
    sensors = Sensors(Reporting((1.0,), 30.0), TimeKind.INTEGER)
    one = np.zeros(1, np.int32)
    assert sensors.report(one, np.array([7]), np.array([[1.0]])).row.tolist() == [0]
    repeated = sensors.report(one, np.array([7]), np.array([[99.0]]))
    assert (repeated.row.tolist(), repeated.duplicates) == ([], 1)
    assert sensors.report(one, np.array([8]), np.array([[1.5]])).row.tolist() == []


@pytest.mark.parametrize("method", METHODS)
def test_times_may_be_as_far_apart_or_as_close_as_possible(method: str) -> None:
    reporting = Reporting((1.0,), 10.0, method)
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    key, values = np.zeros(2, np.int32), np.array([[0.0], [5.0]])
    reports = Sensors(reporting, TimeKind.INTEGER).report(key, ends, values)
    assert (reports.row.tolist(), reports.rates.ravel().tolist()) == ([0, 1], [0, 0])
    values = np.array([[0.0], [5.0], [9.0], [12.0]])
    close = order_doubles(np.array([0.0, 5e-324, 1.0, 2.0]))
    reports = Sensors(reporting, TimeKind.DOUBLE).report(np.zeros(4, np.int32), close, values)
    assert np.all(np.isfinite(reports.rates)), "a rate that is too large for a double is not used"
    assert reports.row.tolist()[:2] == [0, 1]


# ---------------------------------------------------------------- the filter

NOISY = Reporting((25.0,), 60.0, "KALMAN", noise=5.0, acceleration=0.01)


def noisy_line(n: int, slope: float = 8.0, spread: float = 5.0, seed: int = 0) -> NDArray[np.float64]:
    return slope * np.arange(n) + spread * np.random.default_rng(seed).standard_normal(n)


def test_rates_of_the_filter_converge_on_a_noisy_straight_line() -> None:
    reports = drive(NOISY, noisy_line(2_000))
    off = np.abs(reports.rates.ravel() - 8.0)
    assert off[reports.row > 100].max() < 0.6
    linear = drive(replace(NOISY, method="LINEAR"), noisy_line(2_000))
    assert off[reports.row > 100].max() < np.abs(linear.rates.ravel() - 8.0)[linear.row > 100].mean() / 5


@pytest.mark.parametrize("seed", range(5))
def test_the_filter_reports_less_often_if_measurements_are_noisy(seed: int) -> None:
    x = noisy_line(1_000, seed=seed)
    by_method = {method: len(drive(replace(NOISY, method=method), x).row) for method in METHODS}
    by_default = len(drive(Reporting((25.0,), 60.0, "KALMAN"), x).row)
    assert by_method["KALMAN"] < by_method["LINEAR"] / 3
    assert by_default < by_method["LINEAR"] * 2 / 3


def test_the_variance_of_the_velocity_is_that_of_least_squares() -> None:
    """Without acceleration the filter is a least-squares line, whose slope has variance 12 noise^2 / (n (n^2 - 1))."""
    reporting = Reporting((1e9,), 1e9, "KALMAN", noise=5.0, acceleration=0.0)
    n = 40
    sensors = Sensors(reporting, TimeKind.INTEGER)
    x = noisy_line(n)
    sensors.report(np.zeros(n, np.int32), np.arange(n), x[:, None])
    *_, velocity, _, _, variance = sensors.save()["beliefs"].to_pylist()[0]
    assert velocity == pytest.approx(np.polyfit(np.arange(n), x, 1)[0], rel=1e-9)
    assert variance == pytest.approx(12 * 5.0**2 / (n * (n**2 - 1)), rel=1e-9)


def test_the_unit_of_time_changes_nothing() -> None:
    """If the unit is eight times as long, rates are eight times as high, and the same measurements are reported."""
    x = np.cumsum(noisy_line(300, slope=0.0, spread=9.0))
    seconds = drive(Reporting((25.0,), 32.0, "KALMAN"), x, every=1.0)
    eighths = drive(Reporting((25.0,), 4.0, "KALMAN"), x, every=0.125)
    assert_array_equal(seconds.row, eighths.row)
    assert_allclose(seconds.rates, eighths.rates / 8, rtol=1e-9)


def test_without_noise_and_acceleration_the_filter_is_linear() -> None:
    x = np.random.default_rng(3).integers(-20, 20, 200).astype(np.float64)
    linear, kalman = (drive(Reporting((0.0,), 7.0, method), x) for method in METHODS)
    assert_array_equal(linear.row, kalman.row)
    assert_allclose(linear.rates, kalman.rates, rtol=1e-12)


def test_large_values_and_times_lose_no_digits() -> None:
    """Positions of a planet's size and times since 1970, to a microsecond, give the same rates as those near zero."""
    steps = np.cumsum(np.random.default_rng(5).integers(900_000, 1_100_000, 300))
    x = np.cumsum(np.random.default_rng(6).integers(-3, 4, 300)).astype(np.float64)[:, None]
    reporting, key = Reporting((4.0,), 20.0, "KALMAN"), np.zeros(300, np.int32)
    near = Sensors(reporting, TimeKind.TIMESTAMP).report(key, steps, x)
    far = Sensors(reporting, TimeKind.TIMESTAMP).report(key, steps + 1_790_000_000_000_000, x + 2.0**32)
    assert_array_equal(near.row, far.row)
    assert_array_equal(near.rates, far.rates)


# ---------------------------------------------------------------- parameters


def test_acceleration_and_noise_have_defaults() -> None:
    reporting = Reporting((25.0, 5.0), 30.0, "KALMAN")
    assert reporting.accelerations().tolist() == [0.5, 0.1]
    assert reporting.noises().tolist() == [2.5, 0.5]
    reporting = replace(reporting, acceleration=2.0, noise=0.0)
    assert (reporting.accelerations().tolist(), reporting.noises().tolist()) == ([2, 2], [0, 0])


@pytest.mark.parametrize(
    "arguments",
    [
        {"errors": (-1.0,)},
        {"errors": (float("nan"),)},
        {"errors": ()},
        {"period": 0.0},
        {"period": float("inf")},
        {"method": "CUBIC"},
        {"noise": -1.0},
        {"acceleration": float("inf")},
    ],
)
def test_invalid_arguments_are_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="errors|period|method"):
        Reporting(**({"errors": (1.0,), "period": 30.0} | arguments))


def test_without_measurements_there_are_no_reports() -> None:
    sensors = Sensors(Reporting((1.0, 2.0), 30.0), TimeKind.DOUBLE)
    reports = sensors.report(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros((0, 2)))
    assert (len(reports.row), reports.rates.shape, reports.duplicates) == (0, (0, 2), 0)
    restored = Sensors(Reporting((1.0, 2.0), 30.0), TimeKind.DOUBLE)
    restored.load(through_ipc(sensors.save()))
    assert restored.save() == sensors.save()
