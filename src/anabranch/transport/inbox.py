"""The inbox of one bucket: packets are decoded to numbers, and rows wait there until the watermark has passed them.

An operator is handed rows only when no more can come before them, so it never sees disorder; that is why any split into
micro-batches, and any arrival order within the watermark, gives the same answers.

Codes count in the bucket's own dictionaries: a *key* is a (stream, key tuple), a *value* a (stream, value tuple); value
0 of every stream is *nothing*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.columns.dictionary import Dictionary, all_null
from anabranch.columns.times import BEGINNING, END, TimeKind, decode_time, step_times, steps_before, steps_of
from anabranch.transport.packing import Layout
from anabranch.transport.state import read_tables


@dataclass(slots=True)
class Rows:
    """Equally long arrays, one entry a row. `key` and `value` count in the dictionaries of `stream`."""

    stream: I32
    key: I32
    value: I32
    prev: I32
    t: I64
    p: F64

    def __len__(self) -> int:
        return len(self.t)

    def arrays(self) -> dict[str, npt.NDArray]:
        """The columns by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def where(self, chosen: Bools) -> Rows:
        """The rows for which `chosen` holds."""
        return Rows(**{name: column[chosen] for name, column in self.arrays().items()})

    @staticmethod
    def empty() -> Rows:
        """No rows."""
        narrow = np.zeros(0, np.int32)
        return Rows(narrow, narrow, narrow, narrow, np.zeros(0, np.int64), np.zeros(0))

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, in order."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else Rows.empty()
        return Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__slots__})


class Inbox:
    """Decodes packets, sorts out what is late, and keeps what is early.

    Parameters
    ----------
    layouts : the streams of the query, in order
    """

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self.layouts = tuple(layouts)
        self.keys = [Dictionary(layout.key_types) for layout in layouts]
        self.values = [_value_dictionary(layout) for layout in layouts]
        self.watermark = BEGINNING
        self.pending = Rows.empty()

    def receive(self, packets: Sequence[tuple[int, bytes]], watermark: int) -> tuple[Rows, Rows]:
        """Take packets (stream number, blob) and move on to a new watermark.

        Returns the rows that are ready, those before the new watermark, and the rows that came too late, those
        that the old watermark had passed.
        """
        arrived = Rows.concat([self._decode(stream, blob) for stream, blob in packets])
        late = arrived.t < self._limit(arrived)
        rejected = Rows.empty()
        if late.any():
            rejected, arrived = arrived.where(late), arrived.where(~late)
        rows = Rows.concat([self.pending, arrived])
        self.watermark = max(self.watermark, self._whole_steps(watermark))
        ready = rows.t < self._limit(rows)
        if ready.all():
            self.pending = Rows.empty()
            return rows, rejected
        self.pending = rows.where(~ready)
        return rows.where(ready), rejected

    def _whole_steps(self, watermark: int) -> int:
        """The watermark, or the beginning of a step that it has not passed whole, where a stream goes by steps."""
        if watermark in (BEGINNING, END):
            return watermark
        steps = [(layout.derive.step, layout.time_kind) for layout in self.layouts if layout.derive is not None]
        here = np.array([watermark])
        return min([watermark, *(int(step_times(steps_of(here, *step), *step)[0]) for step in steps)])

    def _limit(self, rows: Rows) -> int | I64:
        """The time before which rows are not waited for any more: the end of the last step that began, or of all."""
        if all(layout.derive is None for layout in self.layouts):
            return self.watermark
        return np.array([self._limit_of(layout) for layout in self.layouts])[rows.stream]

    def _limit_of(self, layout: Layout) -> int:
        if layout.derive is None or self.watermark in (BEGINNING, END):
            return self.watermark
        step, kind = layout.derive.step, layout.time_kind
        (limit,) = step_times(np.array([steps_before(self.watermark, step, kind)]), step, kind)
        # 7 * 0.1 is a little more than 0.7, and a row at 0.7 belongs to the step that begins there.
        return int(limit) - 8 if kind is TimeKind.DOUBLE else int(limit)

    def _decode(self, stream: int, blob: bytes) -> Rows:
        tables = read_tables(blob)
        rows = tables["rows"]
        n = rows.num_rows
        keys = self.keys[stream].encode(tables["keys"])
        values = self.values[stream].encode(tables["values"])
        if self.layouts[stream].values:
            values = np.where(all_null(tables["values"]), np.int32(0), values)
        column = {name: rows[name].to_numpy() for name in rows.column_names}
        return Rows(
            stream=np.full(n, stream, np.int32),
            key=keys[column["key"]],
            value=values[column["value"]],
            prev=values[column["prev"]] if "prev" in column else np.zeros(n, np.int32),
            # Copies: the kernels scale probabilities in place, and Arrow's memory is read-only.
            t=column["t"].copy(),
            p=column["p"].copy() if "p" in column else np.ones(n),
        )

    def describe(self, rows: Rows, index: int) -> dict[str, object]:
        """A row as its source had it, for the quarantine."""
        layout = self.layouts[rows.stream[index]]
        key = self.keys[rows.stream[index]].tuple_of(rows.key[index])
        values = self.values[rows.stream[index]]
        row = dict(zip(layout.keys, key, strict=True))
        row |= zip(layout.values, values.tuple_of(rows.value[index]), strict=False)
        row |= zip(layout.previous, values.tuple_of(rows.prev[index]), strict=False)
        row[layout.time] = decode_time(rows.t[index], layout.time_kind)
        if layout.probability:
            row[layout.probability] = float(rows.p[index])
        return row

    def save(self) -> dict[str, pa.Table]:
        """Everything the inbox knows, as tables."""
        tables = {"pending": pa.table(self.pending.arrays()), "watermark": pa.table({"watermark": [self.watermark]})}
        for stream, (keys, values) in enumerate(zip(self.keys, self.values, strict=True)):
            tables[f"keys {stream}"] = keys.to_table()
            tables[f"values {stream}"] = values.to_table()
        return tables

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Take over what `save` gave."""
        self.pending = Rows(**{name: tables["pending"][name].to_numpy().copy() for name in Rows.__slots__})
        self.watermark = tables["watermark"]["watermark"][0].as_py()
        for stream in range(len(self.layouts)):
            self.keys[stream].encode(tables[f"keys {stream}"])
            self.values[stream].encode(tables[f"values {stream}"].slice(len(self.values[stream])))


def _value_dictionary(layout: Layout) -> Dictionary:
    """A dictionary whose value 0 is nothing: NULL throughout."""
    values = Dictionary(layout.value_types)
    width = max(1, len(layout.value_types))
    kinds = layout.value_types or (pa.bool_(),)
    values.encode(pa.table({str(place): pa.nulls(1, kinds[place]) for place in range(width)}))
    return values
