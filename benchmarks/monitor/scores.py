"""The answer of MONITOR at an instant, the ideal answer, and the score of one against the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.spatial import cKDTree

from anabranch.arrays import I64
from anabranch.monitor.answers import INVALIDATED, TENTATIVE
from anabranch.simulate.vehicles import NEAR, true_pairs
from benchmarks.monitor.scenarios import Scenario


def pair_codes(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> I64:
    """Return pairs of cars as numbers that can be compared."""
    return first.astype(np.int64) << 32 | second.astype(np.int64)


class CurrentAnswers:
    """The answers that are current: reported, not invalidated, and not yet over.

    A tentative answer adds to them, an invalidated one removes from them. A validated answer ended before the
    watermark, so it changes nothing. Two predictions have only one region here, so they identify an answer.

    Parameters
    ----------
    sample : seconds between two measurements
    """

    def __init__(self, sample: float) -> None:
        self._sample = sample
        self._identity, self._pair = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._from, self._to = np.zeros(0), np.zeros(0)

    def update(self, answers: pa.Table, now: float) -> None:
        """Apply the answers of a step."""
        status = answers["status"]
        invalidated = answers.filter(pc.equal(status, INVALIDATED))
        tentative = answers.filter(pc.equal(status, TENTATIVE))
        kept = (self._to > now) & ~np.isin(self._identity, self._identities(invalidated))
        first, second = (_field(tentative[name], "car") for name in "ab")
        self._identity = np.concatenate([self._identity[kept], self._identities(tentative)])
        self._pair = np.concatenate([self._pair[kept], pair_codes(first, second)])
        self._from = np.concatenate([self._from[kept], tentative["valid_from"].to_numpy()])
        self._to = np.concatenate([self._to[kept], tentative["valid_to"].to_numpy()])

    def at(self, now: float) -> I64:
        """Return the pairs that match at an instant; validity intervals are open at the end."""
        return np.unique(self._pair[(self._from <= now + 1e-9) & (self._to > now + 1e-9)])

    def _identities(self, answers: pa.Table) -> I64:
        """Return the two predictions of each answer, car and number of the measurement, as one number."""
        identities = np.zeros(answers.num_rows, np.int64)
        for side in "ab":
            number = np.rint(_field(answers[side], "t") / self._sample).astype(np.int64)
            identities = identities << 31 | _field(answers[side], "car") << 11 | number
        return identities


def _field(column: pa.ChunkedArray, name: str) -> npt.NDArray[np.generic]:
    return pc.struct_field(column, name).to_numpy()


# ------------------------------------------------------------ scores


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F-measure of an answer, or their means over answers."""

    precision: float
    recall: float
    f: float

    @staticmethod
    def of(answer: I64, ideal: I64) -> Score:
        """Return the score of one answer; an empty answer has precision 1, and an empty ideal gives recall 1.

        Examples
        --------
        >>> Score.of(np.array([1, 2, 3, 4]), np.array([2, 3, 9]))
        Score(precision=0.5, recall=0.6666666666666666, f=0.5714285714285714)
        """
        right = len(np.intersect1d(answer, ideal, assume_unique=True))
        precision = right / len(answer) if len(answer) else 1.0
        recall = right / len(ideal) if len(ideal) else 1.0
        total = precision + recall
        return Score(precision, recall, 2 * precision * recall / total if total else 0.0)

    @staticmethod
    def mean(scores: list[Score]) -> Score:
        """Return the mean of each measure."""
        return Score(
            *(float(np.mean([getattr(score, name) for score in scores])) for name in ("precision", "recall", "f"))
        )


@lru_cache(maxsize=512)
def ideal_pairs(scenario: Scenario, now: float) -> I64:
    """Return the pairs that are near each other by their last GPS measurements."""
    pairs = true_pairs(scenario.positions, scenario.vehicles, now)
    return pair_codes(pairs[:, 0], pairs[:, 1])


@lru_cache(maxsize=512)
def window_pairs(scenario: Scenario, now: float, within: float) -> I64:
    """Return the pairs of which one, by its last measurement, is near a measurement of the other in the window."""
    times = scenario.vehicles.times
    last = int(np.searchsorted(times, now + 1e-9, side="right")) - 1
    here = cKDTree(scenario.positions[last])
    codes = [ideal_pairs(scenario, now)]
    for earlier in range(last - 1, -1, -1):
        if times[last] - times[earlier] > within + 1e-9:
            break
        there = cKDTree(scenario.positions[earlier])
        near = here.sparse_distance_matrix(there, NEAR, p=np.inf, output_type="ndarray")
        first, second = near["i"] + 1, near["j"] + 1
        differ = first != second
        codes.append(pair_codes(np.minimum(first, second)[differ], np.maximum(first, second)[differ]))
    return np.unique(np.concatenate(codes))
