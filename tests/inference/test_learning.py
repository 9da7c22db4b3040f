"""What `fit hmm` learns besides counts: stages, the exponent of the likelihoods, and normal distributions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from anabranch.errors import DataError
from anabranch.inference.fit import Smoothing, fit_hmm
from anabranch.inference.history import make_history, point_rows
from anabranch.inference.hmm import Sensing
from anabranch.inference.labels import Labelled
from anabranch.inference.stays import fitted_stages, stays_of
from anabranch.inference.tempering import EXPONENTS, Tempering, fit_tempering
from tests.oracles import hmm as oracle

PLAIN = Smoothing(alpha=0.0)
ROOMS = ("hall", "lab")


def labelled(codes: Any, key: int = 0, step: int = 0) -> Labelled:
    n = len(codes)
    return Labelled(np.full(n, key, np.int64), np.arange(step, step + n), np.asarray(codes, np.int32))


def joined(parts: list[Labelled]) -> Labelled:
    return Labelled(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "step", "code")))


# ---------------------------------------------------------------- stages


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.sets(st.integers(0, 11)))
def test_stays_are_runs_after_a_move(codes: list[int], gaps: set[int]) -> None:
    steps = np.cumsum([1 + (i in gaps) for i in range(len(codes))])
    stays = stays_of(Labelled(np.zeros(len(codes), np.int64), steps, np.array(codes, np.int32)))
    pieces = [[codes[0]]]
    for i in range(1, len(codes)):
        if steps[i] == steps[i - 1] + 1:
            pieces[-1].append(codes[i])
        else:
            pieces.append([codes[i]])
    expected = []
    for piece in pieces:
        runs = [(x, len(list(run))) for x, run in itertools.groupby(piece)]
        expected += [(x, d, i == len(runs) - 1) for i, (x, d) in enumerate(runs) if i > 0]
    assert list(zip(stays.location, stays.steps, stays.cut, strict=True)) == expected


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=6, max_size=10), st.integers(0, 3))
def test_the_number_of_stages_has_the_highest_likelihood(pairs: list[tuple[int, int]], last: int) -> None:
    path = [room for a, b in pairs for room, d in ((0, a), (1, b)) for _ in range(d)] + [0] * last
    truth = labelled(path)
    hmm = fit_hmm(truth, labelled([]), ROOMS, [], smoothing=PLAIN)
    stages = fitted_stages(hmm, truth, 6)
    stays = stays_of(truth)
    for x in range(2):
        moves = slice(hmm.starts[x], hmm.starts[x + 1])
        staying = float(hmm.p[moves][hmm.targets[moves] == x].sum())
        chosen, cut = stays.steps[stays.location == x], stays.cut[stays.location == x]
        if (~cut).sum() < 5 or not 0 < staying < 1:
            assert stages[x] == 1
            continue
        likelihoods = []
        for k in range(1, 7):
            law = oracle.Stay(k, staying)
            chances = [law.lasts_at_least(d) if c else law.lasts(d) for d, c in zip(chosen, cut, strict=True)]
            likelihoods.append(np.prod(chances))
        assert likelihoods[stages[x] - 1] == pytest.approx(max(likelihoods), rel=1e-6)


def test_stays_of_nearly_equal_length_have_many_stages() -> None:
    rng = np.random.default_rng(0)
    path = [room for _ in range(60) for room, d in ((0, 20), (1, rng.geometric(0.1))) for _ in range(d)]
    hmm = fit_hmm(labelled(path), labelled([]), ROOMS, [], smoothing=PLAIN, stages=8)
    assert hmm.stages.tolist()[0] == 8
    assert hmm.stages.tolist()[1] <= 2


# ---------------------------------------------------------------- tempering


def history(repeats: int, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Two rooms, a reader that is right with probability 0.7; it reads anew only every `repeats` steps."""
    rng = np.random.default_rng(seed)
    truth, readings = [], []
    for key in range(6):
        rooms = np.cumsum(rng.random(400) < 0.02) % 2
        fresh = np.where(rng.random(400) < 0.7, rooms, 1 - rooms)
        last = np.arange(400) // repeats * repeats
        truth.append(labelled(rooms, key))
        readings.append(labelled(fresh[last], key))
    return joined(truth), joined(readings)


@pytest.mark.parametrize(("repeats", "low", "high"), [(1, 0.7, 1.0), (8, 0.03, 0.5)])
def test_repeated_readings_get_a_small_exponent(repeats: int, low: float, high: float) -> None:
    fit = partial(fit_hmm, locations=ROOMS, readers=("a", "b"), sensing=Sensing.EMISSION, initial="all")
    truth, readings = history(repeats)
    hmm = fit_tempering(truth, readings, fit).temper(fit(truth, readings))
    assert low <= hmm.exponent <= high
    assert hmm.exponent_so_far is None or low <= hmm.exponent_so_far <= high


def test_the_highest_exponent_that_is_as_good_as_the_best_is_taken() -> None:
    """Of two parts; 0.5 is best, and 0.7 is worse by 0.01 in one of them: its mean is its standard error."""
    hmm = fit_hmm(labelled([0]), labelled([]), ROOMS, [])
    flat = np.full((len(EXPONENTS), 2), 0.5)
    flat[:3] = [[0.6, 0.6], [0.2, 0.21], [0.2, 0.2]]
    steep = flat.copy()
    steep[1] = [0.21, 0.212]
    tempered = Tempering(EXPONENTS, np.array([flat, steep])).temper(hmm)
    assert (tempered.exponent, tempered.exponent_so_far) == (0.7, 0.5)
    alone = Tempering(EXPONENTS, np.zeros((2, len(EXPONENTS), 0))).temper(hmm)
    assert (alone.exponent, alone.exponent_so_far) == (1.0, None), "one step cannot be held out"


