"""Learning delays and losses: the parameters of simulated data are recovered, within sampling error."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.errors import DataError
from anabranch.language.parser import parse
from anabranch.sequence.analysis import analyse
from anabranch.sequence.densities import log_density
from anabranch.sequence.distributions import distribution_of
from anabranch.sequence.fit import ComponentFit, fit_delays, maximise, points_of
from anabranch.sequence.history import History, Watch, make_history, objection
from anabranch.sequence.likelihood import FittedDistribution, likeliest
from anabranch.sequence.occurrence_fit import Stated
from anabranch.sequence.query import BoundDelay, BoundSequence
from anabranch.simulate.shop import MINUTE, Options, simulate

#: Five seconds: not in `make quick`.
pytestmark = pytest.mark.slow

#: The largest error of an estimate, in standard deviations.
SIGMAS = 5

LAWS = {
    "EXPONENTIAL": lambda mean: stats.expon(scale=mean),
    "UNIFORM": lambda low, high: stats.uniform(low, high - low),
    "GAMMA": lambda shape, scale: stats.gamma(shape, scale=scale),
    "LOGNORMAL": lambda mu, sigma: stats.lognorm(sigma, scale=np.exp(mu)),
    "NORMAL": lambda mean, sd: stats.truncnorm(-mean / sd, np.inf, mean, sd),
}

Law = tuple[str, tuple[float, ...]]


def simulated(laws: list[Law], misses: list[float], n: int, seed: int) -> History:
    """Simulate passes; there is one component more than delays."""
    rng = np.random.default_rng(seed)
    delays = [LAWS[law](*parameters).rvs(n, random_state=rng) for law, parameters in laws]
    times = rng.uniform(0, 1000, n)[:, None] + np.cumsum(np.stack([np.zeros(n), *delays], axis=1), axis=1)
    times[rng.random(times.shape) < misses] = np.nan
    labels = tuple("abcdef"[: times.shape[1]])
    return History(labels, tuple(range(len(labels))), times[~np.isnan(times).all(axis=1)], {})


def assert_law(fit: ComponentFit, law: Law) -> None:
    """Assert that the best distribution has this law, and the right probabilities at its quantiles."""
    best = fit.distributions[0]
    assert best.law == law[0]
    quantiles = LAWS[law[0]](*law[1]).ppf([0.1, 0.3, 0.5, 0.7, 0.9])
    fitted = distribution_of(BoundDelay(best.law, best.parameters))
    assert_allclose(fitted.below(quantiles), [0.1, 0.3, 0.5, 0.7, 0.9], atol=SIGMAS * 0.5 / np.sqrt(len(fit.delays)))


def assert_miss(fit: ComponentFit, miss: float) -> None:
    assert fit.miss == pytest.approx(miss, abs=SIGMAS * np.sqrt(miss * (1 - miss) / fit.opportunities))


@pytest.mark.parametrize(
    ("laws", "misses"),
    [
        ([("GAMMA", (3.0, 2.0)), ("LOGNORMAL", (1.0, 0.5))], [0.1, 0.3, 0.2]),
        ([("UNIFORM", (2.0, 5.0)), ("EXPONENTIAL", (4.0,))], [0.2, 0.1, 0.2]),
        ([("NORMAL", (3.0, 2.0)), ("UNIFORM", (0.0, 4.0))], [0.1, 0.2, 0.3]),
        ([("LOGNORMAL", (6.0, 1.0)), ("GAMMA", (0.6, 100.0))], [0.3, 0.3, 0.3]),
        # The middle component is rarely read.
        ([("GAMMA", (3.0, 2.0)), ("UNIFORM", (1.0, 9.0))], [0.1, 0.9, 0.1]),
        # Several adjacent components may be missed.
        ([("EXPONENTIAL", (5.0,)), ("LOGNORMAL", (1.0, 1.0)), ("NORMAL", (4.0, 0.5))], [0.1, 0.4, 0.4, 0.1]),
    ],
)
def test_distributions_and_losses_are_recovered(laws: list[Law], misses: list[float]) -> None:
    history = simulated(laws, misses, 4000, seed=11)
    fits = fit_delays(history)
    for fit, law in zip(fits[1:], laws, strict=True):
        assert_law(fit, law)
    for fit, miss in zip(fits[:-1], misses, strict=False):
        # A component that is rarely read may not happen at all.
        if miss > 0.5:
            assert fit.miss is None
        else:
            assert_miss(fit, miss)
    assert fits[0].distributions == (), "without WITHIN, the delay of the first component has no start"
    assert fits[-1].miss is None, "if the last component was not read, it is unknown whether it happened"


def test_sums_of_delays_add_information_to_few_observed_delays() -> None:
    shape, scale, mean = 3.0, 2.0, 1.0
    fits = fit_delays(simulated([("GAMMA", (shape, scale)), ("EXPONENTIAL", (mean,))], [0.0, 0.98, 0.0], 5000, seed=3))
    best = fits[1].distributions[0]
    # With the sums, the mean is known about as well as if half of the delays had been observed.
    error = np.sqrt(shape) * scale / np.sqrt(2500)
    assert len(fits[1].delays) < 150
    assert best.law == "GAMMA"
    assert best.parameters[0] * best.parameters[1] == pytest.approx(shape * scale, abs=SIGMAS * error)


def test_a_mean_is_fitted_to_a_component_that_is_only_observed_in_sums() -> None:
    rng = np.random.default_rng(1)
    times = np.stack([np.zeros(500), np.full(500, np.nan), rng.exponential(2.0, 500) + rng.exponential(2.0, 500)], 1)
    fits = fit_delays(History(("a", "b", "c"), (0, 1, 2), times, {}))
    assert [fit.distributions[0].law for fit in fits[1:]] == ["EXPONENTIAL", "EXPONENTIAL"]
    assert sum(fit.distributions[0].parameters[0] for fit in fits[1:]) == pytest.approx(times[:, 2].mean(), rel=1e-3)


# ---------------------------------------------------------------- expectation-maximisation


def log_likelihood_of_gaps(kind: tuple[int, int], lengths: np.ndarray, laws: dict[int, Law]) -> float:
    """The log likelihood of gaps under given distributions."""
    rng = np.random.default_rng(2)
    observed = {index: LAWS[law](*parameters).rvs(400, random_state=rng) for index, (law, parameters) in laws.items()}
    gaps = points_of(kind, lengths, observed, {index: delays.mean() for index, delays in observed.items()})
    no_delays = {index: np.empty(0) for index in laws}
    return maximise(no_delays, [gaps], {index: FittedDistribution(*law) for index, law in laws.items()}).rounds[0]


def test_the_likelihood_of_gaps_equals_the_convolution() -> None:
    lengths = np.array([0.3, 1.0, 4.0, 9.0, 25.0, 60.0])
    for last, tolerance in ((2, 1e-3), (3, 2e-2), (4, 5e-2)):
        laws: dict[int, Law] = {index: ("GAMMA", (1.5 + index, 2.0)) for index in range(1, last + 1)}
        total = stats.gamma(sum(shape for _, (shape, _) in laws.values()), scale=2.0)
        for length in lengths:
            log_likelihood = log_likelihood_of_gaps((0, last), np.array([length]), laws)
            # One gap in a million is an outlier.
            expected = np.logaddexp(total.logpdf(length) + np.log1p(-1e-6), np.log(1e-6 / length))
            assert log_likelihood == pytest.approx(expected, abs=tolerance * max(1.0, abs(expected)))


@pytest.mark.parametrize("start", ["EXPONENTIAL", "GAMMA", "LOGNORMAL", "NORMAL", "UNIFORM"])
def test_no_round_makes_the_history_less_likely(start: str) -> None:
    rng = np.random.default_rng(7)
    delays = {1: rng.gamma(3.0, 2.0, 50), 2: rng.lognormal(1.0, 0.7, 50), 3: rng.uniform(1.0, 4.0, 50)}
    sums = {(0, 2): (1, 2), (1, 3): (2, 3), (0, 3): (1, 2, 3)}
    gaps = [
        points_of(
            kind,
            sum(rng.permutation(np.repeat(delays[index], 8)) for index in indices),
            delays,
            {index: observed.mean() for index, observed in delays.items()},
        )
        for kind, indices in sums.items()
    ]
    # The initial parameters are far from the true ones.
    initial = {
        index: FittedDistribution(start, likeliest(start, 3 * observed, np.ones(50)))
        for index, observed in delays.items()
    }
    if start == "UNIFORM":
        initial = {index: FittedDistribution(start, (0.0, 20.0)) for index in delays}
        initial |= {1: FittedDistribution("GAMMA", (1.0, 30.0))}
    rounds = np.array(maximise(delays, gaps, initial).rounds)
    assert len(rounds) > 2
    assert (np.diff(rounds) >= -1e-9 * abs(rounds[1:])).all()


@pytest.mark.parametrize("law", list(LAWS))
def test_densities_equal_those_of_scipy(law: str) -> None:
    parameters = {"EXPONENTIAL": (2.5,), "UNIFORM": (1.0, 3.0), "NORMAL": (-1.0, 2.0)}.get(law, (1.3, 0.8))
    x = np.array([0.01, 0.5, 1.5, 2.5, 7.0])
    assert_allclose(log_density(law, parameters, x), LAWS[law](*parameters).logpdf(x))


@pytest.mark.parametrize("law", ["EXPONENTIAL", "GAMMA", "LOGNORMAL", "NORMAL"])
@pytest.mark.parametrize("sample", [("GAMMA", (2.0, 3.0)), ("NORMAL", (2.0, 1.5)), ("NORMAL", (50.0, 1.0))])
def test_nearby_parameters_are_less_likely(law: str, sample: Law) -> None:
    rng = np.random.default_rng(4)
    x, weights = LAWS[sample[0]](*sample[1]).rvs(300, random_state=rng), rng.random(300)
    best = likeliest(law, x, weights)
    highest = np.dot(weights, log_density(law, best, x))
    for _ in range(50):
        other = tuple(value + 0.02 * abs(value) * rng.standard_normal() for value in best)
        assert np.dot(weights, log_density(law, other, x)) <= highest + 1e-6


# ---------------------------------------------------------------- negatives


@pytest.mark.parametrize(
    "law",
    [
        ("GAMMA", (4.0, 4.0)),
        ("EXPONENTIAL", (12.0,)),
        ("LOGNORMAL", (2.5, 0.6)),
        ("NORMAL", (20.0, 6.0)),
        ("UNIFORM", (5.0, 30.0)),
    ],
)
def test_a_negative_may_be_missed_or_still_to_come(law: Law) -> None:
    rng, n, miss = np.random.default_rng(9), 6000, 0.15
    delays, lengths = LAWS[law[0]](*law[1]).rvs(n, random_state=rng), rng.uniform(5.0, 60.0, n)
    seen = (delays < lengths) & (rng.random(n) >= miss)
    times = np.stack([np.zeros(n), lengths], axis=1)
    (_, fit, _) = fit_delays(
        History(("x", "y", "z"), (0, 2), times, {1: Watch(delays[seen], lengths[~seen])}, within=60.0)
    )
    assert_law(fit, law)
    # The error is twice as large as if misses could be distinguished from events that are still to come.
    assert fit.miss == pytest.approx(miss, abs=2 * SIGMAS * np.sqrt(miss * (1 - miss) / fit.opportunities))
    assert len(fit.delays) == seen.sum()


def test_nothing_is_fitted_to_a_negative_that_was_never_read() -> None:
    times = np.array([[0.0, 3.0], [1.0, 2.0]])
    fit = fit_delays(History(("x", "y", "z"), (0, 2), times, {1: Watch(np.empty(0), np.array([3.0, 1.0]))}))[1]
    assert (fit.miss, fit.distributions) == (None, ())


def test_only_a_mean_is_fitted_to_few_delays() -> None:
    fits = fit_delays(History(("a", "b"), (0, 1), np.array([[0.0, 2.0], [5.0, 9.0]]), {}))
    assert [(fitted.law, fitted.parameters) for fitted in fits[1].distributions] == [("EXPONENTIAL", (3.0,))]


# ---------------------------------------------------------------- occurrences


def optional_passes(n: int, occurs: float, miss: float, seed: int) -> History:
    """Passes x, y, z in which y happens in some. Its delay and that after it depend on each other."""
    rng = np.random.default_rng(seed)
    happened, read = rng.random((2, n)) < np.array([[occurs], [1 - miss]])
    whole = np.where(happened, rng.gamma(9.0, 3.0, n), rng.gamma(2.0, 3.0, n))
    y = np.where(happened & read, rng.random(n) * whole, np.nan)
    return History(("x", "y", "z"), (0, 1, 2), np.stack([np.zeros(n), y, whole], axis=1), {})


def test_a_stated_miss_gives_the_occurrence_and_both_laws_of_the_gap() -> None:
    fit = fit_delays(optional_passes(8000, 0.6, 0.2, seed=1), Stated(miss={"y": (0.2, 0.0)}))[1]
    assert fit.occurrence is not None
    assert fit.miss == 0.2
    assert fit.occurrence.occurs == pytest.approx(0.6, abs=SIGMAS * fit.occurrence.occurs_error)
    assert fit.occurrence.occurs_error == pytest.approx(np.sqrt(0.48 * 0.52 / 8000) / 0.8, rel=0.05)
    assert len(fit.occurrence.absent) == pytest.approx(0.4 * 8000, rel=0.05)
    assert stats.kstest(fit.occurrence.absent, stats.gamma(2.0, scale=3.0).cdf).statistic < 0.03
    assert stats.kstest(fit.occurrence.happened, stats.gamma(9.0, scale=3.0).cdf).statistic < 0.03
    assert fit.notes == ()


def test_a_stated_occurrence_gives_the_miss() -> None:
    fit = fit_delays(optional_passes(8000, 0.6, 0.2, seed=2), Stated(occurs={"y": (0.6, 0.0)}))[1]
    assert fit.miss_error is not None
    assert fit.miss == pytest.approx(0.2, abs=SIGMAS * fit.miss_error)


def test_the_error_of_what_is_stated_counts() -> None:
    history = optional_passes(8000, 0.6, 0.2, seed=2)
    exact, rough = (fit_delays(history, Stated(occurs={"y": (0.6, error)}))[1].miss_error for error in (0.0, 0.03))
    assert rough == pytest.approx(np.hypot(exact, 0.8 * 0.03 / 0.6), rel=0.05)


def test_standard_errors_are_right() -> None:
    """About two of three estimates are within one standard error, and 95 % within two."""
    away = []
    for seed in range(60):
        fit = fit_delays(optional_passes(400, 0.6, 0.3, seed), Stated(occurs={"y": (0.6, 0.0)}))[1]
        assert fit.miss is not None
        away.append(abs(fit.miss - 0.3) / fit.miss_error)
    assert 0.5 < np.mean(np.array(away) < 1) < 0.85
    assert np.mean(np.array(away) < 2) > 0.88


def test_miss_and_occurs_are_not_told_apart_without_help() -> None:
    fit = fit_delays(optional_passes(4000, 0.6, 0.2, seed=3))[1]
    assert fit.miss is None
    assert "y was read in 4" in fit.notes[0]
    assert "cannot be separated; MISS is at most 0.2" in fit.notes[0]
    assert "--miss y=" in fit.notes[0]
    assert "\n" not in fit.notes[0]


def test_an_event_that_always_happens_has_a_miss_and_a_note() -> None:
    fit = fit_delays(optional_passes(4000, 1.0, 0.2, seed=4))[1]
    assert fit.miss == pytest.approx(0.2, abs=SIGMAS * 0.0064)
    # Of the standard error, 0.0063 comes from the number of passes, and as much from passes without y.
    assert fit.miss_error == pytest.approx(0.0090, abs=0.0005)
    assert ["MISS supposes that y always happens" in note for note in fit.notes] == [True]


def test_a_negative_with_a_stated_miss_is_a_component_like_others() -> None:
    history = optional_passes(4000, 0.6, 0.2, seed=5)
    x, y, z = history.times.T
    read = ~np.isnan(y)
    watch = Watch(y[read] - x[read], (z - x)[~read], (z - x)[read])
    negative = History(history.labels, (0, 2), history.times[:, [0, 2]], {1: watch})
    fits = [fit_delays(one, Stated(miss={"y": (0.2, 0.0)}))[1] for one in (history, negative)]
    assert fits[0].occurrence is not None
    assert fits[1].occurrence is not None
    assert fits[0].occurrence.occurs == fits[1].occurrence.occurs
    assert_allclose(fits[0].occurrence.absent, fits[1].occurrence.absent)


def test_doubtful_estimates_have_notes() -> None:
    few = fit_delays(optional_passes(40, 0.6, 0.2, seed=6), Stated(miss={"y": (0.2, 0.0)}))[1]
    assert "only 40 passes have a reading before and after it" in few.notes[0]
    too_often = fit_delays(optional_passes(2000, 1.0, 0.1, seed=7), Stated(miss={"y": (0.5, 0.0)}))[1]
    assert "more than MISS 0.5 allows" in too_often.notes[0]
    rarer = fit_delays(optional_passes(2000, 0.9, 0.0, seed=7), Stated(occurs={"y": (0.5, 0.0)}))[1]
    assert "more than OCCURS 0.5" in rarer.notes[0]
    rng = np.random.default_rng(8)
    skewed = History(
        ("x", "y"), (0, 1), np.stack([np.zeros(900), stats.truncnorm(3, 9).rvs(900, random_state=rng) - 3], 1), {}
    )
    best = fit_delays(skewed)[1]
    is_negative = best.distributions[0].law == "NORMAL" and best.distributions[0].parameters[0] < 0
    assert ["negative mean" in note for note in best.notes] == [True] * is_negative
    lost = fit_delays(optional_passes(3000, 1.0, 0.97, seed=9))[1]
    assert lost.miss is None
    assert "which is less than half" in lost.notes[0]
    hardly = fit_delays(optional_passes(3000, 1.0, 0.97, seed=9), Stated(occurs={"y": (1.0, 0.0)}))[1]
    assert any("MISS 0.97 is hardly plausible" in note for note in hardly.notes)


# ---------------------------------------------------------------- passes

STREAM = "CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;"
QUERY = (
    "SEQUENCE (x, !y, z, w) FROM reads WHERE x.reader = 'a' AND y.reader = 'n' AND z.reader = 'b' AND w.reader = 'c'"
)


def bound(query: str) -> BoundSequence:
    catalog = Catalog()
    assert not declare(parse(f"{STREAM} CREATE QUERY q AS {query};"), catalog)
    sequence = bind(catalog.queries()[0], catalog)
    assert isinstance(sequence, BoundSequence)
    return sequence


def reads(*rows: tuple[str | None, str, int]) -> dict[str, pa.Table]:
    tag, reader, t = zip(*rows, strict=True)
    return {"reads": pa.table({"tag": pa.array(tag, pa.string()), "reader": reader, "t": t})}


def history_of(query: str, *rows: tuple[str | None, str, int]) -> History:
    return make_history(analyse(bound(query)), reads(*rows), {})


BY_TAG = f"{QUERY} AND x.tag = y.tag AND y.tag = z.tag AND z.tag = w.tag"
NAN = np.nan


def test_a_pass_continues_while_components_ascend_within_the_window() -> None:
    history = history_of(
        f"{BY_TAG} WITHIN 100",
        ("i", "a", 0), ("i", "b", 10), ("i", "b", 10), ("i", "c", 30),
        ("i", "b", 60), ("i", "b", 70), ("i", "c", 200),
        ("j", "a", 5), ("j", "n", 8), ("j", "n", 9), ("j", "b", 20), ("j", "c", 105), ("j", "a", 106), ("j", "c", 207),
        (None, "a", 3), ("k", "other", 4),
    )  # fmt: skip
    assert_allclose(
        history.times,
        [
            [0, 10, 30], [NAN, 60, NAN], [NAN, 70, NAN], [NAN, NAN, 200],
            [5, 20, 105], [106, NAN, NAN], [NAN, NAN, 207],
        ],
    )  # fmt: skip
    # y is observed from x to z if both were read: once it was not read for 10, and once it came after 3.
    assert history.watches[1].seen.tolist() == [3.0]
    assert history.watches[1].unseen.tolist() == [10.0]
    assert history.positives == (0, 2, 3)
    assert history.watches[1].lengths.tolist() == [15.0]
    assert (history.repeated, history.ambiguous) == (1, 0)


def test_one_of_several_events_at_one_instant_continues_the_pass() -> None:
    history = history_of(BY_TAG, ("i", "a", 0), ("i", "b", 0), ("i", "b", 7), ("i", "c", 7))
    assert_allclose(history.times, [[0, 7, NAN]])


def test_without_equal_columns_all_events_are_in_one_group() -> None:
    history = history_of(QUERY, ("i", "a", 0), ("j", "b", 4), ("k", "n", 2), ("l", "c", 9))
    assert_allclose(history.times, [[0, 4, 9]])
    assert history.watches[1].seen.tolist() == [2.0]


def test_a_negative_without_equal_columns_belongs_to_every_group() -> None:
    query = f"{QUERY} AND x.tag = z.tag AND z.tag = w.tag"
    history = history_of(query, ("i", "a", 0), ("i", "b", 4), ("other", "n", 2), ("j", "a", 10), ("j", "b", 17))
    assert (history.watches[1].seen.tolist(), history.watches[1].unseen.tolist()) == ([2.0], [7.0])


def test_an_open_ending_is_observed_until_the_window_closes_or_the_history_ends() -> None:
    query = (
        "SEQUENCE (x, !y) FROM reads WHERE x.reader = 'a' AND y.reader = 'n' AND x.tag = y.tag WITHIN 50 ENDING OPEN"
    )
    history = history_of(query, ("i", "a", 0), ("i", "n", 60), ("j", "a", 20), ("j", "n", 25), ("k", "a", 30))
    assert history.watches[1].seen.tolist() == [5.0]
    assert history.watches[1].unseen.tolist() == [50.0, 30.0]
    assert fit_delays(history)[0].distributions == ()


def test_the_delay_of_the_first_component_starts_with_the_window() -> None:
    history = history_of(f"{BY_TAG} WITHIN 100", ("i", "a", 0), ("i", "b", 10), ("i", "c", 30), ("j", "a", 0))
    assert fit_delays(history)[0].delays.tolist() == [70.0]


def test_alternatives_are_refused() -> None:
    query = f"{BY_TAG} AND (x.reader = 'a' OR z.reader = 'b')"
    finding = objection(analyse(bound(query)))
    assert finding is not None
    assert "delays can be learned from one only" in finding.message


def test_timestamps_mixed_with_numbers_are_refused() -> None:
    streams = "".join(f"CREATE STREAM {name} KEY (tag STRING) TIME t;" for name in "rs")
    catalog = Catalog()
    assert not declare(
        parse(f"{streams} CREATE QUERY q AS SEQUENCE (x, y) FROM r AS x, s AS y WHERE x.tag = y.tag;"), catalog
    )
    analysis = analyse(bind(catalog.queries()[0], catalog))
    times = {"r": pa.array([1]), "s": pa.array([1], pa.timestamp("us", "UTC"))}
    tables = {name: pa.table({"tag": ["a"], "t": time}) for name, time in times.items()}
    with pytest.raises(DataError, match="the times of some streams are timestamps, and those of others are numbers"):
        make_history(analysis, tables, {})


# ---------------------------------------------------------------- the shop


def test_the_delays_of_the_shop_simulator_are_recovered() -> None:
    options = Options(items=6000, miss_checkout=0.2)
    shop = simulate(options, seed=2)
    catalog = Catalog()
    assert not declare(parse(shop.workbook), catalog)
    query = next(query for query in catalog.queries() if query.name == "shoplifting")
    shoplifting = bind(query, catalog)
    assert isinstance(shoplifting, BoundSequence)
    x, y, z = fit_delays(make_history(analyse(shoplifting), {"reads": shop.reads}, {}))
    assert_law(x, ("UNIFORM", (0.0, (options.longest - options.shortest) * MINUTE)))
    assert_law(y, ("GAMMA", (4.0, 4.0 * MINUTE)))
    assert_miss(x, 0.1)
    assert y.miss == pytest.approx(0.2, abs=2 * SIGMAS * np.sqrt(0.2 * 0.8 / y.opportunities))
    assert z.miss is None
