"""What the parts of the calibration benchmark measure."""

from __future__ import annotations

from typing import NamedTuple

from anabranch.arrays import F64, Bools


class Result(NamedTuple):
    """The probabilities of one method for one held-out part of a data set, and what was true."""

    data: str
    """The folder of the data set, such as `home_adl`."""
    task: str
    """What was asked, such as `which pairs intersect, 20 % of the ends lost`."""
    method: str
    """The model, or the regression that it is compared with."""
    seed: int
    probabilities: F64
    true: Bools
