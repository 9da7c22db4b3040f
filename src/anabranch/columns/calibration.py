"""Calibration maps: from the probability of a model to the share of true answers, for CALIBRATED BY.

A map is monotone, and linear between its knots; before the first and after the last knot it is constant. Its file is a
CSV with a knot per line (`probability, calibrated`). `evaluation/learning.py` learns maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64
from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError

COLUMNS = ("probability", "calibrated")


@dataclass(frozen=True, slots=True)
class Piece:
    """A linear piece of a map: low + (p - start) * slope, and at most `high`."""

    start: float
    low: float
    slope: float
    high: float


@dataclass(frozen=True, slots=True)
class CalibrationMap:
    """A monotone map of probabilities.

    Attributes
    ----------
    knots : tuple of (probability, calibrated)
        The probabilities ascend strictly, and the calibrated ones do not descend; all are between 0 and 1.
    """

    knots: tuple[tuple[float, float], ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces from each knot to the next, and a constant one from the last knot on.

        A frame and an Arrow table evaluate them by the same operations in the same order, so that the results are equal
        to the last bit. `high` removes the rounding error at the end of a piece, which would not be monotone.
        """
        rising = (Piece(x, y, (to_y - y) / (to_x - x), to_y) for (x, y), (to_x, to_y) in pairwise(self.knots))
        last_x, last_y = self.knots[-1]
        return (*rising, Piece(last_x, last_y, 0.0, last_y))

    def apply(self, probabilities: F64) -> F64:
        """The calibrated probabilities; NaN stays NaN.

        Examples
        --------
        >>> CalibrationMap(((0.2, 0.1), (0.6, 0.5))).apply(np.array([0.0, 0.4, 0.9])).tolist()
        [0.1, 0.30000000000000004, 0.5]
        """
        start, low, slope, high = (
            np.array([getattr(piece, name) for piece in self.pieces]) for name in Piece.__dataclass_fields__
        )
        piece = np.maximum(np.searchsorted(start, probabilities, side="right") - 1, 0)
        # Before the first knot, p - start would be negative.
        distance = np.maximum(probabilities - start[piece], 0.0)
        result: F64 = np.minimum(low[piece] + distance * slope[piece], high[piece])
        return result

    def apply_to_column(self, probabilities: pa.ChunkedArray) -> pa.Array:
        """The calibrated probabilities of an Arrow column; NULL stays NULL."""
        values = self.apply(np.asarray(probabilities.to_numpy(), dtype=np.float64))
        return pa.array(values, mask=np.asarray(probabilities.is_null()))


def read_map(path: Path) -> CalibrationMap:
    """Read a map.

    Raises
    ------
    DataError
        One line with the file, the line and the reason.
    """
    knots: list[tuple[float, float]] = []
    for line, texts in read_rows(path, [{name} for name in COLUMNS]):
        knot = tuple(number_of(path, line, name, text) for name, text in zip(COLUMNS, texts, strict=True))
        for name, value in zip(COLUMNS, knot, strict=True):
            if not 0 <= value <= 1:
                raise DataError(f"{path}:{line}: {name} is {value:g}, but a probability is between 0 and 1")
        probability, calibrated = knot
        if knots and probability <= knots[-1][0]:
            raise DataError(
                f"{path}:{line}: probability {probability:g} is not above that of the line before; sort them"
            )
        if knots and calibrated < knots[-1][1]:
            raise DataError(
                f"{path}:{line}: calibrated {calibrated:g} is below that of the line before; it cannot fall"
            )
        knots.append((probability, calibrated))
    return CalibrationMap(tuple(knots))


def write_map(calibration: CalibrationMap, path: Path) -> None:
    """Write a map for `read_map`."""
    write_rows(path, COLUMNS, calibration.knots)
