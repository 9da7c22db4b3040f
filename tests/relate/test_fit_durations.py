"""Learning DURATION and GAP from recorded segments: known parameters are recovered, with and without lost ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anabranch.arrays import BEGINNING
from anabranch.columns.times import TimeKind
from anabranch.relate.assembly import IntervalRows, assemble
from anabranch.relate.files import read_laws, write_laws
from anabranch.relate.fit import Lengths, fit_durations, lengths_of


def history(k: int, mean: float, gap: float, lost: float, n_entities: int = 400, seed: int = 1) -> Lengths:
    """The lengths of entities with three segments, of which a share of the events is lost."""
    random = np.random.default_rng(seed)
    lengths = np.empty((n_entities, 6))
    lengths[:, ::2] = random.exponential(gap, (n_entities, 3))
    lengths[:, 1::2] = random.gamma(k, mean / k, (n_entities, 3))
    times = (1e6 * (1 + np.cumsum(lengths, axis=1))).astype(np.int64)
    t = np.where(random.random(times.shape) < lost, BEGINNING, times).ravel()
    entity, seq = np.repeat(np.arange(n_entities), 6), np.tile(np.arange(1, 7), n_entities)
    columns = {"seq": seq, "t": t, "length": np.full(t.size, 6)}
    assembled = assemble(IntervalRows.of(entity, columns), n_entities, (0, int(times.max()) + 10**6))
    return lengths_of(assembled.windows, TimeKind.TIMESTAMP, np.arange(t.size) // 2 % 2, 2)


@pytest.mark.parametrize(("k", "mean"), [(1, 20.0), (3, 5.0), (8, 120.0)])
@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_the_parameters_of_a_simulation_are_recovered(k: int, mean: float, lost: float) -> None:
    fits = fit_durations(history(k, mean, 30.0, lost), ["even", "odd"])
    assert [(fit.clause, fit.name) for fit in fits] == [
        (clause, name) for clause in ("DURATION", "GAP") for name in ("", "even", "odd")
    ]
    duration, gap = fits[0], fits[3]
    assert abs(duration.k - k) <= (0 if k < 5 else 2)
    assert abs(duration.mean - mean) < 3 * mean / np.sqrt(k * len(duration.recorded))
    assert gap.k == 1
    assert abs(gap.mean - 30.0) < 3 * 30.0 / np.sqrt(len(gap.recorded))
    assert (duration.n_censored > 300) == (lost > 0)


def recorded(*lengths: float, state: int = 0) -> Lengths:
    none, nothing = np.zeros(0), np.zeros(0, np.int64)
    return Lengths(np.full(len(lengths), state), np.array(lengths), none, none, none, none, nothing, nothing)


def test_lost_last_events_correct_the_mean() -> None:
    """Lengths above 10 are never recorded, only that they are longer: the mean of the others is too small."""
    lengths = np.random.default_rng(3).exponential(10.0, 4000)
    short, n = lengths[lengths < 10], int((lengths >= 10).sum())
    lost = Lengths(
        np.zeros(len(short), np.int64), short, np.full(n, 10.0), np.full(n, 1e4), np.zeros(n), np.full(n, np.nan),
        np.zeros(n, np.int64), np.full(n, -1),
    )  # fmt: skip
    (fit,) = fit_durations(lost, [])
    assert fit.recorded.mean() < 5
    assert fit.mean == pytest.approx(10.0, rel=0.06)
    assert fit.n_censored == n


def test_a_class_with_one_length_has_no_distribution_of_its_own() -> None:
    lengths = replace(recorded(1.0, 2.0, 3.0), state=np.array([0, 0, 1]))
    assert [fit.name for fit in fit_durations(lengths, ["x", "y"])] == ["", "x"]


def test_lengths_of_0_are_possible() -> None:
    (fit,) = fit_durations(recorded(0.0, 2.0, 3.0, 2.0, 0.0, 4.0), [])
    assert fit.k == 1
    assert np.isfinite(fit.log_likelihood)


def test_fitted_distributions_can_be_read_again(tmp_path) -> None:
    fits = [fit for fit in fit_durations(history(2, 5.0, 30.0, 0.1), ["even", "odd"]) if not fit.name]
    write_laws(fits, tmp_path)
    for fit in fits:
        assert read_laws(tmp_path / "durations.csv", fit.clause, 1e6, by_class=False) == (("", fit.k, fit.mean * 1e6),)
