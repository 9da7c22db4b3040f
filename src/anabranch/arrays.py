"""Type aliases of NumPy arrays, named by element type and width, and constants of times."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
#: Integers or doubles, such as event times.
Numbers = npt.NDArray[Any]

#: Before all times: no watermark yet, and an unknown time.
BEGINNING = np.iinfo(np.int64).min
#: After all times: the unknown end of a window.
END = np.iinfo(np.int64).max

#: Times and durations that are DOUBLE are compared up to this share of the largest time, which is a few units in its
#: last place: 0.4 - 0.1 is slightly more than 0.3, although neither number was written so.
ROUNDING = 4 * float(np.finfo(np.float64).eps)