def test_the_score_is_the_brier_score_of_held_out_steps() -> None:
    """Four blocks of one key: fitted without a block, each block is inferred by itself."""
    truth, readings = (part.where(np.arange(20)) for part in history(2, seed=3))
    fit = partial(fit_hmm, locations=ROOMS, readers=("a", "b"), sensing=Sensing.EMISSION, initial="all")
    expected = np.zeros((2, len(EXPONENTS), 4))
    for part, block in enumerate(np.arange(20).reshape(4, 5)):
        rest = np.setdiff1d(np.arange(20), block)
        hmm = fit(truth.where(rest), readings.where(rest))
        transition, emission = np.zeros((2, 2)), np.zeros((2, 2))
        for x in range(2):
            moves, seen = slice(hmm.starts[x], hmm.starts[x + 1]), slice(hmm.reader_starts[x], hmm.reader_starts[x + 1])
            transition[x, hmm.targets[moves]] = hmm.p[moves]
            emission[x, hmm.reader_locations[seen]] = hmm.reader_p[seen]
        likelihoods = oracle.emission_likelihoods(emission, None, [{int(code)} for code in readings.code[block]])
        for i, exponent in enumerate(EXPONENTS):
            corrected, _ = oracle.without_impossible(hmm.initial, transition, likelihoods**exponent)
            marginals = oracle.marginals(oracle.posterior(oracle.paths(hmm.initial, transition, corrected)), 2)
            for method, p in enumerate((marginals, oracle.filtered(hmm.initial, transition, corrected))):
                expected[method, i, part] = ((p - np.eye(2)[truth.code[block]]) ** 2).sum() / 5
    assert_allclose(fit_tempering(truth, readings, fit).scores, expected, rtol=1e-9)


# ---------------------------------------------------------------- measured quantities


def test_normal_distributions_are_fitted_by_reader_and_location() -> None:
    rng = np.random.default_rng(5)
    rooms = np.repeat([0, 1], 2000)
    readers = rng.integers(0, 2, 4000)
    strength = np.where(rooms == 0, -60.0, -50.0) + 3.0 * readers + rng.normal(0, 2.0, 4000)
    truth = labelled(rooms)
    readings = replace(labelled(readers), quantities=strength[:, np.newaxis])
    hmm = fit_hmm(truth, readings, ROOMS, ("a", "b"), Sensing.EMISSION, quantities=("rssi",))
    assert hmm.gaussians.quantities == ("rssi",)
    assert_allclose(hmm.gaussians.mean, [[-60, -50, -57, -47]], atol=0.3)
    assert_allclose(hmm.gaussians.deviation, 2.0, atol=0.15)


def test_readings_of_one_reader_in_a_step_count_once_with_their_mean() -> None:
    truth = labelled([0, 0, 0])
    step = np.array([0, 0, 1, 2])
    readings = Labelled(np.zeros(4, np.int64), step, np.zeros(4, np.int32), np.array([[1.0], [3.0], [4.0], [np.nan]]))
    hmm = fit_hmm(truth, readings, ("hall",), ("a",), Sensing.EMISSION, quantities=("rssi",))
    # The means 2 and 4, and the prior mean 3 of all measurements, twice: of the location, and of the pair.
    assert hmm.gaussians.mean.tolist() == [[3.0]]


def test_equal_measurements_have_a_positive_deviation() -> None:
    readings = replace(labelled([0, 0, 0]), quantities=np.full((3, 1), 7.0))
    hmm = fit_hmm(labelled([0, 0, 0]), readings, ("hall",), ("a",), Sensing.EMISSION, quantities=("rssi",))
    assert hmm.gaussians.deviation.tolist() == [[1.0]]


# ---------------------------------------------------------------- history


def test_rows_with_a_duration_are_rows_of_steps_and_gaps_get_a_name() -> None:
    truth = pa.table({"k": ["a", "a"], "room": ["hall", "lab"], "since": [0, 50], "until": [25, 60]})
    readings = pa.table({"k": ["a", "a"], "reader": ["bed", "door"], "since": [3, 52], "until": [14, 52]})
    tables = [point_rows(table, "since", "until", 10) for table in (truth, readings)]
    known = make_history(*tables, 10, between="idle")
    assert known.locations == ("hall", "lab", "idle")
    order = np.argsort(known.truth.step)
    assert known.truth.code[order].tolist() == [0, 0, 0, 2, 2, 1]
    assert sorted(zip(known.readings.step, known.readings.code, strict=True)) == [(0, 0), (1, 0), (5, 1)]
    assert make_history(*tables, 10).locations == ("hall", "lab")


def test_measured_quantities_are_numbers() -> None:
    truth = pa.table({"k": ["a"], "room": ["hall"], "t": [0]})
    readings = pa.table({"k": ["a", "a"], "reader": ["east", "east"], "rssi": [-50, None], "t": [0, 0]})
    known = make_history(truth, readings, quantities=("rssi",))
    assert_allclose(known.readings.quantities, [[-50.0], [np.nan]])
    texts = readings.set_column(2, "rssi", pa.array(["x", "y"]))
    with pytest.raises(DataError, match="rssi, which the readings measure, is string"):
        make_history(truth, texts, quantities=("rssi",))
