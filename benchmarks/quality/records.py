"""The records of one contestant: the quality of its answers, and the calibration of its probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.evaluation import Bin, Quality, expected_error
from benchmarks.harness import Record


def records(benchmark: str, workload: str, results: Sequence[Quality], bins: Sequence[Bin]) -> Iterator[Record]:
    """Yield the best F1 with its threshold, precision and recall, and the expected calibration error."""
    best = max(results, key=lambda quality: quality.f1)
    at = f"at threshold {best.threshold:g}"
    yield Record(benchmark, workload, f"best F1, {at}", best.f1, "share")
    yield Record(benchmark, workload, f"precision, {at}", best.precision, "share")
    yield Record(benchmark, workload, f"recall, {at}", best.recall, "share")
    yield Record(benchmark, workload, "expected calibration error", expected_error(bins), "probability")
