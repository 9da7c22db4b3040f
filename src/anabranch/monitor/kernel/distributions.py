"""The distributions of errors: uniform on [-e, e], or normal with standard deviation `s`, truncated to [-e, e].

`s` is 0 for uniform. All distributions are symmetric around 0; e = 0 means that the value is exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled, compiled_inline, compiled_uncounted

_ROOT_2 = math.sqrt(2.0)
#: Start values of counters. Numba has a separate type for literals, and would compile the functions that get one twice.
ZERO: Any = np.int64(0)
NONE: Any = np.int64(-1)
#: Gauss-Legendre: with 8 points, polynomials up to degree 15 are integrated exactly.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
#: With 3 points, polynomials up to degree 5: enough for the pieces of four uniform errors.
FEW_NODES, FEW_WEIGHTS = np.polynomial.legendre.leggauss(3)
#: Where a normal distribution is cut so that 8 points suffice for each part, in standard deviations from its mean.
CUTS = np.array([-8.0, -5.0, -2.0, 0.0, 2.0, 5.0, 8.0])


@compiled_inline
def density(x: float, e: float, s: float) -> float:
    """The density of an error at `x`, which is within [-e, e]."""
    if s == 0.0:
        return 0.5 / e
    z = x / s
    return math.exp(-0.5 * z * z) / (s * math.sqrt(2.0 * math.pi) * math.erf(e / (s * _ROOT_2)))


@compiled_inline
def at_most(x: float, e: float, s: float) -> float:
    """The probability that an error is at most `x`."""
    if x >= e:
        return 1.0
    if x <= -e:
        return 0.0
    if s == 0.0:
        return 0.5 * (x + e) / e
    return 0.5 * (1.0 + math.erf(x / (s * _ROOT_2)) / math.erf(e / (s * _ROOT_2)))


@compiled_uncounted
def difference(z: float, e1: float, s1: float, e2: float, s2: float) -> tuple[float, float]:
    """The probability that the difference of two independent errors is at most `z`, and the density at `z`.

    The density of the difference of two uniform errors is a trapezoid. With a normal error, the integral of one
    density times the other distribution function is summed over parts in which both are smooth.
    """
    if z >= e1 + e2:
        return 1.0, 0.0
    if z < -e1 - e2:
        return 0.0, 0.0
    if e2 == 0.0:
        return at_most(z, e1, s1), density(z, e1, s1)
    if e1 == 0.0:
        return at_most(z, e2, s2), density(z, e2, s2)
    if s1 > 0.0 or s2 > 0.0:
        return _convolved(z, e1, s1, e2, s2)
    wide, narrow = max(e1, e2), min(e1, e2)
    if abs(z) <= wide - narrow:
        return 0.5 + 0.5 * z / wide, 0.5 / wide
    left = wide + narrow - abs(z)
    tail = left * left / (8.0 * wide * narrow)
    return 1.0 - tail if z > 0.0 else tail, left / (4.0 * wide * narrow)


@compiled
def _convolved(z: float, e1: float, s1: float, e2: float, s2: float) -> tuple[float, float]:
    """The same if an error is normal: integrals of density(u) times the probability, and the density, of u - z."""
    cuts = np.empty(4 + 2 * len(CUTS))
    cuts[0], cuts[1], cuts[2], cuts[3] = -e1, e1, z - e2, z + e2
    n = ZERO + 4
    for k in range(len(CUTS)):
        if s1 > 0.0:
            cuts[n] = CUTS[k] * s1
            n += 1
        if s2 > 0.0:
            cuts[n] = z + CUTS[k] * s2
            n += 1
    cuts = sorted_few(cuts, n)
    below, dense = 0.0, 0.0
    for k in range(n - 1):
        low, high = max(cuts[k], -e1), min(cuts[k + 1], e1)
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        for node in range(len(NODES) if half > 0.0 else 0):
            u = middle + half * NODES[node]
            weight = half * WEIGHTS[node] * density(u, e1, s1)
            below += weight * (1.0 - at_most(u - z, e2, s2))
            dense += weight * density(u - z, e2, s2) if abs(u - z) <= e2 else 0.0
    return min(1.0, max(0.0, below)), dense


@compiled
def sum_of_errors(z: float, errors: F64, spreads: F64, n: int) -> tuple[float, float]:
    """The probability that the sum of the first `n` independent errors is at most `z`, and the density at `z`.

    With three or more, all are uniform and in ascending order. The last one is integrated over pieces in which the sum
    of the others has a polynomial; as the widest, it is no small difference of large numbers.
    """
    if n == 1:
        return at_most(z, errors[0], spreads[0]), density(z, errors[0], spreads[0]) if abs(z) <= errors[0] else 0.0
    if n == 2:
        return difference(z, errors[0], spreads[0], errors[1], spreads[1])
    last, below, others = errors[n - 1], 0.0, 0.0
    for k in range(n - 1):
        others += errors[k]
    if abs(z) >= others + last:
        return 1.0 if z > 0.0 else 0.0, 0.0
    dense = sum_of_errors(z + last, errors, spreads, n - 1)[0] - sum_of_errors(z - last, errors, spreads, n - 1)[0]
    cuts = sorted_few(signed_sums(errors, n - 1), 1 << (n - 1))
    for k in range(len(cuts)):  # from each cut to the next; above the last one, the others are at most this with 1
        start, end = max(cuts[k], z - last), min(cuts[k + 1] if k + 1 < len(cuts) else np.inf, z + last)
        half, middle = 0.5 * (end - start), 0.5 * (end + start)
        for node in range(len(FEW_NODES) if half > 0.0 else 0):
            at = middle + half * FEW_NODES[node]
            below += half * FEW_WEIGHTS[node] * sum_of_errors(at, errors, spreads, n - 1)[0]
    return min(1.0, 0.5 * below / last), 0.5 * dense / last


@compiled
def signed_sums(numbers: F64, n: int) -> F64:
    """The sums of the first `n` numbers, each with either sign."""
    sums = np.zeros(1 << n)
    for k in range(len(sums)):
        for j in range(n):
            sums[k] += numbers[j] if k >> j & 1 else -numbers[j]
    return sums


@compiled
def sorted_few(numbers: F64, n: int) -> F64:
    """The first `n` numbers in ascending order."""
    result = numbers[:n].copy()
    sort_few(result, n)
    return result


@compiled_inline
def sort_few(numbers: F64, n: int) -> None:
    """Sort the first `n` numbers, by insertion: fast for a few numbers, and quickly compiled."""
    for k in range(1, n):
        number, index = numbers[k], k
        while index > 0 and numbers[index - 1] > number:
            numbers[index] = numbers[index - 1]
            index -= 1
        numbers[index] = number
