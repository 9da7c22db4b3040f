"""Sensors' reports: against the oracle, split anyhow, and what they promise to those who wait for them."""

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

from anabranch.columns.times import TimeKind, order_doubles
from anabranch.inference.reporting import CORRECTION, FIRST, HEARTBEAT, METHODS, Reporting, Reports, Sensors
from tests.oracles import reporting as oracle

Draw = Callable[[st.SearchStrategy[Any]], Any]

#: How many codes a unit of time has; doubles are quarters, so that nothing is rounded.
UNITS = {TimeKind.INTEGER: 1, TimeKind.DOUBLE: 4, TimeKind.TIMESTAMP: 1_000_000}


@dataclass(frozen=True)
class Case:
    """Measurements, and how they are reported; times are counted in the UNITS of their kind."""

    how: Reporting
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
        return Sensors(self.how, self.kind).report(self.key, self.codes, self.values)

    def truth(self) -> tuple[list[oracle.Report], int]:
        # What is given by None is a matter of `Reporting`, and tested by itself.
        told = (self.how.accelerations()[0], self.how.noises()[0])
        errors, period = [Fraction(e) for e in self.how.errors], Fraction(self.how.period)
        found: tuple[list[oracle.Report], int] = oracle.reports(
            self.measurements, errors, period, self.how.method, *map(Fraction, told)
        )
        return found


