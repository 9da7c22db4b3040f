"""How many stages the stays at each location have: the number under which the recorded stays are most likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.inference.hmm import Hmm
from anabranch.inference.labels import Labelled

#: With fewer complete stays at a location, its number of stages cannot be distinguished from chance: it is 1.
FEWEST_STAYS = 5


@dataclass(frozen=True, slots=True)
class Stays:
    """Recorded stays: the location, the number of steps, and whether the stay was still under way at the last of them.

    A stay whose beginning is not recorded is left out.
    """

    location: I32
    steps: I64
    cut: Bools


def stays_of(truth: Labelled) -> Stays:
    """The stays in the true locations, which are sorted by key and step; a gap cuts a stay.

    >>> key, step = np.zeros(6, np.int64), np.array([0, 1, 2, 3, 4, 9])
    >>> stays = stays_of(Labelled(key, step, np.array([1, 0, 0, 1, 1, 1], np.int32)))
    >>> stays.location.tolist(), stays.steps.tolist(), stays.cut.tolist()
    ([0, 1], [2, 2], [False, True])
    """
    joined = (np.diff(truth.key) == 0) & (np.diff(truth.step) == 1)
    begins = np.concatenate([[True], ~joined | (np.diff(truth.code) != 0)])
    firsts = np.flatnonzero(begins)
    ends = np.append(firsts[1:], len(truth.key))
    after_move = np.concatenate([[False], joined])[firsts]
    cut = ~np.append(joined, False)[ends - 1]
    return Stays(truth.code[firsts][after_move], (ends - firsts)[after_move], cut[after_move])


def fitted_stages(hmm: Hmm, truth: Labelled, most: int) -> I32:
    """For each location the number of stages, at most `most`, under which its stays are most likely.

    The mean of a stay is that of the model's transitions for every number, so only the shape is fitted. If several
    numbers are equally likely, the lowest is taken.
    """
    stays = stays_of(truth)
    stages = np.ones(len(hmm.locations), np.int32)
    for x in range(len(hmm.locations)):
        here = stays.location == x
        staying = hmm.p[hmm.starts[x] : hmm.starts[x + 1]][hmm.targets[hmm.starts[x] : hmm.starts[x + 1]] == x].sum()
        if np.count_nonzero(here & ~stays.cut) < FEWEST_STAYS or not 0 < staying < 1:
            continue
        stages[x] = 1 + int(np.argmax(_log_likelihoods(stays.steps[here], stays.cut[here], float(staying), most)))
    return stages


def _log_likelihoods(steps: I64, cut: Bools, staying: float, most: int) -> F64:
    """The log likelihood of the stays of a location, for 1 to `most` stages; see `states.py` for the distribution."""
    k = np.arange(1, most + 1)
    success = k * (1 - staying) / (k * (1 - staying) + staying)
    failures = (steps - 1)[:, np.newaxis]
    exactly = gammaln(failures + k) - gammaln(failures + 1) - gammaln(k)
    exactly += k * np.log(success) + failures * np.log1p(-success)
    # The least number counts: a stay that was cut has at least these failures.
    at_least = np.log(np.where(failures == 0, 1.0, betainc(np.maximum(failures, 1), k, 1 - success)))
    likelihoods: F64 = np.where(cut[:, np.newaxis], at_least, exactly).sum(axis=0)
    return likelihoods
