"""The smoothed density of observed delays: a kernel density on the logarithmic scale.

Each delay is replaced by a log-normal kernel. Its width is the distance to the k-th nearest other delay, on the
logarithmic scale: narrow where there are many delays, wide where there are few. It is at least 0.2 %, and a part of the
resolution of the clock, so that equal delays do not become infinitely probable. One more kernel is as wide as all
delays together: a delay that is far from all others is improbable, not impossible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64

#: The narrowest kernel, and the part of the resolution of the clock that a kernel has at least.
NARROWEST, OF_RESOLUTION = 0.002, 0.3
#: The widest kernel of a delay, and the narrowest of all delays together.
WIDEST = 1.0
#: The most kernels; of more delays, neighbours are merged.
MOST_KERNELS = 512


class Kernels(NamedTuple):
    """A mixture of log-normal distributions: the logarithm of the median, the width and the weight of each."""

    centres: F64
    widths: F64
    weights: F64

    def density(self, x: F64) -> F64:
        """The density at delays above 0."""
        total = np.empty(len(x))
        for start in range(0, len(x), 4096):
            y = np.log(x[start : start + 4096])
            z = (y[:, None] - self.centres) / self.widths
            total[start : start + 4096] = np.exp(-0.5 * z * z) @ (self.weights / self.widths)
        return total / (np.sqrt(2.0 * np.pi) * x)


def kernels_of(delays: F64) -> Kernels:
    """The kernels of observed delays, which are above 0.

    Examples
    --------
    >>> kernels_of(np.array([60.0, 60.0, 60.0, 61.0])).density(np.array([60.0, 61.0, 75.0])).round(4).tolist()
    [0.2915, 0.2244, 0.001]
    """
    ordered = np.sort(delays)
    logs, n = np.log(ordered), len(ordered)
    spacing = np.diff(np.unique(ordered))
    resolution = spacing.min() if len(spacing) else 0.0
    widths = np.maximum(
        _to_neighbours(logs, neighbours(n)), np.maximum(NARROWEST, OF_RESOLUTION * resolution / ordered)
    )
    groups = np.array_split(np.arange(n), min(n, MOST_KERNELS))
    starts = np.array([group[0] for group in groups])
    sizes = np.diff(np.append(starts, n))
    centres = np.add.reduceat(logs, starts) / sizes
    spread = np.add.reduceat(logs * logs + widths * widths, starts) / sizes - centres * centres
    everywhere = max(2.0 * float(logs.std()), WIDEST)
    return Kernels(
        np.append(centres, logs.mean()),
        np.append(np.sqrt(np.maximum(spread, NARROWEST**2)), everywhere),
        np.append(sizes, 1.0) / (n + 1.0),
    )


def neighbours(n: int) -> int:
    """How many neighbours a kernel of n delays reaches."""
    return max(3, int(0.5 * np.sqrt(n)))


def _to_neighbours(logs: F64, k: int) -> F64:
    """The distance of each of the ascending numbers to its k-th nearest other number, at most WIDEST."""
    n = len(logs)
    if n <= k:
        return np.full(n, WIDEST)
    # The k nearest others and the number itself are k + 1 numbers in a row; the shortest such row decides.
    distance = np.full(n, np.inf)
    for before in range(k + 1):
        first, last = before, n - (k - before)
        reach = np.maximum(logs[first:last] - logs[: last - first], logs[k:][: last - first] - logs[first:last])
        distance[first:last] = np.minimum(distance[first:last], reach)
    return np.minimum(distance, WIDEST)
