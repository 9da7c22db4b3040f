"""Precision, recall and F1 of answers over thresholds.

An answer is a (group, t) with the probability that an event happened there; the ground truth is the events that did
happen. Their clocks may differ a little, so an answer is *right* if an event of its group is within a tolerance, and an
event is *found* if an answer of its group is. Consecutive answers about one event count one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.evaluation.matching import WITHIN, group_codes, have_near
from anabranch.evaluation.series import instants

THRESHOLDS = tuple(n / 50 for n in range(26))
"""From 0 to 0.5, the range where probabilities are most useful."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the answers above a threshold are.

    Attributes
    ----------
    threshold : float
        Answers count if their probability is above it.
    answers, right : int
        The number of such answers, and of those with an event nearby.
    events, found : int
        The number of events, and of those with such an answer nearby.
    """

    threshold: float
    answers: int
    right: int
    events: int
    found: int

    @property
    def precision(self) -> float:
        """The share of the answers that are right; NaN if there are none."""
        return self.right / self.answers if self.answers else float("nan")

    @property
    def recall(self) -> float:
        """The share of the events that are found; NaN if there are none."""
        return self.found / self.events if self.events else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if nothing is right or nothing is found."""
        if not self.right or not self.found:
            return 0.0
        return 2 / (1 / self.precision + 1 / self.recall)


def qualities(
    answers: pa.Table, truth: pa.Table, group: str, thresholds: Iterable[float] = THRESHOLDS, within: float = WITHIN
) -> list[Quality]:
    """Return precision and recall at each threshold.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping column. CERTAIN answers have probability 1.
    truth : pa.Table
        The events that happened: `t` and the grouping column, with the same name.
    group : str
        The grouping column.
    thresholds : iterable of float
    within : float
        The tolerance in time, in the unit of `t`; seconds for timestamps.

    Examples
    --------
    >>> answers = pa.table({"x": ["ana", "ana"], "t": [10, 99], "probability": [0.8, 0.2]})
    >>> truth = pa.table({"x": ["ana"], "t": [12]})
    >>> [(q.precision, q.recall) for q in qualities(answers, truth, "x", thresholds=[0.1, 0.5])]
    [(0.5, 1.0), (1.0, 1.0)]
    """
    answer_groups, event_groups = group_codes(answers, truth, group)
    times, events = instants(answers["t"]), instants(truth["t"])
    probabilities = np.asarray(answers["probability"], dtype=np.float64)
    right = have_near(answer_groups, times, event_groups, events, within)
    by_threshold = []
    for threshold in thresholds:
        above = probabilities > threshold
        found = have_near(event_groups, events, answer_groups[above], times[above], within)
        counts = int(above.sum()), int(right[above].sum()), len(events), int(found.sum())
        by_threshold.append(Quality(threshold, *counts))
    return by_threshold
