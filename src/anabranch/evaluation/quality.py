"""Precision, recall and F1 of answers over thresholds.

An answer is a (group, t) with the probability that an event happened there; the ground truth is the events that did
happen. Their clocks may differ a little, so an answer is *right* if an event of its group is within a tolerance, and an
event is *found* if an answer of its group is. Consecutive answers about one event count one by one in `qualities`, and
as one *episode* in `episode_qualities`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64
from anabranch.evaluation.matching import WITHIN, Spans, at_instants, by_start, have_near, merged, table_groups
from anabranch.evaluation.series import instants
from anabranch.thresholds import least_reaching

THRESHOLDS = tuple(n / 50 for n in range(26))
"""From 0 to 0.5, the range where probabilities are most useful."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the answers above a threshold are.

    Attributes
    ----------
    threshold : float
        Answers count if their probability is above it (`qualities`), or at least this high (`episode_qualities`).
    answers, right : int
        The number of such answers, or of their episodes, and of those with an event nearby.
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
    answers: pa.Table,
    truth: pa.Table,
    group: str | Sequence[str],
    thresholds: Iterable[float] = THRESHOLDS,
    within: float = WITHIN,
) -> list[Quality]:
    """Return precision and recall at each threshold.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping columns. CERTAIN answers have probability 1.
    truth : pa.Table
        The events that happened: `t` and the grouping columns, with the same names.
    group : str or sequence of str
        The grouping columns.
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
    answer_groups, event_groups = table_groups(answers, truth, group)
    spans = at_instants(answer_groups, instants(answers["t"]))
    events = at_instants(event_groups, instants(truth["t"]))
    probabilities = np.asarray(answers["probability"], dtype=np.float64)
    return [quality_of(threshold, spans.take(probabilities > threshold), events, within) for threshold in thresholds]


def episode_qualities(
    spans: Spans, probabilities: F64, events: Spans, thresholds: Iterable[float], within: float, gap: float
) -> list[Quality]:
    """Return precision and recall of episodes at each threshold, as THRESHOLD would leave them.

    An episode is all answers of a group that reach the threshold and overlap, or follow within `gap`: answers about
    one event count once.
    """
    # Sorted once, and not again for each threshold.
    order = np.lexsort((spans.starts, spans.groups))
    spans, probabilities, events = spans.take(order), probabilities[order], by_start(events)
    by_threshold = []
    for threshold in thresholds:
        reached = (probabilities > 0) & (probabilities >= least_reaching(threshold))
        by_threshold.append(quality_of(threshold, merged(spans.take(reached), gap), events, within))
    return by_threshold


def quality_of(threshold: float, spans: Spans, events: Spans, within: float) -> Quality:
    """Return the precision and recall of answers or episodes."""
    right, found = have_near(spans, events, within), have_near(events, spans, within)
    return Quality(threshold, len(right), int(right.sum()), len(found), int(found.sum()))
