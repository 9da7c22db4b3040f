"""The rule for thresholds of probabilities, which all kinds of query and all layers share."""

from __future__ import annotations

#: A probability that is below a threshold by this share, or less, reaches it.
_ROUNDING = 1e-12


def least_reaching(threshold: float) -> float:
    """Return the least probability that reaches a threshold.

    A threshold includes itself. Probabilities are sums and products of rounded numbers: 0.7 + 0.1 is slightly less than
    0.8, and must reach a threshold of 0.8.

    Examples
    --------
    >>> 0.7 + 0.1 >= least_reaching(0.8)
    True
    """
    return threshold * (1 - _ROUNDING)
