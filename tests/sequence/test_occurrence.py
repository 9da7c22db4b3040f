"""Gaps with OCCURS: tables agree with the oracle, which enumerates what happened, and with closed forms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.drawn import examples
from tests.oracles.occurrence import density, occurrence_score, smoothed

from anabranch.errors import DataError
from anabranch.sequence.kernel.tables import Table
from anabranch.sequence.occurrence import occurrence_table
from anabranch.sequence.query import BoundComponent, BoundDelay, GivenDelay
from anabranch.sequence.smoothing import kernels_of

#: The error of a table that is allowed; the contract is 1e-6.
CLOSE = 2e-7


def law(name: str, *parameters: float) -> BoundDelay:
    return BoundDelay(name, parameters)


def empirical(*atoms: float) -> BoundDelay:
    return BoundDelay("EMPIRICAL", path="delays.csv", atoms=tuple(sorted(atoms)))


def component(
    name: str, delay: BoundDelay, miss: float = 0.0, occurs: float | None = None, *,
    negative: bool = False, laws: Sequence[GivenDelay] = (),
) -> BoundComponent:  # fmt: skip
    return BoundComponent(name, name, None, negative, miss, delay, occurs, tuple(laws))  # type: ignore[arg-type]


def at(table: Table, gap: float) -> float:
    return float(table.at(np.array([gap]))[0])


EXPONENTIAL = law("EXPONENTIAL", 2.0)
GAPS = np.concatenate([np.geomspace(1e-6, 1.0, 20), np.linspace(1.5, 250.0, 50)])


def test_the_length_of_a_gap_tells_whether_an_event_happened() -> None:
    """With equal exponential delays, H1 / H0 = o eps T / (mean (1 - o))."""
    odds = 0.9 * 0.1 * (GAPS / 2.0) / 0.1
    end = component("z", EXPONENTIAL)
    happened = occurrence_table([component("y", EXPONENTIAL, 0.1, 0.9)], end, None)
    absent = occurrence_table([component("y", EXPONENTIAL, 0.1, 0.9, negative=True)], end, None)
    assert happened.at(GAPS) == pytest.approx(odds / (1 + odds), abs=CLOSE)
    assert absent.at(GAPS) == pytest.approx(1 / (1 + odds), abs=CLOSE)


def test_a_law_without_a_component_and_a_law_of_the_whole_gap() -> None:
    laws = [
        GivenDelay(False, frozenset("y"), law("NORMAL", 3.0, 1.0)),
        GivenDelay(True, frozenset("y"), law("GAMMA", 3.0, 2.0)),
    ]
    table = occurrence_table([component("y", EXPONENTIAL, 0.2, 0.6)], component("z", EXPONENTIAL, laws=laws), 50.0)
    gaps = np.linspace(0.1, 30.0, 50)
    happened = 0.6 * 0.2 * stats.gamma(3.0, scale=2.0).pdf(gaps)
    absent = 0.4 * stats.truncnorm(-3.0, np.inf, 3.0, 1.0).pdf(gaps)
    assert table.at(gaps) == pytest.approx(happened / (happened + absent), abs=CLOSE)


def test_an_event_that_always_happens_has_score_1_where_the_gap_is_possible() -> None:
    end = component("z", law("UNIFORM", 1.0, 3.0))
    table = occurrence_table([component("y", law("UNIFORM", 0.0, 4.0), 0.1)], end, None)
    assert [at(table, gap) for gap in (0.5, 1.5, 6.9, 7.0, 8.0)] == [0.0, 1.0, 1.0, 0.0, 0.0]
    endless = occurrence_table([component("y", EXPONENTIAL, 0.1, 1.0)], component("z", EXPONENTIAL), None)
    assert [at(endless, gap) for gap in (1e-9, 1.0, 1e6)] == [1.0] * 3
    never = occurrence_table([component("y", EXPONENTIAL, 0.1, 1.0, negative=True)], component("z", EXPONENTIAL), None)
    assert never.highest <= 1e-7


def test_a_gap_that_tells_nothing_leaves_the_odds_as_they_are() -> None:
    laws = [GivenDelay(True, frozenset("y"), EXPONENTIAL)]
    table = occurrence_table([component("y", EXPONENTIAL, 0.1, 0.5)], component("z", EXPONENTIAL, laws=laws), 20.0)
    assert at(table, 3.0) == pytest.approx(0.05 / 0.55)


def test_a_negative_that_is_always_read_did_not_happen() -> None:
    table = occurrence_table([component("y", EXPONENTIAL, 0.0, 0.5, negative=True)], component("z", EXPONENTIAL), None)
    assert at(table, 3.0) == 1.0


def test_the_longest_delay_is_possible() -> None:
    parts = [component("y", law("UNIFORM", 0.0, 4.0), 0.1, 0.9)]
    table = occurrence_table(parts, component("z", law("UNIFORM", 0.0, 4.0)), 20.0)
    for gap in (1.0, 4.0, 4.5, 8.0, 9.0):
        assert at(table, gap) == pytest.approx(
            occurrence_score(parts, component("z", law("UNIFORM", 0.0, 4.0)), gap), abs=CLOSE
        )


def test_a_gap_as_long_as_the_window_is_possible() -> None:
    for delay in (EXPONENTIAL, law("UNIFORM", 0.0, 4.0), empirical(1.0, 2.0, 9.0)):
        parts = [component("y", delay, 0.1, 0.5)]
        for horizon in (1.0, 4.0, 8.0):
            table = occurrence_table(parts, component("z", delay), horizon)
            expected = occurrence_score(parts, component("z", delay), horizon)
            assert at(table, horizon) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("unit", [1e-9, 1e6])
def test_the_unit_of_time_does_not_matter(unit: float) -> None:
    def table(unit: float) -> Table:
        parts = [
            component("y", law("GAMMA", 0.5, 3 * unit), 0.1, 0.4),
            component("w", law("EXPONENTIAL", unit), 0.2, 0.7),
        ]
        return occurrence_table(parts, component("z", law("NORMAL", 5 * unit, unit)), 100 * unit)

    gaps = np.linspace(0.01, 60.0, 200)
    assert table(unit).at(gaps * unit) == pytest.approx(table(1.0).at(gaps), abs=CLOSE)


def test_gaps_beyond_all_densities_keep_their_score() -> None:
    table = occurrence_table([component("y", EXPONENTIAL, 0.1, 0.9)], component("z", EXPONENTIAL), None)
    assert at(table, 1e9) == pytest.approx(at(table, 250.0), abs=0.01)


# ---------------------------------------------------------------- any gap

positive = st.floats(0.05, 20.0)
smooth = st.one_of(
    st.builds(lambda mean: law("EXPONENTIAL", mean), positive),
    st.builds(lambda low, width: law("UNIFORM", low, low + width), st.one_of(st.just(0.0), positive), positive),
    st.builds(lambda shape, scale: law("GAMMA", shape, scale), st.floats(1.0, 6.0), positive),
    st.builds(lambda mu, sigma: law("LOGNORMAL", mu, sigma), st.floats(-2.0, 3.0), st.floats(0.2, 2.0)),
    st.builds(lambda mean, sd: law("NORMAL", mean, sd), st.floats(-3.0, 10.0), st.floats(0.2, 4.0)),
)
atoms = st.lists(st.floats(0.25, 20.0), min_size=1, max_size=6).map(lambda values: empirical(*values))
delays = st.one_of(smooth, smooth, atoms)
CHANCES = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])


@st.composite
def gaps(draw: st.DrawFn) -> tuple[list[BoundComponent], BoundComponent]:
    names = "uvw"[: draw(st.integers(1, 2))]
    between = [
        component(
            name, draw(delays), draw(st.sampled_from([0.01, 0.1, 0.5])), draw(CHANCES), negative=draw(st.booleans())
        )
        for name in names
    ]
    laws = [
        GivenDelay(draw(st.booleans()), frozenset(draw(st.sampled_from([names, names[:1], names[-1:]]))), draw(delays))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return between, component("z", draw(delays), laws=laws)


@examples(15)
@given(gaps(), st.floats(0.001, 1.0), st.sampled_from([60.0, 5.0, None]))
def test_a_table_agrees_with_the_enumeration(
    gap: tuple[list[BoundComponent], BoundComponent], fraction: float, horizon: float | None
) -> None:
    length = fraction * (horizon or 40.0)
    table = occurrence_table(*gap, horizon)
    assert at(table, length) <= table.highest
    # The oracle integrates with an absolute error, which matters where the gap is almost impossible.
    likelihood = density((gap[1].delay,), length) if gap[1].delay else 0.0
    if max(likelihood, *(density((part.delay, gap[1].delay), length) for part in gap[0])) > 1e-12:
        assert at(table, length) == pytest.approx(occurrence_score(*gap, length), abs=1e-6)


# ---------------------------------------------------------------- smoothing


def test_smoothed_delays_equal_the_definition() -> None:
    rng = np.random.default_rng(5)
    for values in ([3.0], [60.0] * 8 + [61.0], rng.lognormal(3.0, 2.0, 200).tolist()):
        x = np.geomspace(1e-3, 1e5, 400)
        assert kernels_of(np.array(values)).density(x) == pytest.approx(smoothed(values)(x), rel=1e-9, abs=1e-300)


def test_many_delays_are_merged_with_little_change() -> None:
    values = np.random.default_rng(6).lognormal(3.0, 1.0, 4000)
    kernels = kernels_of(values)
    assert len(kernels.centres) <= 513
    assert integrate.quad(lambda x: kernels.density(np.array([x]))[0], 0, 5000, limit=400)[0] == pytest.approx(
        1, abs=1e-3
    )
    x = np.geomspace(1.0, 300.0, 100)
    true = stats.lognorm(1.0, scale=math.exp(3.0)).pdf(x)
    assert np.abs(kernels.density(x) - true).mean() < 0.2 * true.mean()


def test_a_delay_of_0_is_refused_in_one_line() -> None:
    with pytest.raises(DataError, match=r"delays.csv: a delay is 0, but with OCCURS, delays must be above 0"):
        occurrence_table([component("y", empirical(0.0, 1.0), 0.1, 0.5)], component("z", EXPONENTIAL), None)


def test_too_many_components_are_refused_in_one_line() -> None:
    many = [component(f"y{number}", EXPONENTIAL, 0.1, 0.5) for number in range(9)]
    with pytest.raises(DataError, match=r"a gap has 9 components \(y0, .*\), above 8 that OCCURS can weigh"):
        occurrence_table(many, component("z", EXPONENTIAL), None)
