"""Approximates functions by piecewise polynomials: intervals between kinks are bisected until the error is small."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from anabranch.arrays import F64
from anabranch.sequence.kernel.tables import Pieces

Array = F64
Values = Callable[[Array], Array]

#: The error allowed in a piece, relative to the function.
TOLERANCE = 1e-11
#: The relative error allowed where the values of the function are themselves no more accurate.
_NOISE = 1e-7
#: The most pieces of a function.
MOST_PIECES = 2**20
#: The most sums of kinks, before duplicates are removed.
MOST_SUMS = 2**24

_DEGREE = 7
#: Chebyshev points on [0, 1]: the polynomial is fitted at the even ones and checked at the odd ones.
_POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(2 * _DEGREE + 1) / (2 * _DEGREE))
_POWERS = np.arange(_DEGREE + 1)
#: From values at the fitted points to the coefficients of y = 2z - 1, which is well conditioned; then to those of z.
_AROUND_MIDDLE = np.linalg.inv((2.0 * _POINTS[::2, None] - 1.0) ** _POWERS)
_FROM_LEFT = np.array([
    [math.comb(k, j) * 2.0**j * (-1.0) ** (k - j) if j <= k else 0.0 for k in _POWERS] for j in _POWERS
])  # fmt: skip
_CHECKED = (2.0 * _POINTS[1::2, None] - 1.0) ** _POWERS
#: From coefficients of z to Bernstein coefficients; the function lies between the smallest and the largest of them.
_BERNSTEIN = np.array([[math.comb(i, k) / math.comb(_DEGREE, k) for k in _POWERS] for i in _POWERS])
#: Where in an interval noise is measured.
_NOISE_POINTS = np.array([0.2, 0.4, 0.6, 0.8])
#: An interval that is not longer than this is not bisected further.
_SMALLEST = 1e-300


class TooManyPieces(Exception):
    """A function has too many pieces, or sums of kinks, to be tabulated."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def fitted(function: Values, knots: Array, last: float, floor: float, tolerance: float = TOLERANCE) -> Pieces:
    """Approximate a function between the first and the last knot; after the last knot it is the constant `last`.

    The error of a piece is at most `tolerance` times the function, or times `floor` if that is larger, plus rounding
    errors: those of the argument, and up to _NOISE those within the function.
    """
    low, high = knots[:-1], knots[1:]
    breaks, coefficients = [knots[-1:]], [np.array([[last] + [0.0] * _DEGREE])]
    count = 1
    while len(low):
        fit, error, size = interpolated(function, low, high)
        spread = np.abs(fit[:, 1:]).sum(axis=1)
        rounding = 2.0 * np.spacing(high) * spread / (high - low)
        tiny = high - low <= np.maximum(4.0 * np.spacing(high), _SMALLEST)
        good = (error <= tolerance * np.maximum(size, floor) + rounding) | tiny
        good[~good] = error[~good] <= np.minimum(
            8.0 * _noise(function, low[~good], high[~good]), _NOISE * np.maximum(size, floor)[~good]
        )
        breaks.append(low[good])
        coefficients.append(fit[good])
        low, high = low[~good], high[~good]
        count += int(good.sum())
        if count + len(low) > MOST_PIECES:
            raise TooManyPieces(count + len(low))
        middle = low + 0.5 * (high - low)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return _in_order(np.concatenate(breaks), np.concatenate(coefficients))


def interpolated(function: Values, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """The coefficients of a polynomial on each interval, its error, and the largest absolute value of the function."""
    x = low[:, None] + (high - low)[:, None] * _POINTS
    # The next piece begins at the end of the interval, perhaps with a jump.
    x[:, -1] = np.minimum(x[:, -1], np.nextafter(high, low))
    y = function(x.ravel()).reshape(x.shape)
    # For a constant function, the differences and the coefficients are exactly 0.
    rise = y - y[:, :1]
    around_middle = rise[:, ::2] @ _AROUND_MIDDLE.T
    error = np.abs(around_middle @ _CHECKED.T - rise[:, 1::2]).max(axis=1)
    coefficients = around_middle @ _FROM_LEFT.T
    coefficients[:, 0] = y[:, 0]
    return coefficients, error, np.abs(y).max(axis=1)


def _noise(function: Values, low: Array, high: Array) -> Array:
    """The noise of the function: how far its values at three adjacent numbers are from a line."""
    x = low[:, None] + (high - low)[:, None] * _NOISE_POINTS
    left, here, right = (function(at.ravel()) for at in (np.nextafter(x, 0.0), x, np.nextafter(x, np.inf)))
    noise: Array = np.abs(left - 2.0 * here + right).reshape(x.shape).max(axis=1)
    return noise


def _in_order(breaks: Array, coefficients: Array) -> Pieces:
    """Sort pieces by their breaks, and compute their scales."""
    order = np.argsort(breaks)
    breaks, coefficients = breaks[order], coefficients[order]
    scale = np.zeros(len(breaks))
    not_constant = np.flatnonzero(coefficients[:, 1:].any(axis=1))
    scale[not_constant] = 1.0 / (breaks[not_constant + 1] - breaks[not_constant])
    return Pieces(breaks, scale, coefficients)


def steps(breaks: Array, heights: Array) -> Pieces:
    """The step function that has a height from each break on."""
    return Pieces(breaks, np.zeros(len(breaks)), heights[:, None].copy())


def jumps(pieces: Pieces) -> tuple[Array, Array]:
    """The jumps of a step function: where, and by how much; its value at 0 counts as a jump."""
    by = np.diff(pieces.coefficients[:, 0], prepend=0.0)
    return pieces.breaks[by != 0.0], by[by != 0.0]


def sums(first: Array, second: Array, end: float) -> Array:
    """The distinct sums, up to `end`, of a number of the first array and one of the second."""
    distinct = np.unique(_all_sums(first, second))
    distinct = distinct[distinct <= end]
    if len(distinct) > MOST_PIECES:
        raise TooManyPieces(len(distinct))
    return distinct


def steps_of_sums(first: tuple[Array, Array], second: tuple[Array, Array], end: float) -> Pieces:
    """The step function with a jump at every sum of two jumps, up to `end`, by the product of both heights."""
    breaks, index = np.unique(_all_sums(first[0], second[0]), return_inverse=True)
    by = np.bincount(index.ravel(), np.multiply.outer(first[1], second[1]).ravel())
    breaks, by = breaks[breaks <= end], by[breaks <= end]
    if len(breaks) > MOST_PIECES:
        raise TooManyPieces(len(breaks))
    if len(breaks) == 0 or breaks[0] > 0.0:
        breaks, by = np.concatenate([[0.0], breaks]), np.concatenate([[0.0], by])
    return steps(breaks, np.cumsum(by))


def _all_sums(first: Array, second: Array) -> Array:
    """(first, second): the sum of each pair of numbers, rounded such that sum - first >= second."""
    if len(first) * len(second) > MOST_SUMS:
        raise TooManyPieces(len(first) * len(second))
    total = np.add.outer(first, second)
    # A delay that equals the rest of the gap has happened, so the difference must not be rounded below the delay.
    return np.where(total - first[:, None] < second, np.nextafter(total, np.inf), total)


def highest(pieces: Pieces) -> float:
    """A tight upper bound of the function."""
    if pieces.are_steps:
        return float(pieces.coefficients.max())
    return float((pieces.coefficients @ _BERNSTEIN.T).max())
