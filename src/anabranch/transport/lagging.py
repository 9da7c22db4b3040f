"""Rows that wait for derived streams with a lag: an instant is passed on when the rows of all streams are made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING
from anabranch.columns.times import TimeKind, step_times, steps_before
from anabranch.transport.layout import Layout
from anabranch.transport.rows import Rows
from anabranch.transport.watermark import Advance, ReorderBuffer


class LaggingRows:
    """Holds the rows of one bucket, of its sources and derived ones, until no stream lags behind them."""

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self._steps = [
            (layout.derivation.lag, layout.derivation.step, layout.time_kind)
            for layout in layouts
            if layout.derivation is not None and layout.derivation.lag
        ]
        self._buffer = ReorderBuffer(Rows.empty(), Rows.concat)
        #: All rows before it have been passed on.
        self.watermark = BEGINNING

    def receive(self, rows: Rows, watermark: int, ended: bool) -> Rows:
        """Take rows, and return those that are complete at this watermark of the sources."""
        if not ended and watermark > BEGINNING:
            watermark = min(watermark, *(self._behind(watermark, *step) for step in self._steps))
        self.watermark = max(self.watermark, watermark)
        ready, _ = self._buffer.receive(rows, Advance(BEGINNING, self.watermark))
        return ready

    @staticmethod
    def _behind(watermark: int, lag: int, step: float, kind: TimeKind) -> int:
        """The time of the first step of which no rows are made yet."""
        return int(step_times(np.array([steps_before(watermark, step, kind) - lag]), step, kind)[0])

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        return {
            "lagging": pa.table(self._buffer.held.arrays()),
            "lagging from": pa.table({"watermark": [self.watermark]}),
        }

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._buffer.held = Rows(**{name: tables["lagging"][name].to_numpy().copy() for name in Rows.__slots__})
        self.watermark = tables["lagging from"]["watermark"][0].as_py()
