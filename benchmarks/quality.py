"""The figures of one contestant: how good its answers are, and whether its probabilities are what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.show.quality import Bin, Quality, calibration, expected_error, qualities
from benchmarks.harness import Record

__all__ = ["Bin", "Quality", "calibration", "expected_error", "qualities", "records"]


def records(benchmark: str, workload: str, found: Sequence[Quality], bins: Sequence[Bin]) -> Iterator[Record]:
    """The figures of one contestant: the best F1, where it is, and how far off the probabilities are."""
    best = max(found, key=lambda each: each.f1)
    at = f"at threshold {best.threshold:g}"
    yield Record(benchmark, workload, f"best F1, {at}", best.f1, "share")
    yield Record(benchmark, workload, f"precision, {at}", best.precision, "share")
    yield Record(benchmark, workload, f"recall, {at}", best.recall, "share")
    yield Record(benchmark, workload, "expected calibration error", expected_error(bins), "probability")
