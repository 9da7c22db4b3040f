"""The predictions of a MONITOR query: what each of them says about a value, until it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from anabranch.errors import DataError
from anabranch.plotting.answers import Row, instant, is_clock

STEPS = 12
"""The number of points of an accelerated prediction."""


class Predictions:
    """Predictions by key: rows with a value `x`, its rate `x_rate` and, if known, its acceleration `x_accel`."""

    def __init__(self, data: pa.Table, time: str | None = None) -> None:
        names = data.column_names
        self.time = time or "t"
        self.values = [name for name in names if f"{name}_rate" in names]
        if self.time not in names or not self.values:
            raise DataError(
                f"data= of MONITOR has a time ({self.time}), and a rate such as x_rate for each value x; these columns "
                f"are: {', '.join(names)}"
            )
        self.clock = is_clock(data[self.time].to_pylist())
        self._rows = sorted(data.to_pylist(), key=lambda row: instant(row[self.time]) or 0.0)

    def of(self, event: Row) -> list[Row]:
        """Return the predictions with the keys of an event of an answer, by time."""
        keys = {name: value for name, value in event.items() if name != self.time}
        return [row for row in self._rows if all(row.get(name) == value for name, value in keys.items())]

    def spans(self, event: Row, period: float | None, end: float) -> Iterator[tuple[Row, float, float]]:
        """Give each prediction with its first and last instant: until the next, the period or the end of the chart.

        Instants are numbers of a chart; the period is in the unit of the times, which is seconds for timestamps.
        """
        rows = self.of(event)
        starts = [instant(row[self.time]) or 0.0 for row in rows]
        for row, start, following in zip(rows, starts, [*starts[1:], end], strict=True):
            last = min(following, end)
            if period is not None:
                last = min(last, start + period * (1000 if self.clock else 1))
            if last > start:
                yield row, start, last

    def points(self, row: Row, name: str, start: float, end: float) -> Iterator[tuple[float, float]]:
        """Give instants and predicted values; two of them if the prediction is linear."""
        steps = STEPS if row.get(f"{name}_accel") else 1
        for step in range(steps + 1):
            s = start + (end - start) * step / steps
            yield s, self.value_at(row, name, s)

    def value_at(self, row: Row, name: str, s: float) -> float:
        """Return the predicted value at an instant."""
        seconds = (s - (instant(row[self.time]) or 0.0)) / (1000 if self.clock else 1)
        accel = row.get(f"{name}_accel") or 0.0
        return float(row[name] + (row[f"{name}_rate"] or 0.0) * seconds + accel / 2 * seconds**2)


def error_of(row: Row, name: str, error: float | Mapping[str, float] | None) -> float | None:
    """Return the error of a predicted value: that of its row, or the given one."""
    own: Any = row.get(f"{name}_error")
    if own is not None:
        return float(own)
    return error.get(name) if isinstance(error, Mapping) else error
