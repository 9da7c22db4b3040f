"""The scores of gaps compared with closed forms, nested quadrature and simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from anabranch.sequence.query import BoundDelay
from tests.oracles.gaps import JOINT, POSTERIOR, Part, gap_score


def part(law: str, *parameters: float, miss: float = 1.0, negative: bool = False, atoms: Any = ()) -> Part:
    return Part(negative, miss, BoundDelay(law, tuple(map(float, parameters)), atoms=tuple(atoms)))


def never(law: str, *parameters: float, miss: float = 0.5, atoms: Any = ()) -> Part:
    return part(law, *parameters, miss=miss, negative=True, atoms=atoms)


def test_an_empty_gap_is_certain() -> None:
    assert gap_score((), 3.0) == gap_score((), 0.0, POSTERIOR) == 1.0


#: The distributions of SciPy.
DISTRIBUTIONS = {
    ("EXPONENTIAL", 2): stats.expon(scale=2),
    ("UNIFORM", 1, 3): stats.uniform(1, 2),
    ("GAMMA", 2, 3): stats.gamma(2, scale=3),
    ("GAMMA", 0.5, 1): stats.gamma(0.5, scale=1),
    ("GAMMA", 1.5, 1): stats.gamma(1.5, scale=1),
    ("LOGNORMAL", 0.5, 0.75): stats.lognorm(0.75, scale=math.exp(0.5)),
    ("NORMAL", 2, 1): stats.truncnorm(-2, np.inf, loc=2, scale=1),
    ("NORMAL", -1, 2): stats.truncnorm(0.5, np.inf, loc=-1, scale=2),
    ("NORMAL", 3, 0.125): stats.truncnorm(-24, np.inf, loc=3, scale=0.125),
}


@pytest.mark.parametrize("law", DISTRIBUTIONS)
@pytest.mark.parametrize("length", [0.0, 0.25, 1.0, 2.0, 3.0, 3.25, 9.0, 40.0])
def test_one_missing_positive_and_one_negative(law: tuple[Any, ...], length: float) -> None:
    below = DISTRIBUTIONS[law].cdf(length)
    assert gap_score((part(*law, miss=0.25),), length) == pytest.approx(0.25 * below, abs=1e-14)
    not_happened = (1 - below) / (0.25 * below + 1 - below)
    assert gap_score((never(*law, miss=0.25),), length) == pytest.approx(not_happened, abs=1e-13)
    assert gap_score((never(*law, miss=0.0),), length) == 1.0
    posterior = gap_score((part(*law, miss=0.25),), length, POSTERIOR)
    assert posterior == pytest.approx(0.25 * below / (0.25 * below + 1 - below), abs=1e-13)


@pytest.mark.parametrize("length", [0.5, 3.0, 25.0])
def test_sums_of_delays_in_closed_form(length: float) -> None:
    def scored(*gap: Part) -> float:
        return gap_score(gap, length)

    exponential, gamma = part("EXPONENTIAL", 2), part("GAMMA", 1.5, 2)
    assert scored(exponential, exponential) == pytest.approx(stats.gamma.cdf(length, 2, scale=2), abs=1e-12)
    assert scored(exponential, gamma, exponential) == pytest.approx(stats.gamma.cdf(length, 3.5, scale=2), abs=1e-11)
    root = part("GAMMA", 0.5, 2)
    assert scored(root, root, gamma) == pytest.approx(stats.gamma.cdf(length, 2.5, scale=2), abs=1e-11)
    uniform = part("UNIFORM", 0, 4)
    irwin_hall = sum((-1) ** k * math.comb(3, k) * max(length / 4 - k, 0) ** 3 for k in range(4)) / 6
    assert scored(uniform, uniform, uniform) == pytest.approx(irwin_hall, abs=1e-12)
    # A negative that is almost never read, after the last positive: the integral of an exponential tail.
    two = scored(exponential, never("EXPONENTIAL", 2, miss=0.999999999999))
    assert two == pytest.approx(length / 2 * math.exp(-length / 2), abs=1e-10)
    # Two exponential delays of different means.
    other = part("EXPONENTIAL", 0.5)
    expected = 1 - (2 * math.exp(-length / 2) - 0.5 * math.exp(-length / 0.5)) / 1.5
    assert scored(exponential, other) == pytest.approx(expected, abs=1e-12)
    assert scored(other, exponential) == pytest.approx(expected, abs=1e-12)


def test_narrow_delays_are_not_overlooked() -> None:
    narrow = part("NORMAL", 30, 0.01)
    assert gap_score((narrow,) * 3, 90.0) == pytest.approx(0.5, abs=1e-11)
    assert gap_score((narrow, part("EXPONENTIAL", 0.01), narrow), 100.0) == pytest.approx(1.0, abs=1e-11)
    assert gap_score((part("LOGNORMAL", 3, 0.001), part("GAMMA", 400, 0.05)), 1000.0) == pytest.approx(1.0, abs=1e-11)


def test_delays_that_end_with_the_gap() -> None:
    assert gap_score((part("UNIFORM", 1, 3), part("UNIFORM", 2, 3)), 3.0) == 0.0
    # A negative with a delay of at most 1 would have happened before a positive with a delay of at least 1.
    soon, late = never("UNIFORM", 0, 1), part("UNIFORM", 1, 3)
    assert gap_score((soon, late), 2.0) == gap_score((soon, late, part("EXPONENTIAL", 1)), 9.0) == 0.0
    assert gap_score((late, soon), 1.0) == gap_score((late, soon), 4.0) == 0.0
    assert gap_score((late, soon), 3.875) > 0
    # A tiny probability is above 0.
    assert 0 < gap_score((part("NORMAL", 3, 0.25), part("NORMAL", 3, 0.25)), 1.0) < 1e-30
    assert gap_score((part("UNIFORM", 1, 3), part("UNIFORM", 2, 3)), 6.0) == pytest.approx(1.0, abs=1e-13)


def test_atoms_are_summed() -> None:
    empirical = part("EMPIRICAL", atoms=(1.0, 1.0, 2.0, 5.0))
    for length, below in ((0.75, 0.0), (1.0, 0.5), (1.75, 0.5), (2.0, 0.75), (5.0, 1.0), (9.0, 1.0)):
        assert gap_score((empirical,), length) == below
        assert gap_score((empirical._replace(negative=True, miss=0.5),), length) == (1 - below) / (1 - below / 2)
    # Of 16 sums, 1 + 1 occurs four times, 1 + 2 four times, 2 + 2 once, and so on.
    for length, count in ((1.0, 0), (2.0, 4), (3.0, 8), (4.0, 9), (6.0, 13), (7.0, 15), (10.0, 16)):
        assert gap_score((empirical, empirical), length) == count / 16
    # With a uniform delay, in both orders.
    assert gap_score((empirical, part("UNIFORM", 0, 4)), 4.0) == pytest.approx((2 * 0.75 + 0.5) / 4, abs=1e-12)
    assert gap_score((part("UNIFORM", 0, 4), empirical), 4.0) == pytest.approx((2 * 0.75 + 0.5) / 4, abs=1e-12)
    # The factor of a negative is a step function.
    step = never("EMPIRICAL", miss=0.5, atoms=(1.0,))
    assert gap_score((part("UNIFORM", 0, 4), step), 4.0) == pytest.approx(1 / 4, abs=1e-12)
    assert gap_score((step, part("UNIFORM", 0, 4)), 4.0) == pytest.approx(1 / 4, abs=1e-12)
    assert gap_score((part("EMPIRICAL", atoms=(0.0, 1.0)),), 0.0) == 0.5


def test_integrals_with_negatives_equal_nested_quadrature() -> None:
    x, y = DISTRIBUTIONS["GAMMA", 2, 3], DISTRIBUTIONS["UNIFORM", 1, 3]
    below = stats.expon(scale=2).cdf

    def not_happened(d: float) -> float:
        return (1 - below(d)) / (0.5 * below(d) + 1 - below(d))

    parts = [part("GAMMA", 2, 3), part("UNIFORM", 1, 3), never("EXPONENTIAL", 2)]
    length = 7.0
    for index in range(3):
        gap = [*parts[:2]]
        gap.insert(index, parts[2])

        def integrand(b: float, a: float, index: int = index) -> float:
            return x.pdf(a) * y.pdf(b) * not_happened((a, b, length - a - b)[index])

        bounds = [lambda a: (min(1, length - a), min(3, length - a)), (0, length)]
        expected, _ = integrate.nquad(
            integrand, bounds, opts=[{"epsabs": 1e-11}, {"points": [4, 6], "epsabs": 1e-11, "limit": 200}]
        )
        assert gap_score(tuple(gap), length) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("scoring", [JOINT, POSTERIOR])
@pytest.mark.parametrize(
    "gap",
    [
        (part("GAMMA", 2, 1, miss=0.5), part("UNIFORM", 1, 3, miss=0.25)),
        (part("EXPONENTIAL", 1, miss=0.5), part("LOGNORMAL", 0, 1, miss=0.5), part("NORMAL", 1, 1, miss=0.5)),
        (part("UNIFORM", 0, 2, miss=0.5), never("EXPONENTIAL", 3, miss=0.25), part("GAMMA", 0.5, 2, miss=0.5)),
        (never("UNIFORM", 0, 9), part("EMPIRICAL", miss=0.5, atoms=(1.0, 2.0, 2.0)), never("GAMMA", 2, 2, miss=0.25)),
        (never("UNIFORM", 0, 9), never("EXPONENTIAL", 4, miss=0.25)),
        (part("EXPONENTIAL", 2, miss=0.5), never("EXPONENTIAL", 4, miss=0.01)),
    ],
)  # fmt: skip
def test_scores_equal_those_of_a_simulation(gap: tuple[Part, ...], scoring: str) -> None:
    length = 4.0
    rng = np.random.default_rng(7)
    lost = [part for part in gap if not part.negative]
    if scoring == JOINT:
        expected = simulated_joint(gap, length, rng)
    else:
        expected = simulated_posterior(gap, length, rng) if lost else simulated_joint(gap, length, rng)
    assert gap_score(gap, length, scoring) == pytest.approx(expected, abs=4e-3)


RUNS = 400_000


def drawn_delays(part: Part, rng: np.random.Generator) -> Any:
    """Random delays; negative ones of a normal distribution are rejected."""
    assert part.delay is not None
    draw = {
        "EXPONENTIAL": lambda mean: rng.exponential(mean, RUNS),
        "UNIFORM": lambda lo, hi: rng.uniform(lo, hi, RUNS),
        "GAMMA": lambda shape, scale: rng.gamma(shape, scale, RUNS),
        "LOGNORMAL": lambda mu, sigma: rng.lognormal(mu, sigma, RUNS),
        "NORMAL": lambda mean, sd: (many := rng.normal(mean, sd, 3 * RUNS))[many >= 0][:RUNS],
        "EMPIRICAL": lambda: rng.choice(part.delay.atoms, RUNS),
    }[part.delay.law]
    return draw(*part.delay.parameters)


def histories(gap: tuple[Part, ...], length: float, rng: np.random.Generator) -> tuple[Any, list[Any], Any]:
    """The times of the lost events, the spans between them, and the number of the span of each negative."""
    times = [np.zeros(RUNS)]
    owners = []
    for part in gap:
        if part.negative:
            owners.append(len(times) - 1)
        else:
            times.append(times[-1] + drawn_delays(part, rng))
    return times, [*itertools.pairwise(times), (times[-1], np.full(RUNS, length))], owners


def simulated_joint(gap: tuple[Part, ...], length: float, rng: np.random.Generator) -> float:
    """The share of runs in which all positives happened in time and no negative did, given that none was read."""
    times, spans, owners = histories(gap, length, rng)
    weight = math.prod(part.miss for part in gap if not part.negative) * (times[-1] <= length)
    for part, owner in zip([part for part in gap if part.negative], owners, strict=True):
        start, end = spans[owner]
        below = np.searchsorted(np.sort(drawn_delays(part, rng)), end - start, side="right") / RUNS
        if part.miss > 0:
            weight = weight * (1 - below) / (part.miss * below + 1 - below)
    return float(weight.mean())


def simulated_posterior(gap: tuple[Part, ...], length: float, rng: np.random.Generator) -> float:
    """The share of runs in which all positives were lost and no negative happened, of those without any reading."""
    times, spans, owners = histories(gap, length, rng)
    unread = np.ones(RUNS, dtype=bool)
    for part, time in zip([part for part in gap if not part.negative], times[1:], strict=True):
        unread &= (time > length) | (rng.random(RUNS) < part.miss)
    none_happened = np.ones(RUNS, dtype=bool)
    for part, owner in zip([part for part in gap if part.negative], owners, strict=True):
        start, end = spans[owner]
        # A negative can happen only in its own span, if that has begun, and until the gap ends.
        happened = (start <= length) & (drawn_delays(part, rng) <= np.minimum(end, length) - start)
        unread &= ~happened | (rng.random(RUNS) < part.miss)
        none_happened &= ~happened
    return float((unread & none_happened & (times[-1] <= length)).sum() / unread.sum())
