"""The scores of gaps compared with closed forms, integrals and explicit sums; the properties of their tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import integrate, special, stats
from tests.drawn import examples
from tests.oracles.gaps import JOINT, POSTERIOR, Part, gap_score

from anabranch.errors import DataError
from anabranch.sequence.distributions import distribution_of
from anabranch.sequence.gaps import gap_table
from anabranch.sequence.kernel.tables import Table, joined, score
from anabranch.sequence.pieces import TooManyPieces, fitted
from anabranch.sequence.query import BoundDelay

CLOSE = 1e-9


def exponential(mean: float) -> BoundDelay:
    return BoundDelay("EXPONENTIAL", (mean,))


def uniform(low: float, high: float) -> BoundDelay:
    return BoundDelay("UNIFORM", (low, high))


def gamma(shape: float, scale: float) -> BoundDelay:
    return BoundDelay("GAMMA", (shape, scale))


def lognormal(mu: float, sigma: float) -> BoundDelay:
    return BoundDelay("LOGNORMAL", (mu, sigma))


def normal(mean: float, sd: float) -> BoundDelay:
    return BoundDelay("NORMAL", (mean, sd))


def empirical(*atoms: float) -> BoundDelay:
    return BoundDelay("EMPIRICAL", path="delays.csv", atoms=atoms)


def lost(delay: BoundDelay, miss: float = 0.1) -> Part:
    return Part(False, miss, delay)


def never(delay: BoundDelay, miss: float = 0.1) -> Part:
    return Part(True, miss, delay)


def tabulated(*between: Part, horizon: float | None = None, posterior: bool = False) -> Table:
    return gap_table(between, horizon, posterior)


def at(table: Table, gap: float) -> float:
    return float(table.at(np.array([gap]))[0])


def scipy_distribution(delay: BoundDelay) -> stats.rv_continuous:
    """The distribution in SciPy."""
    match delay.law, delay.parameters:
        case "EXPONENTIAL", (mean,):
            return stats.expon(scale=mean)
        case "UNIFORM", (low, high):
            return stats.uniform(low, high - low)
        case "GAMMA", (shape, scale):
            return stats.gamma(shape, scale=scale)
        case "LOGNORMAL", (mu, sigma):
            return stats.lognorm(sigma, scale=math.exp(mu))
        case "NORMAL", (mean, sd):
            return stats.truncnorm(-mean / sd, np.inf, mean, sd)
    raise ValueError(delay.law)


DELAYS = [
    exponential(3.0),
    uniform(0.0, 4.0),
    uniform(2.0, 5.0),
    gamma(0.3, 2.0),
    gamma(4.5, 0.5),
    lognormal(0.5, 0.8),
    lognormal(-1.0, 2.5),
    normal(4.0, 1.0),
    normal(-3.0, 2.0),
]
GAPS = np.concatenate([[0.0], np.geomspace(1e-12, 200.0, 300)])


# ------------------------------------------------------------------ distributions


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_a_distribution_equals_that_of_scipy_in_both_tails(delay: BoundDelay) -> None:
    distribution = distribution_of(delay)
    x = np.concatenate([[0.0], scipy_distribution(delay).isf([0.999, 0.9, 0.5, 0.1, 1e-3, 1e-9, 1e-15])])
    assert distribution.below(x) == pytest.approx(scipy_distribution(delay).cdf(x), abs=1e-14)
    assert distribution.above(x) == pytest.approx(scipy_distribution(delay).sf(x), rel=1e-9)
    assert distribution.below(x) + distribution.above(x) == pytest.approx(1.0)
    for q in (0.5, 1e-6, 1e-30):
        assert distribution.above(np.array([distribution.beyond(q)]))[0] <= q * (1 + 1e-9)


def test_a_normal_distribution_with_a_mean_far_below_0_is_exponential() -> None:
    distribution, x = distribution_of(normal(-1e6, 1.0)), np.array([0.0, 1e-7, 1e-6, 5e-6])
    assert distribution.below(x) == pytest.approx(-np.expm1(-x * 1e6), abs=1e-10)
    assert distribution.above(x) == pytest.approx(np.exp(-x * 1e6), rel=1e-10)


def test_an_empirical_distribution_includes_a_delay_that_ends_now() -> None:
    distribution = distribution_of(empirical(3.0, 1.0, 1.0, 2.0))
    x = np.array([0.0, 0.999, 1.0, 2.5, 3.0])
    assert distribution.below(x).tolist() == [0.0, 0.0, 0.5, 0.75, 1.0]
    assert distribution.above(x).tolist() == [1.0, 1.0, 0.5, 0.25, 0.0]


# ------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_one_missing_positive_has_its_distribution(delay: BoundDelay) -> None:
    below, above = scipy_distribution(delay).cdf(GAPS), scipy_distribution(delay).sf(GAPS)
    assert tabulated(lost(delay, 0.3)).at(GAPS) == pytest.approx(0.3 * below, abs=1e-10)
    ratio = 0.01 * below / (0.01 * below + above)
    assert tabulated(lost(delay, 0.01), posterior=True).at(GAPS) == pytest.approx(ratio, abs=1e-10)


@pytest.mark.parametrize("delay", DELAYS, ids=str)
@pytest.mark.parametrize("posterior", [False, True])
def test_negatives_alone_multiply(delay: BoundDelay, posterior: bool) -> None:
    above = scipy_distribution(delay).sf(GAPS)
    other = scipy_distribution(DELAYS[0]).sf(GAPS)
    expected = above / (1e-6 * (1 - above) + above) * other / (0.5 * (1 - other) + other)
    table = tabulated(never(delay, 1e-6), never(DELAYS[0], 0.5), posterior=posterior)
    assert table.at(GAPS) == pytest.approx(expected, abs=1e-10)


SUMS: list[tuple[list[BoundDelay], Callable[[np.ndarray], np.ndarray]]] = [
    ([exponential(1.0), exponential(2.0)], lambda x: 1 - 2 * np.exp(-x / 2) + np.exp(-x)),
    ([exponential(2.0)] * 3, stats.gamma(3, scale=2.0).cdf),
    ([gamma(0.3, 2.0), gamma(0.25, 2.0)], stats.gamma(0.55, scale=2.0).cdf),
    ([gamma(0.5, 1.0), exponential(1.0), gamma(0.1, 1.0)], stats.gamma(1.6).cdf),
    ([normal(40.0, 3.0), normal(30.0, 4.0)], stats.norm(70.0, 5.0).cdf),
    ([uniform(0.0, 1.0)] * 2, lambda x: np.where(x < 1, x**2 / 2, 1 - np.clip(2 - x, 0, None) ** 2 / 2)),
    ([uniform(1.0, 2.0)] * 4, lambda x: irwin_hall(4, x - 4.0)),
]


def irwin_hall(n: int, x: np.ndarray) -> np.ndarray:
    """The distribution of the sum of `n` numbers uniform between 0 and 1."""
    x = np.clip(x, 0.0, n)
    terms = [(-1) ** k * math.comb(n, k) * np.clip(x - k, 0.0, None) ** n for k in range(n + 1)]
    return np.sum(terms, axis=0) / math.factorial(n)


@pytest.mark.parametrize(("delays", "expected"), SUMS, ids=[str(delays) for delays, _ in SUMS])
def test_several_missing_positives_have_the_distribution_of_the_sum(
    delays: list[BoundDelay], expected: Callable[[np.ndarray], np.ndarray]
) -> None:
    miss = 0.9 ** len(delays)
    table = tabulated(*(lost(delay, 0.9) for delay in delays))
    assert table.at(GAPS) == pytest.approx(miss * expected(GAPS), abs=1e-10)


@pytest.mark.parametrize("reach", [1e-3, 1.0, 1e3])
def test_a_missing_positive_and_a_negative_after_it(reach: float) -> None:
    """With exponential delays of different means a and b, the integrand is exp(-s/a) exp(-(T-s)/b) / a."""
    a, b, miss = 2.0 * reach, 3.0 * reach, 0.2
    gaps = GAPS * reach
    not_happened = b / (b - a) * (np.exp(-gaps / b) - np.exp(-gaps / a))
    happened = 1 - np.exp(-gaps / a) - not_happened
    # The factor of a negative that is always missed is 1 - F.
    joint = tabulated(lost(exponential(a), miss), never(exponential(b), 1.0))
    assert joint.at(gaps) == pytest.approx(miss * not_happened, abs=1e-10)
    unseen = np.exp(-gaps / a) + miss * (not_happened + 0.1 * happened)
    table = tabulated(lost(exponential(a), miss), never(exponential(b), 0.1), posterior=True)
    assert table.at(gaps) == pytest.approx(miss * not_happened / unseen, abs=1e-10)


# ------------------------------------------------------------------ integrals


Factor = Callable[[float, float], float]


def integral(between: Sequence[Part], gap: float, factor: Factor) -> float:
    """The nested integral, with s = F^-1(v) for each missing positive."""
    before = list(itertools.takewhile(lambda part: part.negative, between))
    if len(before) == len(between):
        return product(before, gap, factor)
    missing, rest = between[len(before)], between[len(before) + 1 :]
    inverse, above = quantile(missing.delay), tail(missing.delay)
    total = 1 - above(gap)
    kinks = [k for part in between for k in kinks_of(part.delay)]
    points = sorted({1 - above(s) for k in kinks for s in (k, gap - k)})
    edges = [0.0, *(point for point in points if 0 < point < total), total]

    def inside(v: float) -> float:
        s = inverse(v)
        return product(before, s, factor) * integral(rest, max(gap - s, 0.0), factor)

    parts = (
        integrate.quad(inside, *pair, epsabs=1e-11, epsrel=1e-9, limit=200)[0] for pair in itertools.pairwise(edges)
    )
    return missing.miss * sum(parts)


def product(negatives: Sequence[Part], span: float, factor: Factor) -> float:
    return math.prod(factor(tail(part.delay)(span), part.miss) for part in negatives)


def kinks_of(delay: BoundDelay) -> tuple[float, ...]:
    return delay.parameters if delay.law == "UNIFORM" else ()


@cache
def quantile(delay: BoundDelay) -> Callable[[float], float]:
    match delay.law, delay.parameters:
        case "EXPONENTIAL", (mean,):
            return lambda v: -mean * math.log1p(-v)
        case "UNIFORM", (low, high):
            return lambda v: low + v * (high - low)
        case "LOGNORMAL", (mu, sigma):
            return lambda v: math.exp(mu + sigma * special.ndtri(v))
        case "NORMAL", (mean, sd):
            return lambda v: mean - sd * special.ndtri((1 - v) * special.ndtr(mean / sd))
    raise ValueError(delay.law)


@cache
def tail(delay: BoundDelay) -> Callable[[float], float]:
    match delay.law, delay.parameters:
        case "EXPONENTIAL", (mean,):
            return lambda x: math.exp(-x / mean)
        case "UNIFORM", (low, high):
            return lambda x: min(1.0, max(0.0, (high - x) / (high - low)))
        case "LOGNORMAL", (mu, sigma):
            return lambda x: special.ndtr((mu - math.log(x)) / sigma) if x > 0 else 1.0
        case "NORMAL", (mean, sd):
            return lambda x: special.ndtr((mean - x) / sd) / special.ndtr(mean / sd)
    raise ValueError(delay.law)


MIXED = [
    [lost(exponential(3.0)), never(uniform(1.0, 4.0)), lost(uniform(0.5, 2.0))],
    [never(lognormal(1.0, 0.7), 0.3), lost(normal(3.0, 1.0)), never(exponential(2.0))],
    [lost(uniform(0.0, 2.0)), lost(uniform(1.0, 2.0)), never(uniform(0.5, 3.0), 0.01)],
    [never(exponential(4.0)), lost(exponential(1.0)), lost(lognormal(0.0, 1.0)), never(normal(2.0, 0.5), 0.5)],
]


@pytest.mark.parametrize("between", MIXED, ids=str)
def test_a_table_is_the_nested_integral(between: list[Part]) -> None:
    table = tabulated(*between, horizon=20.0)
    for gap in (0.3, 1.7, 2.9, 6.1):
        expected = integral(between, gap, lambda above, miss: above / (miss * (1 - above) + above))
        assert at(table, gap) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("between", MIXED, ids=str)
def test_a_posterior_table_is_the_ratio_of_nested_integrals(between: list[Part]) -> None:
    table = tabulated(*between, horizon=20.0, posterior=True)
    for gap in (0.3, 2.9, 6.1):
        happened = integral(between, gap, lambda above, miss: above)
        unseen = 0.0
        missing = [index for index, part in enumerate(between) if not part.negative]
        for index in [*missing, len(between)]:
            # The positive that is still to come acts as a negative that cannot have been missed.
            coming = [Part(True, 0.0, part.delay) for part in between[index : index + 1]]
            unseen += integral([*between[:index], *coming], gap, lambda above, miss: miss * (1 - above) + above)
        assert at(table, gap) == pytest.approx(happened / unseen, abs=CLOSE)


# ------------------------------------------------------------------ sums


grid = st.integers(0, 24).map(lambda quarters: quarters / 4)
empirical_delays = st.lists(grid, min_size=1, max_size=4).map(lambda atoms: empirical(*atoms))


def explicit_sum(between: Sequence[Part], gap: float) -> float:
    """The score by a sum over all choices of delays."""
    delays = [part.delay.atoms for part in between if not part.negative]
    total = 0.0
    for choice in itertools.product(*delays):
        rest = gap - sum(choice)
        if rest >= 0:
            total += choice_score(between, [*choice, rest])
    return total / math.prod(map(len, delays))


def choice_score(between: Sequence[Part], spans: list[float]) -> float:
    total, k = 1.0, 0
    for part in between:
        if part.negative:
            below = sum(atom <= spans[k] for atom in part.delay.atoms) / len(part.delay.atoms)
            total *= (1 - below) / (part.miss * below + 1 - below)
        else:
            total, k = total * part.miss, k + 1
    return total


@given(st.lists(st.builds(Part, st.booleans(), st.sampled_from([0.1, 0.5]), empirical_delays), max_size=4), grid)
def test_empirical_delays_equal_the_explicit_sum(between: list[Part], gap: float) -> None:
    for horizon in (None, 24.0):
        table = tabulated(*between, horizon=horizon)
        assert table.pieces.are_steps
        for near in (gap, gap - 1e-9, gap + 1e-9, 3 * gap):
            assert at(table, max(near, 0.0)) == pytest.approx(explicit_sum(between, max(near, 0.0)), abs=1e-14)


def test_an_empirical_delay_and_another_are_a_mixture() -> None:
    other = scipy_distribution(gamma(0.5, 1.0))
    expected = 0.01 * np.mean([other.cdf(GAPS - atom) for atom in (0.5, 2.0, 2.0)], axis=0)
    for between in itertools.permutations([lost(empirical(0.5, 2.0, 2.0)), lost(gamma(0.5, 1.0))]):
        assert tabulated(*between).at(GAPS) == pytest.approx(expected, abs=1e-10)


def test_a_delay_that_ends_with_the_gap_has_happened_despite_rounding() -> None:
    table = tabulated(lost(empirical(0.1)), lost(empirical(0.2)))
    assert at(table, 0.1 + 0.2) == 0.1 * 0.1
    assert at(table, 0.3 - 1e-9) == 0.0
    # 0.5 - 0.4 is a little less than 0.1: the second delay has not ended.
    table = tabulated(lost(empirical(0.4)), lost(empirical(0.1)))
    assert at(table, 0.5) == 0.0
    assert at(table, np.nextafter(0.5, 1.0)) == 0.1 * 0.1


# ------------------------------------------------------------------ any gap


positive = st.floats(0.05, 20.0)
delays = st.one_of(
    st.builds(exponential, positive),
    st.builds(lambda low, width: uniform(low, low + width), st.one_of(st.just(0.0), positive), positive),
    st.builds(gamma, st.floats(1.0, 6.0), positive),
    st.builds(lognormal, st.floats(-2.0, 3.0), st.floats(0.2, 2.0)),
    st.builds(normal, st.floats(-3.0, 10.0), st.floats(0.2, 4.0)),
    empirical_delays,
)
parts = st.builds(Part, st.booleans(), st.sampled_from([0.01, 0.1, 0.5]), delays)
betweens = st.lists(parts, max_size=4).filter(lambda between: sum(not part.negative for part in between) <= 2)


@given(betweens, st.floats(0.0, 1.0), st.sampled_from([None, 2.0, 50.0]), st.booleans())
@examples(50)
def test_a_table_agrees_with_the_oracle(
    between: list[Part], fraction: float, horizon: float | None, posterior: bool
) -> None:
    table = tabulated(*between, horizon=horizon, posterior=posterior)
    gap = fraction * (horizon or 100.0)
    expected = gap_score(tuple(between), gap, POSTERIOR if posterior else JOINT)
    assert at(table, gap) == pytest.approx(expected, abs=CLOSE)


@given(betweens, st.booleans(), st.sampled_from([None, 3.0, 100.0]))
def test_the_declared_properties_of_a_table_hold(between: list[Part], posterior: bool, horizon: float | None) -> None:
    table = tabulated(*between, horizon=horizon, posterior=posterior)
    end = horizon or 300.0
    scores = table.at(np.sort(np.concatenate([np.linspace(0.0, end, 2000), np.geomspace(1e-6, end, 2000)])))
    assert 0.0 <= scores.min()
    assert scores.max() <= table.highest <= 1.0
    assert not table.rising or np.diff(scores).min() >= -1e-10
    assert not table.falling or np.diff(scores).max() <= 1e-10
    assert table.rising == all(not part.negative for part in between)
    assert table.falling == all(part.negative for part in between)


@given(betweens)
def test_joined_tables_give_the_same_scores(between: list[Part]) -> None:
    tables = [tabulated(*between[k:], horizon=60.0) for k in range(len(between) + 1)]
    gaps = np.concatenate([GAPS, *(table.pieces.breaks for table in tables), [1e-300, 1e6, 1e300]])
    gaps = np.concatenate([gaps, np.nextafter(gaps, np.inf)])
    flat = joined(tables)
    for number, table in enumerate(tables):
        scores = scores_of(flat, number, gaps)
        assert scores == pytest.approx(table.at(gaps), abs=1e-15)
        assert (scores == table.at(gaps))[np.isin(gaps, table.pieces.breaks)].all()


@njit
def scores_of(tables, number, gaps):
    scores = np.empty(len(gaps))
    for k in range(len(gaps)):
        scores[k] = score(tables, number, gaps[k])
    return scores


# ------------------------------------------------------------------ properties


def test_an_empty_gap_scores_1() -> None:
    for posterior in (False, True):
        table = tabulated(posterior=posterior)
        assert table.at(GAPS).tolist() == [1.0] * len(GAPS)
        assert table.rising
        assert table.falling


def test_a_negative_that_is_never_missed_has_no_effect() -> None:
    for posterior in (False, True):
        alone = tabulated(lost(exponential(2.0)), posterior=posterior)
        for negative in (Part(True, 0.0, None), never(exponential(1.0), 0.0)):
            table = tabulated(negative, lost(exponential(2.0)), negative, posterior=posterior)
            assert table.at(GAPS).tolist() == alone.at(GAPS).tolist()
            assert table.rising


def test_a_component_that_is_never_missed_cannot_be_missing() -> None:
    for posterior in (False, True):
        table = tabulated(lost(exponential(2.0), 0.0), posterior=posterior)
        assert table.at(GAPS).tolist() == [0.0] * len(GAPS)


@pytest.mark.parametrize("posterior", [False, True])
def test_plateaus_are_exact(posterior: bool) -> None:
    misses = [0.1, 0.3, 0.7]
    between = [lost(uniform(1.1, 2.3), 0.1), lost(uniform(0.7, 3.1), 0.3), lost(uniform(2.9, 4.7), 0.7)]
    for count in (1, 2, 3):
        table = tabulated(*between[:count], horizon=1000.0, posterior=posterior)
        start = sum(part.delay.parameters[0] for part in between[:count])
        end = sum(part.delay.parameters[1] for part in between[:count])
        below = np.array([0.0, 0.5 * start, start - 1e-9])
        assert table.at(below).tolist() == [0.0] * 3
        plateau = 1.0 if posterior else math.prod(misses[:count]) * 1.0
        assert table.at(np.array([end + 1e-9, end + 1.0, 1000.0])).tolist() == [plateau] * 3


def test_steps_between_atoms_are_exact() -> None:
    table = tabulated(lost(empirical(1.0, 2.0, 4.0), 0.3))
    assert [at(table, gap) for gap in (0.0, 1.0, 2.0, 3.9, 4.0, 1e9)] == [
        0.3 * f for f in (0.0, 1 / 3, 2 / 3, 2 / 3, 1.0, 1.0)
    ]
    wide = tabulated(lost(empirical(10.0, 20.0, 40.0), 0.3), lost(uniform(0.0, 1.0), 0.5))
    assert [at(wide, gap) for gap in (10.0, 11.5, 30.0, 50.0)] == [0.15 * f for f in (0.0, 1 / 3, 2 / 3, 1.0)]


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_a_gap_of_length_0_has_no_missing_events(delay: BoundDelay) -> None:
    for posterior in (False, True):
        assert at(tabulated(lost(delay), posterior=posterior), 0.0) == 0.0
        assert at(tabulated(lost(delay), never(delay), lost(delay), posterior=posterior), 0.0) == 0.0


@pytest.mark.parametrize("posterior", [False, True])
def test_a_negative_at_the_end_rules_long_gaps_out(posterior: bool) -> None:
    table = tabulated(lost(exponential(1.0)), never(uniform(1.0, 2.0)), posterior=posterior)
    assert at(table, 1e6) == 0.0


@pytest.mark.parametrize("posterior", [False, True])
def test_without_a_horizon_a_table_ends_where_the_score_is_constant(posterior: bool) -> None:
    between = [lost(lognormal(1.0, 2.0), 0.01), never(exponential(2.0), 0.01), lost(gamma(0.5, 3.0), 0.01)]
    table = tabulated(*between, posterior=posterior)
    end = float(table.pieces.breaks[-1])
    longer = tabulated(*between, posterior=posterior, horizon=100 * end)
    assert at(table, end * 10) == at(table, end)
    assert at(longer, end * 50) == pytest.approx(at(table, end), abs=1e-12)
    assert at(table, end * 0.9) == pytest.approx(at(table, end), abs=1e-11)


# ------------------------------------------------------------------ scales


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("posterior", [False, True])
def test_the_unit_of_time_does_not_matter(unit: float, posterior: bool) -> None:
    def between(unit: float) -> list[Part]:
        return [
            lost(exponential(3 * unit)), never(lognormal(math.log(2 * unit), 1.0)), lost(normal(5 * unit, unit)),
        ]  # fmt: skip

    one = tabulated(*between(1.0), horizon=1e4, posterior=posterior)
    other = tabulated(*between(unit), horizon=1e4 * unit, posterior=posterior)
    assert other.at(GAPS * unit) == pytest.approx(one.at(GAPS), abs=CLOSE)


def test_seconds_in_a_window_of_hours() -> None:
    table = tabulated(lost(exponential(2.0)), lost(exponential(2.0)), horizon=43_200.0)
    gaps = np.geomspace(1e-3, 43_200.0, 500)
    assert table.at(gaps) == pytest.approx(0.01 * stats.gamma(2, scale=2.0).cdf(gaps), abs=1e-10)


def test_distributions_as_narrow_as_a_microsecond() -> None:
    """At 3600 seconds, a double is rounded to half of a millionth of a microsecond."""
    table = tabulated(lost(normal(3600.0, 1e-6), 0.9), lost(normal(3600.0, 1e-6), 0.9), horizon=43_200.0)
    away = np.linspace(-5e-6, 5e-6, 101)
    gaps = 7200.0 + away
    expected = 0.81 * stats.norm(7200.0, math.sqrt(2) * 1e-6).cdf(gaps)
    assert table.at(gaps) == pytest.approx(expected, abs=1e-6)
    assert at(table, 7199.0) == 0.0
    assert at(table, 7201.0) == 0.9 * 0.9


def test_a_narrow_peak_is_not_overlooked() -> None:
    """The missing event came after exactly an hour, and its negative did not happen within microseconds."""
    table = tabulated(lost(normal(3600.0, 1e-3), 0.9), never(exponential(1e-2), 1.0), horizon=43_200.0)
    for away in (-1e-3, 0.0, 1e-3, 1e-2, 5e-2):
        expected = 0.9 * stats.exponnorm(10.0, 3600.0, 1e-3).pdf(3600.0 + away) * 1e-2
        assert at(table, 3600.0 + away) == pytest.approx(expected, abs=1e-8)
    assert at(table, 3500.0) == 0.0


@pytest.mark.parametrize("middle", [1e-3, 1.0, 3600.0])
def test_a_distribution_with_rounding_noise(middle: float) -> None:
    """Its tables are as accurate as the rounded values, and the noise does not cause further bisection."""
    narrow = lognormal(math.log(middle), 1e-6)
    gaps = middle * (1 + np.linspace(-5e-6, 5e-6, 101))
    expected = special.ndtr(np.log1p((gaps - middle) / middle) * 1e6)
    assert tabulated(lost(narrow, 0.9)).at(gaps) == pytest.approx(0.9 * expected, abs=1e-8)
    table = tabulated(lost(narrow, 0.9), never(exponential(1e3 * middle), 1.0), lost(narrow, 0.9))
    assert len(table.pieces.breaks) < 500
    both = math.exp(-1e-3) * special.ndtr(np.log1p((gaps - middle) / middle) * 1e6 * math.sqrt(2))
    assert table.at(2 * gaps) == pytest.approx(0.81 * both, abs=1e-6)


@pytest.mark.parametrize("sigma", [5.0, 12.0])
def test_tails_over_many_orders_of_magnitude(sigma: float) -> None:
    table = tabulated(lost(lognormal(0.0, sigma), 0.9), lost(exponential(1e-6), 0.9))
    gaps = np.geomspace(1e-2, 1e20, 300)
    assert table.at(gaps) == pytest.approx(0.81 * stats.lognorm(sigma).cdf(gaps), abs=2e-5)
    assert table.at(gaps[30:]) == pytest.approx(0.81 * stats.lognorm(sigma).cdf(gaps[30:]), abs=1e-6)


def test_losses_of_one_in_a_million_keep_their_posterior() -> None:
    """With three losses, the compared probabilities are of the order of 1e-18."""
    table = tabulated(*[lost(exponential(1.0), 1e-6)] * 3, posterior=True)
    for gap in (1.0, 15.0, 30.0, 45.0, 60.0):
        terms = [1e-6**k * gap**k * math.exp(-gap) / math.factorial(k) for k in range(3)]
        happened = 1e-18 * stats.gamma(3).cdf(gap)
        assert at(table, gap) == pytest.approx(happened / (sum(terms) + happened), abs=CLOSE)


# ------------------------------------------------------------------ refusals


def test_too_many_sums_are_refused_in_one_line() -> None:
    rng = np.random.default_rng(7)
    many = [BoundDelay("EMPIRICAL", path=f"{k}.csv", atoms=tuple(rng.random(1100))) for k in range(2)]
    with pytest.raises(
        DataError, match=r"EMPIRICAL .* gap, y \(1,100 delays\), z \(1,100 delays\), make 1,210,00"
    ) as refused:
        gap_table([lost(many[0]), lost(many[1])], None, False, names=("y", "z"))
    assert "fit a named law" in str(refused.value)
    with pytest.raises(DataError, match=r"0\.csv \(1,100 delays\), 1\.csv \(1,100 delays\)"):
        gap_table([lost(many[0]), lost(exponential(1.0)), lost(many[1])], None, True)


def test_equal_sums_are_merged() -> None:
    whole = empirical(*map(float, range(1, 2001)))
    table = tabulated(lost(whole), lost(whole))
    assert len(table.pieces.breaks) == 4000
    assert at(table, 2001.0) == pytest.approx(0.01 * 2000 * 2001 / 2 / 2000**2, abs=1e-13)


def test_a_function_that_needs_too_many_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.sequence.pieces.MOST_PIECES", 64)
    with pytest.raises(TooManyPieces):
        fitted(lambda x: np.sin(1e6 * x), np.array([0.0, 1.0]), 0.0, 1.0)
    with pytest.raises(DataError, match="a gap with EXPONENTIAL, GAMMA needs .* pieces"):
        tabulated(lost(exponential(1.0)), lost(gamma(0.05, 1.0)))


@pytest.mark.parametrize("last", ["EMPIRICAL", "EXPONENTIAL"])
def test_too_many_sums_of_delays_are_refused(last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("gaps", "pieces"):
        monkeypatch.setattr(f"anabranch.sequence.{module}.MOST_SUMS", 50)
    ten = empirical(*np.linspace(1, 2, 10))
    with pytest.raises(DataError, match=r"EMPIRICAL delays in one gap, .* make [13]00 sums"):
        tabulated(lost(ten), lost(ten if last == "EMPIRICAL" else exponential(1.0)))


def test_a_component_that_can_be_missed_needs_a_delay() -> None:
    with pytest.raises(ValueError, match="needs a delay"):
        gap_table([(True, 0.1, None)], None, False)
