"""The answers and the true events of the quality benchmark, and how the answers are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.evaluation import Bin, Quality, calibration, qualities

WITHIN, NARROW = 30.0, 5.0
"""How many seconds an answer and an event may be apart: the tolerance of Lahar, and a narrower one to compare."""

THRESHOLDS = (0.001, 0.002, 0.005, *(n / 100 for n in range(1, 51)))


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of all rounds, by (model, method, query), and the true events, by query; x is the tag."""

    answers: dict[tuple[str, str, str], pa.Table]
    truth: dict[str, pa.Table]

    def qualities(
        self, model: str, method: str, query: str, within: float = WITHIN, thresholds: Sequence[float] = THRESHOLDS
    ) -> list[Quality]:
        """Return the quality of a method at each threshold."""
        return qualities(self.answers[model, method, query], self.truth[query], "x", thresholds, within)

    def baseline(self, model: str, method: str, query: str, within: float = WITHIN) -> Quality:
        """Return the quality of a deterministic method, whose answers have probability 1."""
        (quality,) = self.qualities(model, method, query, within, [0.5])
        return quality

    def runs_as_one(self, model: str, method: str, query: str, within: float) -> list[Quality]:
        """Return the quality of a method at each threshold if only the first of consecutive detections counts."""
        table = self.answers[model, method, query]
        return [
            quality
            for threshold in THRESHOLDS
            for quality in qualities(run_starts(table, threshold), self.truth[query], "x", [threshold], within)
        ]

    def calibration(self, model: str, query: str, within: float) -> list[Bin]:
        """Return the calibration of SMOOTH."""
        return calibration(self.answers[model, "SMOOTH", query], self.truth[query], "x", within=within)


def run_starts(answers: pa.Table, threshold: float) -> pa.Table:
    """Return the answers above a threshold whose group has no such answer at the previous instant."""
    above = answers.filter(pc.greater(answers["probability"], threshold)).sort_by(
        [("x", "ascending"), ("t", "ascending")]
    )
    group = above["x"].combine_chunks().dictionary_encode().indices.to_numpy()
    t = above["t"].to_numpy()
    follows = (group[1:] == group[:-1]) & (t[1:] == t[:-1] + 1)
    return above.filter(pa.array(np.concatenate([[True] * (len(t) > 0), ~follows]), pa.bool_()))


def beats(quality: Quality, baseline: Quality) -> bool:
    """Return whether neither precision nor recall is worse than the baseline's, and one of them is better."""
    pairs = ((quality.precision, baseline.precision), (quality.recall, baseline.recall))
    return all(value >= other for value, other in pairs) and any(value > other for value, other in pairs)


def longest_range(results: Sequence[Quality], holds: Callable[[Quality], bool]) -> tuple[float, float] | None:
    """Return the first and last threshold of the longest run of thresholds at which a condition holds."""
    runs = [[quality.threshold for quality in run] for is_true, run in groupby(results, key=holds) if is_true]
    longest = max(runs, key=len, default=[])
    return (longest[0], longest[-1]) if longest else None
