"""How the time grows with one dimension of the input: a curve, and the exponent that fits it.

A part `growth` of a family varies one dimension at a time. The exponent is the slope of a line through the logarithms
of the sizes and times: 1 if the time is proportional to the size, 2 if it is quadratic, 0 if it does not depend on it.
The fixed cost of a call makes the exponent smaller where the smallest sizes are very small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks.harness import Record, Recorder, processor_seconds

_POINT = re.compile(r"(?P<dimension>.+): (?P<size>[\d,]+(\.\d+)?)")

EXPONENT = "exponent"
"""The unit of an exponent, and the end of its metric."""


def exponent(seconds: Mapping[float, float]) -> float:
    """Return the exponent of the power of the size that fits the times best.

    >>> round(exponent({1: 0.5, 2: 2.0, 4: 8.0}), 9)
    2.0
    """
    slope, _ = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)
    return float(slope)


def curve(
    record: Recorder, dimension: str, runs: Mapping[float, Callable[[], object]], rounds: int
) -> Iterator[Record]:
    """Time runs by their size in one dimension, in processor time; yield the times and the exponent."""
    yield from curve_records(record, dimension, processor_seconds(runs, rounds, warm_up=True))


def curve_records(record: Recorder, dimension: str, seconds: Mapping[float, float]) -> Iterator[Record]:
    """Yield the time of each size, and the exponent."""
    first = next(iter(seconds))
    for size, time in seconds.items():
        yield record(f"{dimension}: {size:,}", time, "s", f"{dimension}: {first:,}", time / seconds[first])
    yield record(f"{dimension}: {EXPONENT}", exponent(seconds), EXPONENT)


def points(metrics: Mapping[str, float]) -> dict[str, dict[float, float]]:
    """Return the curves of metrics by dimension: the time of each size; other metrics are left out.

    >>> points({"rows: 1,000": 0.5, "rows: 2,000": 1.0, "rows: exponent": 1.0, "answers, in all": 7.0})
    {'rows': {1000.0: 0.5, 2000.0: 1.0}}
    """
    curves: dict[str, dict[float, float]] = {}
    for metric, value in metrics.items():
        if match := _POINT.fullmatch(metric):
            curves.setdefault(match["dimension"], {})[float(match["size"].replace(",", ""))] = value
    return curves
