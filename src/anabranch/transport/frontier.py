"""Which answers a stream can still give: how far the times of later answers are behind the watermark."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.arrays import BEGINNING
from anabranch.columns.times import TimeKind, earlier, instant_code


@dataclass(frozen=True, slots=True)
class Frontier:
    """An answer that is given when the watermark is w begins at w - delay at the earliest.

    Attributes
    ----------
    time_kind : the type of the times of answers
    clock : the type of the times of the streams, and of the watermark
    delay : in seconds for a TIMESTAMP, else in the unit of the time column
    """

    time_kind: TimeKind
    clock: TimeKind
    delay: float = 0.0

    def at(self, watermark: int) -> int:
        """The code of the earliest instant of a later answer; BEGINNING if there is no watermark yet."""
        if watermark == BEGINNING:
            return BEGINNING
        if self.clock is TimeKind.INTEGER and self.time_kind is TimeKind.DOUBLE:
            watermark = instant_code(watermark, TimeKind.DOUBLE)
        return earlier(watermark, self.delay, self.time_kind)
