"""Cells of a grid in space, and the cells around each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anabranch.constrain.kernel.checks import F64, I64

#: Cells are numbered by three whole numbers of so many bits; places further out share the outermost cells.
_BITS = 20
_MOST = (1 << _BITS) - 2


def cells_of(at: F64, width: float) -> tuple[I64, I64, I64]:
    """Put places into cells of a width.

    Returns
    -------
    The number of each place's cell, the numbers of the cells around each cell (itself among them), and where these
    begin. What has no place is in a cell of its own, which is near none.
    """
    known = ~np.isnan(at).any(axis=1)
    whole = np.floor(at[known] / width)
    middle = np.floor(np.median(whole, axis=0)) if len(whole) else np.zeros(3)
    # Places beyond the numbers are pressed into the outermost cells, which keeps neighbours neighbours.
    numbers = np.clip(whole - middle + _MOST // 2, 1, _MOST).astype(np.int64)
    codes, cell = np.unique(_code(numbers), return_inverse=True)
    cell_of = np.full(len(at), len(codes), np.int64)
    cell_of[known] = cell
    near, first = _around(codes)
    return cell_of, near, np.append(first, first[-1])


def _code(numbers: I64) -> I64:
    return (numbers[:, 0] << (2 * _BITS)) | (numbers[:, 1] << _BITS) | numbers[:, 2]


def _around(codes: I64) -> tuple[I64, I64]:
    """The cells that are there around each of some cells, given by their sorted codes."""
    steps = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])
    offsets = steps[:, 0] * (1 << (2 * _BITS)) + steps[:, 1] * (1 << _BITS) + steps[:, 2]
    wanted = codes[:, None] + offsets
    place = np.minimum(np.searchsorted(codes, wanted), max(len(codes) - 1, 0))
    there: npt.NDArray[np.bool_] = codes[place] == wanted if len(codes) else np.zeros(wanted.shape, np.bool_)
    first = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(there.sum(axis=1), out=first[1:])
    return place[there], first
