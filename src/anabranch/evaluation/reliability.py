"""Whether probabilities are calibrated: of the answers with probability 0.8, about 80% should be true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools
from anabranch.evaluation.matching import at_instants, have_near, table_groups
from anabranch.evaluation.series import instants

DEVIATIONS = 1.96
"""The half-width of an interval in standard errors: 95 % of the intervals contain the true share."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of similar probability.

    Attributes
    ----------
    low, high : float
        The range of probabilities.
    answers : int
        The number of answers in it.
    predicted : float
        Their mean probability.
    observed : float
        The share of them that is true.
    """

    low: float
    high: float
    answers: int
    predicted: float
    observed: float

    @property
    def error(self) -> float:
        """The mean probability minus the share of true answers: above 0 where the probabilities are too high."""
        return self.predicted - self.observed


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share that was observed in `count` independent answers.

    Examples
    --------
    >>> low, high = wilson_interval(0.5, 40)
    >>> round(low, 3), round(high, 3)
    (0.352, 0.648)
    """
    squared = DEVIATIONS**2 / count
    centre = (share + squared / 2) / (1 + squared)
    half = math.sqrt(squared * (share * (1 - share) + squared / 4)) / (1 + squared)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def calibration(
    answers: pa.Table, truth: pa.Table, group: str | Sequence[str], bins: int = 10, within: float = 0.0
) -> list[Bin]:
    """Return the share of true answers for each range of probabilities.

    A probability is about one instant, so an answer is true if an event happened at exactly that instant; a larger
    `within` tests a weaker claim than the probabilities make. Only the answers in the table count: where a threshold
    has removed some, the lowest bins lack them.

    Parameters
    ----------
    answers, truth, group
        As in `qualities`.
    bins : int
        The number of ranges of equal width from 0 to 1; those without answers are left out.
    within : float
        The tolerance in time, in the unit of `t`; seconds for timestamps.
    """
    answer_groups, event_groups = table_groups(answers, truth, group)
    probabilities = np.asarray(answers["probability"], dtype=np.float64)
    events = at_instants(event_groups, instants(truth["t"]))
    return bins_of(probabilities, have_near(at_instants(answer_groups, instants(answers["t"])), events, within), bins)


def bin_numbers(probabilities: F64, bins: int) -> I64:
    """Return the bin of each probability, of equal width from 0 to 1."""
    # Rounding errors can put a probability a little above 1 or below 0.
    return np.clip((probabilities * bins).astype(np.int64), 0, bins - 1)


def bins_of(probabilities: F64, true: Bools, bins: int = 10) -> list[Bin]:
    """Return the share of true answers in bins of equal width; bins without answers are left out."""
    bin_of = bin_numbers(probabilities, bins)
    return [
        Bin(
            n / bins, (n + 1) / bins, int(inside.sum()), float(probabilities[inside].mean()), float(true[inside].mean())
        )
        for n in range(bins)
        if (inside := bin_of == n).any()
    ]


def expected_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error: |predicted - observed|, averaged over the answers."""
    answers = sum(bin.answers for bin in bins)
    return sum(bin.answers * abs(bin.predicted - bin.observed) for bin in bins) / answers if answers else float("nan")
