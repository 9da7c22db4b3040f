"""How good answers are: precision, recall and F1 over thresholds, and whether probabilities are what they say.

An answer is a (group, t) with the probability that an event was there; the truth is the events that really were. The
clocks of both may differ a little, so an answer is *right* where an event of its group lies within d of it, and an
event is *found* where an answer of its group does. Answers that follow each other about one event each count. No Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WITHIN = 30.0
"""How far apart an answer and an event may be, as in the experiments of Lahar (section 4.2)."""

THRESHOLDS = tuple(n / 50 for n in range(26))
"""From 0 to 0.5, the range where probabilities are most useful."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the answers above a threshold are.

    Attributes
    ----------
    threshold : float
        Answers count where their probability is above it.
    answers, right : int
        How many there are, and how many of them have an event near.
    events, found : int
        How many events there are, and how many of them have such an answer near.
    """

    threshold: float
    answers: int
    right: int
    events: int
    found: int

    @property
    def precision(self) -> float:
        """The share of the answers that are right; NaN where there are none."""
        return self.right / self.answers if self.answers else float("nan")

    @property
    def recall(self) -> float:
        """The share of the events that are found; NaN where there are none."""
        return self.found / self.events if self.events else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where nothing is right or nothing is found."""
        if not self.right or not self.found:
            return 0.0
        return 2 / (1 / self.precision + 1 / self.recall)


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about the same probability: how many, what they say on average, and the share that is true."""

    low: float
    high: float
    answers: int
    said: float
    true: float


def qualities(
    answers: pa.Table, truth: pa.Table, group: str, thresholds: Iterable[float] = THRESHOLDS, within: float = WITHIN
) -> list[Quality]:
    """Precision and recall at each threshold.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the group's column. CERTAIN answers have probability 1.
    truth : pa.Table
        With `t` and the group's column, by the same name.
    group : str
        The column that says of whom an answer or event is.
    thresholds : iterable of float
    within : float
        In the unit of `t`.

    Examples
    --------
    >>> answers = pa.table({"x": ["ana", "ana"], "t": [10, 99], "probability": [0.8, 0.2]})
    >>> truth = pa.table({"x": ["ana"], "t": [12]})
    >>> [(each.precision, each.recall) for each in qualities(answers, truth, "x", thresholds=[0.1, 0.5])]
    [(0.5, 1.0), (1.0, 1.0)]
    """
    of_answers, of_events = _codes(answers, truth, group)
    times, events = _times(answers), _times(truth)
    probabilities = np.asarray(answers["probability"], dtype=np.float64)
    right = _near(of_answers, times, of_events, events, within)
    found_by = []
    for threshold in thresholds:
        above = probabilities > threshold
        found = _near(of_events, events, of_answers[above], times[above], within)
        found_by.append(Quality(threshold, int(above.sum()), int(right[above].sum()), len(events), int(found.sum())))
    return found_by


def calibration(answers: pa.Table, truth: pa.Table, group: str, bins: int = 10, within: float = 0.0) -> list[Bin]:
    """Among the answers of about the same probability, the share that is true.

    A probability is about one instant, so an answer is true where an event lies at its very instant; a wider `within`
    asks a kinder query, which probabilities do not answer. Only the answers that are given are looked at: where
    some are left out by a threshold, the lowest bins lack them.

    Parameters
    ----------
    answers, truth, group
        As in `qualities`.
    bins : int
        Of equal width from 0 to 1; those without answers are left out.
    within : float
        In the unit of `t`.
    """
    of_answers, of_events = _codes(answers, truth, group)
    probabilities = np.asarray(answers["probability"], dtype=np.float64)
    true = _near(of_answers, _times(answers), of_events, _times(truth), within)
    # Rounding may leave a probability a little above 1 or below 0.
    place = np.clip((probabilities * bins).astype(np.int64), 0, bins - 1)
    return [
        Bin(n / bins, (n + 1) / bins, int(some.sum()), float(probabilities[some].mean()), float(true[some].mean()))
        for n in range(bins)
        if (some := place == n).any()
    ]


def expected_error(bins: Sequence[Bin]) -> float:
    """How far probabilities are from the shares that are true, averaged over the answers."""
    answers = sum(each.answers for each in bins)
    return sum(each.answers * abs(each.said - each.true) for each in bins) / answers if answers else float("nan")


def _codes(answers: pa.Table, truth: pa.Table, group: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of answers and events as numbers, the same for the same group."""
    names = np.concatenate([np.asarray(table[group].to_pylist(), dtype=object) for table in (answers, truth)])
    numbers: dict[object, int] = {}
    codes = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    return codes[: answers.num_rows], codes[answers.num_rows :]


def _times(table: pa.Table) -> Floats:
    """Times as numbers; seconds where they are timestamps."""
    times = table["t"].combine_chunks()
    if pa.types.is_timestamp(times.type):
        return np.asarray(times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())) / 1e6
    return np.asarray(times, dtype=np.float64)


def _near(
    groups: NDArray[np.int64], times: Floats, other_groups: NDArray[np.int64], other_times: Floats, within: float
) -> NDArray[np.bool_]:
    """Which of some instants have one of the others, of the same group, at most so far away."""
    if not len(other_times) or not len(times):
        return np.zeros(len(times), dtype=np.bool_)
    # The groups one after the other on a single line, too far apart to be near each other.
    first = min(times.min(), other_times.min())
    span = max(times.max(), other_times.max()) - first + 2 * within + 1
    line = np.sort(other_groups * span + (other_times - first))
    places = groups * span + (times - first)
    following = np.searchsorted(line, places - within)
    return (following < len(line)) & (line[np.minimum(following, len(line) - 1)] <= places + within)
