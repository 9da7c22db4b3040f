"""Piecewise polynomials of the length of a gap: lookup, shift and convolution.

A piece reaches from its break to the next break, the last one to infinity. It is a polynomial of `(x - break) * scale`,
which goes from 0 to 1. At its break, a function is exactly its first coefficient. If the scale is 0, the whole piece is
that constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline

Array = F64

#: The bucket of a number is its exponent and the first 6 bits of its fraction: 64 buckets from a number to its double.
_SHIFT = 46
_MOST_BUCKETS = 4096


class Pieces(NamedTuple):
    """One function; `coefficients` has one row per piece, with the constant coefficient first.

    A row has 8 coefficients, or 1 if all pieces are constants (a step function).
    """

    breaks: Array
    scale: Array
    coefficients: Array

    @property
    def are_steps(self) -> bool:
        """Whether every piece is a constant."""
        return self.coefficients.shape[1] == 1

    def at(self, x: Array) -> Array:
        """The values of the function at `x`."""
        y: Array = values(self, x)
        return y


class Table(NamedTuple):
    """The score of a kind of gap as a function of its length, from 0 to the longest possible gap.

    `rising` means that it never falls, `falling` that it never rises; no score is above `highest`.
    """

    pieces: Pieces
    rising: bool
    falling: bool
    highest: float

    def at(self, gaps: Array) -> Array:
        """The scores of gaps of these lengths."""
        return np.clip(self.pieces.at(gaps), 0.0, 1.0)


class Tables(NamedTuple):
    """All tables of a query, concatenated.

    The pieces of table k are those from `first[k]` to `first[k + 1]`. Its coefficients start at `offset[k]`, and each
    piece has `width[k]` of them. Bucket b of table k holds the gaps whose leading bits are `lowest[k]` + b; the
    smallest of these gaps is in the piece `guide[bucket[k] + b]`.
    """

    first: I64
    offset: I64
    width: I64
    bucket: I64
    lowest: I64
    guide: I64
    breaks: Array
    scale: Array
    coefficients: Array


def joined(tables: Sequence[Table]) -> Tables:
    """Concatenate the tables of a query; a table is then identified by its number."""
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
    """The leading bits of the first bucket, and the piece at the start of each bucket.

    The first bucket is that of the first break after 0.
    """
    if len(breaks) == 1:
        return 0, np.zeros(2, dtype=np.int64)
    low, high = breaks[[1, -1]].view(np.int64) >> _SHIFT
    low = max(low, high - _MOST_BUCKETS)
    edges = (np.arange(low, high + 2, dtype=np.int64) << _SHIFT).view(np.float64)
    guide = np.searchsorted(breaks, edges, side="right") - 1
    # Shorter gaps are in the first bucket too.
    guide[0] = 0
    return int(low), guide


@compiled_inline
def score(tables: Tables, number: int, gap: float) -> float:
    """The score of a gap of a length of 0 or more, by the table with this number."""
    # The bits of positive numbers sort like the numbers: the leading bits give a bucket with few pieces to search.
    start, end = tables.bucket[number], tables.bucket[number + 1] - 2
    near = start + (np.float64(gap).view(np.int64) >> _SHIFT) - tables.lowest[number]
    near = min(max(near, start), end)
    piece = piece_at(tables.breaks, tables.guide[near], tables.guide[near + 1] + 1, gap)
    width = tables.width[number]
    k = tables.offset[number] + (piece - tables.first[number]) * width
    c = tables.coefficients
    if width == 1:
        return min(1.0, max(0.0, c[k]))
    # Two halves, which a processor computes in parallel; in Horner's rule each step waits for the one before.
    z = (gap - tables.breaks[piece]) * tables.scale[piece]
    square = z * z
    low = (c[k] + c[k + 1] * z) + (c[k + 2] + c[k + 3] * z) * square
    high = (c[k + 4] + c[k + 5] * z) + (c[k + 6] + c[k + 7] * z) * square
    return min(1.0, max(0.0, low + high * (square * square)))


@compiled_inline
def piece_at(breaks: Array, first: int, last: int, x: float) -> int:
    """The last piece in [first, last) whose break is at most `x`; `first` if there is none."""
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
    y = pieces.coefficients[piece, width - 1]
    for k in range(width - 2, -1, -1):
        y = y * z + pieces.coefficients[piece, k]
    return y


@compiled
def values(pieces: Pieces, x: Array) -> Array:
    """The values of the function at `x`."""
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = value(pieces, piece_at(pieces.breaks, 0, len(pieces.breaks), x[i]), x[i])
    return y


@compiled
def shifted(atoms: Array, weights: Array, pieces: Pieces, x: Array) -> Array:
    """The convolution with ascending atoms: the sum of weight times f(x - atom) over the atoms up to `x`."""
    y = np.zeros(len(x))
    for i in range(len(x)):
        for k in range(len(atoms)):
            rest = x[i] - atoms[k]
            if rest < 0.0:
                break
            y[i] += weights[k] * value(pieces, piece_at(pieces.breaks, 0, len(pieces.breaks), rest), rest)
    return y


@compiled
def convolved(ends: Array, density: Array, pieces: Pieces, nodes: Array, weights: Array, x: Array) -> Array:
    """The convolution with a density: the integral of density(s) f(x - s) over s from 0 to `x`, for f of `pieces`.

    The density consists of polynomials too: row i is a polynomial of (s - ends[i]) / (ends[i + 1] - ends[i]),
    multiplied by that length. Between two ends of either function both are polynomials, and there are enough
    Gauss-Legendre `nodes` and `weights` (for integrals from 0 to 1) to be exact.
    """
    y = np.zeros(len(x))
    for i in range(len(x)):
        s, row = ends[0], 0
        piece = piece_at(pieces.breaks, 0, len(pieces.breaks), x[i] - s)
        while s < x[i] and row < len(density):
            cut = x[i] - pieces.breaks[piece]
            end = min(cut, ends[row + 1])
            if end > s:
                y[i] += _integral(s, end, ends, density, row, pieces, piece, x[i], nodes, weights)
                s = end
            if cut > ends[row + 1]:
                row += 1
            elif piece > 0:
                piece -= 1
            else:
                break
    return y


@compiled_inline
def _integral(
    low: float, high: float, ends: Array, density: Array, row: int, pieces: Pieces, piece: int, x: float,
    nodes: Array, weights: Array,
) -> float:  # fmt: skip
    """The part of a convolution over which one row of the density and one piece of the function apply."""
    length = ends[row + 1] - ends[row]
    begin, span = (low - ends[row]) / length, (high - low) / length
    width = density.shape[1]
    total = 0.0
    for k in range(len(nodes)):
        # Not computed from s: its rounding error is large if a row is narrow and far from 0.
        z = begin + span * nodes[k]
        dense = density[row, width - 1]
        for power in range(width - 2, -1, -1):
            dense = dense * z + density[row, power]
        total += weights[k] * dense * value(pieces, piece, x - (low + (high - low) * nodes[k]))
    return total * span
