"""Functions of the length of a gap as pieces of polynomials: looked up, shifted, convolved.

A piece reaches from its break to the next, the last one to infinity, and is a polynomial of `(x - break) * scale`,
which goes from 0 to 1: at its break a function is exactly its first coefficient, and where the scale is 0 it is that
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline

Array = F64

#: Of the bits of a number, exponent and the first 6 of its fraction lead to a bucket: 64 from a number to its double.
_SHIFT = 46
_MOST_BUCKETS = 4096


class Pieces(NamedTuple):
    """One function; `coefficients` has a row for each piece, from the constant on.

    A row has 8 numbers, or 1 where all pieces are steps.
    """

    breaks: Array
    scale: Array
    coefficients: Array

    @property
    def are_steps(self) -> bool:
        """Whether every piece is a constant."""
        return self.coefficients.shape[1] == 1

    def at(self, x: Array) -> Array:
        """The function at many places."""
        found: Array = values(self, x)
        return found


class Table(NamedTuple):
    """The score of a kind of gap as a function of its length, from 0 to the longest that can be asked.

    `rising` and `falling` say that it never falls, never rises; no score is above `highest`.
    """

    pieces: Pieces
    rising: bool
    falling: bool
    highest: float

    def at(self, gaps: Array) -> Array:
        """The scores of gaps of these lengths."""
        return np.clip(self.pieces.at(gaps), 0.0, 1.0)


class Tables(NamedTuple):
    """All tables of a query, one after the other.

    The pieces of table k are those from `first[k]` to `first[k + 1]`; `place[k]` is where its coefficients begin, of
    which each piece has `width[k]`. Bucket b of table k holds the gaps whose leading bits are `lowest[k]` + b, and
    `guide[bucket[k] + b]` is the piece in which they begin.
    """

    first: I64
    place: I64
    width: I64
    bucket: I64
    lowest: I64
    guide: I64
    breaks: Array
    scale: Array
    coefficients: Array


def joined(tables: Sequence[Table]) -> Tables:
    """The tables of a query in one; each is then known by its number."""
    parts = [table.pieces for table in tables]
    first = _starts([len(part.breaks) for part in parts])
    guides = [_guide(part.breaks) for part in parts]
    none = np.empty(0)
    return Tables(
        first,
        _starts([part.coefficients.size for part in parts]),
        np.array([part.coefficients.shape[1] for part in parts], dtype=np.int64),
        _starts([len(guide) for _, guide in guides]),
        np.array([lowest for lowest, _ in guides], dtype=np.int64),
        np.concatenate([none.astype(np.int64), *(at + guide for at, (_, guide) in zip(first, guides, strict=False))]),
        np.concatenate([none, *(part.breaks for part in parts)]),
        np.concatenate([none, *(part.scale for part in parts)]),
        np.concatenate([none, *(part.coefficients.ravel() for part in parts)]),
    )


def _starts(lengths: Sequence[int]) -> I64:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _guide(breaks: Array) -> tuple[int, I64]:
    """The leading bits of the first break after 0, and the piece in which the gaps with these, the next, ... begin."""
    if len(breaks) == 1:
        return 0, np.zeros(2, dtype=np.int64)
    low, high = breaks[[1, -1]].view(np.int64) >> _SHIFT
    low = max(low, high - _MOST_BUCKETS)
    edges = (np.arange(low, high + 2, dtype=np.int64) << _SHIFT).view(np.float64)
    guide = np.searchsorted(breaks, edges, side="right") - 1
    # What is shorter is in the first bucket too.
    guide[0] = 0
    return int(low), guide


@compiled_inline
def score(tables: Tables, number: int, gap: float) -> float:
    """The score of a gap of this length, 0 or more, by one of the tables."""
    # The bits of positive numbers are in the order of the numbers: a few lead to where there is little to search.
    start, end = tables.bucket[number], tables.bucket[number + 1] - 2
    near = start + (np.float64(gap).view(np.int64) >> _SHIFT) - tables.lowest[number]
    near = min(max(near, start), end)
    piece = piece_at(tables.breaks, tables.guide[near], tables.guide[near + 1] + 1, gap)
    width = tables.width[number]
    k = tables.place[number] + (piece - tables.first[number]) * width
    c = tables.coefficients
    if width == 1:
        return min(1.0, max(0.0, c[k]))
    # By halves, which a processor computes side by side; Horner's rule is a chain.
    z = (gap - tables.breaks[piece]) * tables.scale[piece]
    square = z * z
    low = (c[k] + c[k + 1] * z) + (c[k + 2] + c[k + 3] * z) * square
    high = (c[k + 4] + c[k + 5] * z) + (c[k + 6] + c[k + 7] * z) * square
    return min(1.0, max(0.0, low + high * (square * square)))


@compiled_inline
def piece_at(breaks: Array, first: int, last: int, x: float) -> int:
    """The last of the pieces from `first` to before `last` whose break is at most `x`; the first if there is none."""
    piece, count = first, last - first
    while count > 1:
        half = count >> 1
        piece += half if breaks[piece + half] <= x else 0
        count -= half
    return piece


@compiled_inline
def value(pieces: Pieces, piece: int, x: float) -> float:
    """The polynomial of a piece at `x`."""
    z = (x - pieces.breaks[piece]) * pieces.scale[piece]
    width = pieces.coefficients.shape[1]
    found = pieces.coefficients[piece, width - 1]
    for k in range(width - 2, -1, -1):
        found = found * z + pieces.coefficients[piece, k]
    return found


@compiled
def values(pieces: Pieces, x: Array) -> Array:
    """The function at many places."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = value(pieces, piece_at(pieces.breaks, 0, len(pieces.breaks), x[i]), x[i])
    return found


