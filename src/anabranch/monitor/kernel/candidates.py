"""Candidate pairs of predictions: boxes of time and values that intersect, found with a grid.

A box is (low, high) along each of a few axes; the first axis is time. Two predictions are candidates if their boxes
intersect. A box is stored in every cell that it touches, under a hash of the cell. A pair is reported only in the cell
of the lowest corner of its intersection, so that it is reported once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted

#: A box is stored in at most about this many cells along an axis; cells are large enough for that.
_MOST_CELLS = 64

LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL = range(6)


@compiled_inline
def _mixed_hash(h: np.uint64, c: int) -> np.uint64:
    h = (h ^ np.uint64(c)) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(27))


@compiled
def cell_sizes(first_low: F64, first_high: F64, second_low: F64, second_high: F64) -> F64:
    """The width of a cell along each axis: twice the mean width of a box, but not too narrow for the widest box."""
    axes = first_low.shape[1]
    sizes = np.empty(axes)
    for axis in range(axes):
        total, count, widest = 0.0, 0, 0.0
        for low, high in ((first_low, first_high), (second_low, second_high)):
            for k in range(len(low)):
                width = high[k, axis] - low[k, axis]
                if width < np.inf:
                    total += width
                    count += 1
                    widest = max(widest, width)
        mean = total / count if count else 0.0
        sizes[axis] = max(2.0 * mean, widest / _MOST_CELLS)
        if sizes[axis] == 0.0:
            sizes[axis] = 1.0
    return sizes


@compiled_inline
def _cell(x: float, size: float) -> int:
    return int(np.floor(min(max(x / size, -4e18), 4e18)))


@compiled
def index_boxes(low: F64, high: F64, sizes: F64) -> tuple[I64, I64, U64]:
    """A hash table of boxes by cell: the index of each slot's first entry, and the box and the hash of each entry."""
    n, axes = low.shape
    count = 0
    for k in range(n):
        cells = 1
        for axis in range(axes):
            cells *= _cell(high[k, axis], sizes[axis]) - _cell(low[k, axis], sizes[axis]) + 1
        count += cells
    n_slots = 1
    while n_slots < count:
        n_slots *= 2
    boxes, hashes = np.empty(count, np.int64), np.empty(count, np.uint64)
    cell = np.empty(axes, np.int64)
    count = 0
    for k in range(n):
        for axis in range(axes):
            cell[axis] = _cell(low[k, axis], sizes[axis])
        while True:
            h = np.uint64(0)
            for axis in range(axes):
                h = _mixed_hash(h, cell[axis])
            boxes[count], hashes[count] = k, h
            count += 1
            if not _next_cell(cell, low, high, k, sizes):
                break
    slots = np.zeros(n_slots + 1, np.int64)
    mask = np.uint64(n_slots - 1)
    for k in range(count):
        slots[np.int64(hashes[k] & mask) + 1] += 1
    for k in range(n_slots):
        slots[k + 1] += slots[k]
    fill = slots[:-1].copy()
    sorted_boxes, sorted_hashes = np.empty_like(boxes), np.empty_like(hashes)
    for k in range(count):
        slot = np.int64(hashes[k] & mask)
        sorted_boxes[fill[slot]], sorted_hashes[fill[slot]] = boxes[k], hashes[k]
        fill[slot] += 1
    return slots, sorted_boxes, sorted_hashes


@compiled_uncounted
def _next_cell(cell: I64, low: F64, high: F64, k: int, sizes: F64) -> bool:
    """Move `cell` to the next cell that a box touches; returns False if there is none."""
    for axis in range(len(cell)):
        if cell[axis] < _cell(high[k, axis], sizes[axis]):
            cell[axis] += 1
            return True
        cell[axis] = _cell(low[k, axis], sizes[axis])
    return False


@compiled_uncounted
def _keys_agree(i: int, j: int, first_ranks: I64, second_ranks: I64, operators: I64) -> bool:
    """Whether the keys of two predictions satisfy all comparisons of the query; a rank below 0 is NULL."""
    for k in range(len(operators)):
        left, right = first_ranks[k, i], second_ranks[k, j]
        if left < 0 or right < 0:
            return False
        op = operators[k]
        if op == LESS:
            holds = left < right
        elif op == AT_MOST:
            holds = left <= right
        elif op == MORE:
            holds = left > right
        elif op == AT_LEAST:
            holds = left >= right
        elif op == EQUAL:
            holds = left == right
        else:
            holds = left != right
        if not holds:
            return False
    return True


class Keys(NamedTuple):
    """The comparisons of the keys of two predictions.

    Attributes
    ----------
    first_ranks, second_ranks : (comparisons, n) the ranks of the compared key columns
    operators : LESS to UNEQUAL, for each comparison
    first_part, second_part : the part of each key
    different_parts : whether the two keys must be in different parts
    """

    first_ranks: I64
    second_ranks: I64
    operators: I64
    first_part: I32
    second_part: I32
    different_parts: bool


class Grid(NamedTuple):
    """The boxes of the second predictions, and their hash table (`index_boxes`)."""

    low: F64
    high: F64
    sizes: F64
    slots: I64
    boxes: I64
    hashes: U64


@compiled
def intersecting_pairs(begin: int, most: int, low: F64, high: F64, grid: Grid, keys: Keys) -> tuple[I64, int]:
    """The pairs of a first and a second box that intersect, from the first box `begin` on until there are about `most`.

    Returns
    -------
    pairs (n, 2), and the number of the first box with which to continue
    """
    pairs = np.empty((1024, 2), np.int64)
    n, axes = low.shape
    cell = np.empty(axes, np.int64)
    mask = np.uint64(len(grid.slots) - 2)
    count, k = 0, begin
    while k < n and count < most:
        for axis in range(axes):
            cell[axis] = _cell(low[k, axis], grid.sizes[axis])
        while True:
            h = np.uint64(0)
            for axis in range(axes):
                h = _mixed_hash(h, cell[axis])
            slot = np.int64(h & mask)
            for entry in range(grid.slots[slot], grid.slots[slot + 1]):
                other = grid.boxes[entry]
                if grid.hashes[entry] != h or (keys.different_parts and keys.first_part[k] == keys.second_part[other]):
                    continue
                meets = True
                for axis in range(axes - 1, -1, -1):  # most boxes have a time in common
                    if low[k, axis] > grid.high[other, axis] or grid.low[other, axis] > high[k, axis]:
                        meets = False
                        break
                for axis in range(axes if meets else 0):
                    meets &= _cell(max(low[k, axis], grid.low[other, axis]), grid.sizes[axis]) == cell[axis]
                if meets and _keys_agree(k, other, keys.first_ranks, keys.second_ranks, keys.operators):
                    if count == len(pairs):
                        larger = np.empty((2 * count, 2), np.int64)
                        assign(larger, pairs)
                        pairs = larger
                    pairs[count, 0], pairs[count, 1] = k, other
                    count += 1
            if not _next_cell(cell, low, high, k, grid.sizes):
                break
        k += 1
    return pairs[:count], k
