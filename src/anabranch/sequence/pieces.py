"""Functions turned into pieces of polynomials: between two kinks, halved until they fit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from anabranch.arrays import F64
from anabranch.sequence.kernel.tables import Pieces

Array = F64
Values = Callable[[Array], Array]

#: What a piece may be wrong by, of the size of the function there.
TOLERANCE = 1e-11
#: What it may be where the function itself is no better known.
_NOISE = 1e-7
#: A function of more pieces is refused.
MOST_PIECES = 2**20
#: So are more sums than this, before equal ones are counted once.
MOST_SUMS = 2**24

_DEGREE = 7
#: Chebyshev's points on [0, 1]: the even ones are fitted, the odd ones checked.
_POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(2 * _DEGREE + 1) / (2 * _DEGREE))
_POWERS = np.arange(_DEGREE + 1)
#: From values at the fitted points to the coefficients of y = 2z - 1, which is well conditioned, and on to those of z.
_AROUND_MIDDLE = np.linalg.inv((2.0 * _POINTS[::2, None] - 1.0) ** _POWERS)
_FROM_LEFT = np.array([
    [math.comb(k, j) * 2.0**j * (-1.0) ** (k - j) if j <= k else 0.0 for k in _POWERS] for j in _POWERS
])  # fmt: skip
_CHECKED = (2.0 * _POINTS[1::2, None] - 1.0) ** _POWERS
#: From coefficients of z to those of Bernstein's polynomials, between whose smallest and largest the function lies.
_BERNSTEIN = np.array([[math.comb(i, k) / math.comb(_DEGREE, k) for k in _POWERS] for i in _POWERS])
#: Where noise is listened to.
_LISTENED = np.array([0.2, 0.4, 0.6, 0.8])
#: Where 0 ends: to bisect further towards it leads nowhere.
_SMALLEST = 1e-300


class TooManyPieces(Exception):
    """A function would have so many pieces, or sums of kinks, that it is not tabulated."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def fitted(function: Values, knots: Array, last: float, floor: float) -> Pieces:
    """The function between the first and the last of the knots, and `last` from there on.

    A piece may be wrong by TOLERANCE times the function, or `floor` where that is larger, and by what rounding does: of
    its argument, or, up to _NOISE, within the function.
    """
    low, high = knots[:-1], knots[1:]
    breaks, coefficients = [knots[-1:]], [np.array([[last] + [0.0] * _DEGREE])]
    count = 1
    while len(low):
        found, error, size = interpolated(function, low, high)
        spread = np.abs(found[:, 1:]).sum(axis=1)
        rounding = 2.0 * np.spacing(high) * spread / (high - low)
        tiny = high - low <= np.maximum(4.0 * np.spacing(high), _SMALLEST)
        good = (error <= TOLERANCE * np.maximum(size, floor) + rounding) | tiny
        good[~good] = error[~good] <= np.minimum(
            8.0 * _noise(function, low[~good], high[~good]), _NOISE * np.maximum(size, floor)[~good]
        )
        breaks.append(low[good])
        coefficients.append(found[good])
        low, high = low[~good], high[~good]
        count += int(good.sum())
        if count + len(low) > MOST_PIECES:
            raise TooManyPieces(count + len(low))
        middle = low + 0.5 * (high - low)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return _in_order(np.concatenate(breaks), np.concatenate(coefficients))


def interpolated(function: Values, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """The coefficients of a polynomial on each interval, its error at the checked points, the function's size there."""
    x = low[:, None] + (high - low)[:, None] * _POINTS
    # At the end the next piece begins, perhaps with a jump.
    x[:, -1] = np.minimum(x[:, -1], np.nextafter(high, low))
    y = function(x.ravel()).reshape(x.shape)
    # What is left of a constant is exactly 0, and so are its coefficients.
    rise = y - y[:, :1]
    around_middle = rise[:, ::2] @ _AROUND_MIDDLE.T
    error = np.abs(around_middle @ _CHECKED.T - rise[:, 1::2]).max(axis=1)
    coefficients = around_middle @ _FROM_LEFT.T
    coefficients[:, 0] = y[:, 0]
    return coefficients, error, np.abs(y).max(axis=1)


def _noise(function: Values, low: Array, high: Array) -> Array:
    """What numbers next to each other are away from a line: nothing, but for rounding."""
    x = low[:, None] + (high - low)[:, None] * _LISTENED
    left, here, right = (function(at.ravel()) for at in (np.nextafter(x, 0.0), x, np.nextafter(x, np.inf)))
    found: Array = np.abs(left - 2.0 * here + right).reshape(x.shape).max(axis=1)
    return found


def _in_order(breaks: Array, coefficients: Array) -> Pieces:
    order = np.argsort(breaks)
    breaks, coefficients = breaks[order], coefficients[order]
    scale = np.zeros(len(breaks))
    bent = np.flatnonzero(coefficients[:, 1:].any(axis=1))
    scale[bent] = 1.0 / (breaks[bent + 1] - breaks[bent])
    return Pieces(breaks, scale, coefficients)


def steps(breaks: Array, heights: Array) -> Pieces:
    """The function that goes to a height at each break."""
    return Pieces(breaks, np.zeros(len(breaks)), heights[:, None].copy())


def jumps(pieces: Pieces) -> tuple[Array, Array]:
    """Where steps jump, and by how much; what they are at 0 is a jump there."""
    by = np.diff(pieces.coefficients[:, 0], prepend=0.0)
    return pieces.breaks[by != 0.0], by[by != 0.0]


def sums(first: Array, second: Array, end: float) -> Array:
    """Every sum of one of each, up to `end`, each once."""
    found = np.unique(_all_sums(first, second))
    found = found[found <= end]
    if len(found) > MOST_PIECES:
        raise TooManyPieces(len(found))
    return found


def steps_of_sums(first: tuple[Array, Array], second: tuple[Array, Array], end: float) -> Pieces:
    """The steps that jump at every sum of one of each, up to `end`, by the product of both jumps."""
    found, which = np.unique(_all_sums(first[0], second[0]), return_inverse=True)
    by = np.bincount(which.ravel(), np.multiply.outer(first[1], second[1]).ravel())
    found, by = found[found <= end], by[found <= end]
    if len(found) > MOST_PIECES:
        raise TooManyPieces(len(found))
    if len(found) == 0 or found[0] > 0.0:
        found, by = np.concatenate([[0.0], found]), np.concatenate([[0.0], by])
    return steps(found, np.cumsum(by))


def _all_sums(first: Array, second: Array) -> Array:
    if len(first) * len(second) > MOST_SUMS:
        raise TooManyPieces(len(first) * len(second))
    found = np.add.outer(first, second)
    # A delay that equals the rest of the gap has happened: the sum is the first number that leaves so much.
    return np.where(found - first[:, None] < second, np.nextafter(found, np.inf), found)


def highest(pieces: Pieces) -> float:
    """A number that the function does not exceed, and hardly less than that."""
    if pieces.are_steps:
        return float(pieces.coefficients.max())
    return float((pieces.coefficients @ _BERNSTEIN.T).max())