@compiled
def shifted(atoms: Array, weights: Array, pieces: Pieces, x: Array) -> Array:
    """The convolution with atoms in rising order: the sum of weight times f(x - atom) over the atoms up to `x`."""
    found = np.zeros(len(x))
    for i in range(len(x)):
        for k in range(len(atoms)):
            rest = x[i] - atoms[k]
            if rest < 0.0:
                break
            found[i] += weights[k] * value(pieces, piece_at(pieces.breaks, 0, len(pieces.breaks), rest), rest)
    return found


@compiled
def convolved(ends: Array, density: Array, pieces: Pieces, nodes: Array, weights: Array, x: Array) -> Array:
    """The convolution with a density: the integral of density(s) f(x - s) over s from 0 to `x`, for f of `pieces`.

    The density is made of polynomials too: that of row i is of (s - ends[i]) / (ends[i + 1] - ends[i]), and already
    multiplied by that length. Between two ends of either function both are polynomials, and Gauss-Legendre's `nodes`
    and `weights` (for integrals from 0 to 1) are enough of them to be exact.
    """
    found = np.zeros(len(x))
    for i in range(len(x)):
        s, row = ends[0], 0
        piece = piece_at(pieces.breaks, 0, len(pieces.breaks), x[i] - s)
        while s < x[i] and row < len(density):
            cut = x[i] - pieces.breaks[piece]
            end = min(cut, ends[row + 1])
            if end > s:
                found[i] += _integral(s, end, ends, density, row, pieces, piece, x[i], nodes, weights)
                s = end
            if cut > ends[row + 1]:
                row += 1
            elif piece > 0:
                piece -= 1
            else:
                break
    return found


@compiled_inline
def _integral(
    low: float, high: float, ends: Array, density: Array, row: int, pieces: Pieces, piece: int, x: float,
    nodes: Array, weights: Array,
) -> float:  # fmt: skip
    """The part of a convolution in which one row of the density meets one piece of the function."""
    length = ends[row + 1] - ends[row]
    begin, span = (low - ends[row]) / length, (high - low) / length
    width = density.shape[1]
    total = 0.0
    for k in range(len(nodes)):
        # Not from s, whose rounding is much where a row is narrow and far from 0.
        z = begin + span * nodes[k]
        dense = density[row, width - 1]
        for power in range(width - 2, -1, -1):
            dense = dense * z + density[row, power]
        total += weights[k] * dense * value(pieces, piece, x - (low + (high - low) * nodes[k]))
    return total * span