@st.composite
def cases(draw: Draw) -> Case:
    """A few keys with integer values. Errors are such that no difference of values can be exactly one."""
    m = draw(st.integers(1, 2))
    kind = draw(st.sampled_from(TimeKind))
    error = st.integers(0, 30).map(lambda whole: whole + 0.3719)
    how = Reporting(
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
    return Case(how, kind, table[:, 0].astype(np.int32), ticks[order].astype(np.int64), table[:, 1:])


@given(cases())
def test_reports_are_those_of_the_oracle(case: Case) -> None:
    found, (wanted, duplicates) = case.report(), case.truth()
    assert found.row.tolist() == [each.row for each in wanted]
    assert found.duplicates == duplicates
    rates = np.array([[float(rate) for rate in each.rates] for each in wanted]).reshape(found.rates.shape)
    assert_allclose(found.rates, rates, rtol=1e-9, atol=1e-9)


@given(cases(), st.data())
def test_any_split_of_the_rows_gives_the_same_and_so_does_saved_state(case: Case, data: st.DataObject) -> None:
    n = len(case.key)
    whole = case.report()
    arrival = np.argsort(case.ticks, kind="stable")
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    sensors, parts, duplicates = Sensors(case.how, case.kind), [], 0
    for start, end in zip([0, *cuts], [*cuts, n], strict=True):
        part = arrival[start:end]
        if data.draw(st.booleans()):
            saved = through_ipc(sensors.save())
            sensors = Sensors(case.how, case.kind)
            sensors.load(saved)
        found = sensors.report(case.key[part], case.codes[part], case.values[part])
        duplicates += found.duplicates
        parts += list(zip(part[found.row].tolist(), found.rates.tolist(), found.cause.tolist(), strict=True))
    assert duplicates == whole.duplicates
    assert sorted(parts) == sorted(zip(whole.row.tolist(), whole.rates.tolist(), whole.cause.tolist(), strict=True))


def through_ipc(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@given(cases())
def test_what_a_report_promises_is_kept_at_every_measurement(case: Case) -> None:
    """Up to the next report the truth is within the error of the line; and who is silent for the period is gone."""
    found = case.report()
    rates = dict(zip(found.row.tolist(), found.rates.tolist(), strict=True))
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
        assert np.all(np.abs(value + rate * since - case.values[row]) <= np.array(case.how.errors) + 1e-9)
        assert since < case.how.period


@given(cases())
def test_causes_are_told_apart(case: Case) -> None:
    found = case.report()
    t = case.ticks / UNITS[case.kind]
    for place, (row, cause) in enumerate(zip(found.row.tolist(), found.cause.tolist(), strict=True)):
        first = place == 0 or case.key[found.row[place - 1]] != case.key[row]
        assert (cause == FIRST) == first
        if not first:
            before = found.row[place - 1]
            since = t[row] - t[before]
            off = np.abs(case.values[before] + found.rates[place - 1] * since - case.values[row])
            assert (cause == CORRECTION) == bool(np.any(off > case.how.errors))
            assert cause in (CORRECTION, HEARTBEAT)


# ---------------------------------------------------------------- one car after the other


def drive(how: Reporting, x: Sequence[float], every: float = 1.0, kind: TimeKind = TimeKind.DOUBLE) -> Reports:
    """The reports of one key with one value column, measured at an interval."""
    t = every * np.arange(len(x))
    codes = order_doubles(t) if kind is TimeKind.DOUBLE else np.rint(t * UNITS[kind]).astype(np.int64)
    values = np.asarray(x, np.float64)[:, None]
    return Sensors(how, kind).report(np.zeros(len(x), np.int32), codes, values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", TimeKind)
def test_a_straight_line_needs_heartbeats_alone_after_the_second_report(method: str, kind: TimeKind) -> None:
    found = drive(Reporting((5.0,), 30.0, method), 7.0 * np.arange(200) - 100, every=3.0, kind=kind)
    assert found.row.tolist() == [0, 1, *range(11, 200, 10)]
    assert set(found.cause[2:].tolist()) == {HEARTBEAT}
    assert_allclose(found.rates[1:], 7 / 3, rtol=1e-12)


def test_exactly_the_error_is_not_off_and_exactly_the_period_is_over() -> None:
    found = drive(Reporting((5.0,), 3.0), [0, 5, 0, -5, 0.5, 6.5])
    assert found.row.tolist() == [0, 3, 4]
    assert found.cause.tolist() == [FIRST, HEARTBEAT, CORRECTION]
    assert found.rates.ravel().tolist() == [0, -5, 5.5]


def test_a_period_of_doubles_is_not_missed_by_a_rounding() -> None:
    """0.7 - 0.4 is less than 0.3, and a heartbeat at 0.8 would be too late: the prediction ends at 0.7."""
    times = np.array([0.4, 0.5, 0.6, 0.7, 0.8])
    assert times[3] - times[0] < 0.3
    found = Sensors(Reporting((1.0,), 0.3), TimeKind.DOUBLE).report(
        np.zeros(5, np.int32), order_doubles(times), np.zeros((5, 1))
    )
    assert found.row.tolist() == [0, 3]


@pytest.mark.parametrize("method", METHODS)
def test_after_a_silence_longer_than_the_period_all_begins_anew(method: str) -> None:
    how = Reporting((1.0,), 10.0, method)
    key, codes = np.zeros(6, np.int32), np.array([0, 1, 2, 13, 14, 24])
    values = np.array([[0.0], [3.0], [6.0], [39.0], [44.0], [94.0]])
    found = Sensors(how, TimeKind.INTEGER).report(key, codes, values)
    assert found.row.tolist() == [0, 1, 3, 4, 5]
    assert_allclose(found.rates.ravel(), [0, 3, 0, 5, 5], rtol=1e-12)


def test_a_report_of_one_column_tells_all_of_them() -> None:
    sensors = Sensors(Reporting((1.0, 100.0), 30.0), TimeKind.INTEGER)
    found = sensors.report(np.zeros(2, np.int32), np.arange(2), np.array([[0.0, 0.0], [2.0, 50.0]]))
    assert found.row.tolist() == [0, 1]
    assert found.rates.tolist() == [[0, 0], [2, 50]]


def test_a_later_call_may_repeat_the_time_of_an_earlier_one() -> None:
    sensors = Sensors(Reporting((1.0,), 30.0), TimeKind.INTEGER)
    one = np.zeros(1, np.int32)
    assert sensors.report(one, np.array([7]), np.array([[1.0]])).row.tolist() == [0]
    again = sensors.report(one, np.array([7]), np.array([[99.0]]))
    assert (again.row.tolist(), again.duplicates) == ([], 1)
    assert sensors.report(one, np.array([8]), np.array([[1.5]])).row.tolist() == []


@pytest.mark.parametrize("method", METHODS)
def test_times_may_be_as_far_apart_or_as_close_as_can_be(method: str) -> None:
    how = Reporting((1.0,), 10.0, method)
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    key, values = np.zeros(2, np.int32), np.array([[0.0], [5.0]])
    found = Sensors(how, TimeKind.INTEGER).report(key, ends, values)
    assert (found.row.tolist(), found.rates.ravel().tolist()) == ([0, 1], [0, 0])
    values = np.array([[0.0], [5.0], [9.0], [12.0]])
    close = order_doubles(np.array([0.0, 5e-324, 1.0, 2.0]))
    found = Sensors(how, TimeKind.DOUBLE).report(np.zeros(4, np.int32), close, values)
    assert np.all(np.isfinite(found.rates)), "a rate that is too large for a double is none"
    assert found.row.tolist()[:2] == [0, 1]


# ---------------------------------------------------------------- the filter

NOISY = Reporting((25.0,), 60.0, "KALMAN", noise=5.0, acceleration=0.01)


def noisy_line(n: int, slope: float = 8.0, spread: float = 5.0, seed: int = 0) -> NDArray[np.float64]:
    return slope * np.arange(n) + spread * np.random.default_rng(seed).standard_normal(n)


def test_rates_of_the_filter_converge_on_a_noisy_straight_line() -> None:
    found = drive(NOISY, noisy_line(2_000))
    off = np.abs(found.rates.ravel() - 8.0)
    assert off[found.row > 100].max() < 0.6
    linear = drive(replace(NOISY, method="LINEAR"), noisy_line(2_000))
    assert off[found.row > 100].max() < np.abs(linear.rates.ravel() - 8.0)[linear.row > 100].mean() / 5


@pytest.mark.parametrize("seed", range(5))
def test_the_filter_communicates_less_where_measurements_are_noisy(seed: int) -> None:
    x = noisy_line(1_000, seed=seed)
    by_method = {method: len(drive(replace(NOISY, method=method), x).row) for method in METHODS}
    by_default = len(drive(Reporting((25.0,), 60.0, "KALMAN"), x).row)
    assert by_method["KALMAN"] < by_method["LINEAR"] / 3
    assert by_default < by_method["LINEAR"] * 2 / 3


def test_the_filter_is_as_sure_of_its_velocity_as_the_textbook_says() -> None:
    """Without acceleration it is a least-squares line, whose slope has variance 12 noise^2 / (n (n^2 - 1))."""
    how = Reporting((1e9,), 1e9, "KALMAN", noise=5.0, acceleration=0.0)
    n = 40
    sensors = Sensors(how, TimeKind.INTEGER)
    x = noisy_line(n)
    sensors.report(np.zeros(n, np.int32), np.arange(n), x[:, None])
    *_, velocity, _, _, variance = sensors.save()["beliefs"].to_pylist()[0]
    assert velocity == pytest.approx(np.polyfit(np.arange(n), x, 1)[0], rel=1e-9)
    assert variance == pytest.approx(12 * 5.0**2 / (n * (n**2 - 1)), rel=1e-9)


def test_the_unit_of_time_changes_nothing() -> None:
    """Where it is eight times as long, so are rates, and the period is an eighth; the same is reported."""
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


def test_far_from_zero_nothing_is_lost() -> None:
    """Positions of a planet's size and times since 1970, to a microsecond, give the rates that they give near zero."""
    steps = np.cumsum(np.random.default_rng(5).integers(900_000, 1_100_000, 300))
    x = np.cumsum(np.random.default_rng(6).integers(-3, 4, 300)).astype(np.float64)[:, None]
    how, key = Reporting((4.0,), 20.0, "KALMAN"), np.zeros(300, np.int32)
    near = Sensors(how, TimeKind.TIMESTAMP).report(key, steps, x)
    far = Sensors(how, TimeKind.TIMESTAMP).report(key, steps + 1_790_000_000_000_000, x + 2.0**32)
    assert_array_equal(near.row, far.row)
    assert_array_equal(near.rates, far.rates)


# ---------------------------------------------------------------- what cannot be


def test_what_is_not_given_is_made_of_the_errors_and_the_period() -> None:
    how = Reporting((25.0, 5.0), 30.0, "KALMAN")
    assert how.accelerations().tolist() == [0.5, 0.1]
    assert how.noises().tolist() == [2.5, 0.5]
    how = replace(how, acceleration=2.0, noise=0.0)
    assert (how.accelerations().tolist(), how.noises().tolist()) == ([2, 2], [0, 0])


@pytest.mark.parametrize(
    "given",
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
def test_what_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="errors|period|method|one value"):
        Reporting(**({"errors": (1.0,), "period": 30.0} | given))


def test_nothing_measured_is_nothing_reported() -> None:
    sensors = Sensors(Reporting((1.0, 2.0), 30.0), TimeKind.DOUBLE)
    nothing = sensors.report(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros((0, 2)))
    assert (len(nothing.row), nothing.rates.shape, nothing.duplicates) == (0, (0, 2), 0)
    again = Sensors(Reporting((1.0, 2.0), 30.0), TimeKind.DOUBLE)
    again.load(through_ipc(sensors.save()))
    assert again.save() == sensors.save()
