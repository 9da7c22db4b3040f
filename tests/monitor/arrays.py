"""Input of the kernels of MONITOR."""

from __future__ import annotations

import numpy as np

from anabranch.monitor.kernel.shapes import Shapes


def no_shapes() -> Shapes:
    """The areas of a query without any."""
    pairs, flags = np.zeros((0, 2)), np.zeros(0, np.bool_)
    return Shapes(
        pairs.astype(np.int64), pairs, pairs, pairs.astype(np.bool_), np.zeros(1, np.int64), np.zeros((0, 4)), flags,
        flags, flags, flags, 0, pairs, np.zeros(0),
    )  # fmt: skip
