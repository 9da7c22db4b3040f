"""The inbox of one bucket: packets are decoded to numbers, and rows are held until the watermark has passed them.

An operator gets rows only when no more can come before them, so it never sees disorder. That is why any split into
micro-batches, and any arrival order within the watermark, gives the same answers.

Codes refer to the dictionaries of the bucket: a *key* is a (stream, key tuple), a *value* is a (stream, value tuple).
Value 0 of every stream is *nothing*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64, Bools
from anabranch.columns.dictionary import Dictionary, all_null
from anabranch.columns.times import decode_time
from anabranch.transport.layout import Layout
from anabranch.transport.packing import numbers_of_rows
from anabranch.transport.rows import Rows
from anabranch.transport.state import read_tables
from anabranch.transport.watermark import ReorderBuffer, Watermark


class Inbox:
    """Decodes packets, separates late rows, and holds early ones.

    Parameters
    ----------
    layouts : the streams of the query, in order
    """

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self.layouts = tuple(layouts)
        self.keys = [Dictionary(layout.key_types) for layout in layouts]
        self.values = [_value_dictionary(layout) for layout in layouts]
        self._watermark = Watermark(layouts)
        self._buffer = ReorderBuffer(Rows.empty(), Rows.concat)

    @property
    def watermark(self) -> int:
        """The watermark of the bucket."""
        return self._watermark.at

    @property
    def held(self) -> Rows:
        """The rows that the watermark has not passed yet."""
        return self._buffer.held

    def receive(self, packets: Sequence[tuple[int, bytes]], watermark: int) -> tuple[Rows, Rows]:
        """Take packets (stream number, blob) and move to a new watermark; returns the ready and the late rows."""
        arrived = Rows.concat([self._decode(stream, blob) for stream, blob in packets])
        return self._buffer.receive(arrived, self._watermark.advance(watermark))

    def _decode(self, stream: int, blob: bytes) -> Rows:
        tables = read_tables(blob)
        if "rows" not in tables:
            return Rows.empty()
        rows = tables["rows"]
        n = rows.num_rows
        keys = self.keys[stream].encode(tables["keys"])
        values = self.values[stream].encode(tables["values"])
        if self.layouts[stream].values:
            values = np.where(all_null(tables["values"]), np.int32(0), values)
        column = numbers_of_rows(rows)
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
        """A row with the columns of its source, for the quarantine."""
        layout = self.layouts[rows.stream[index]]
        key = self.keys[rows.stream[index]].tuple_of(rows.key[index])
        values = self.values[rows.stream[index]]
        row = dict(zip(layout.keys, key, strict=True))
        row |= zip(layout.values, values.tuple_of(rows.value[index]), strict=False)
        row |= zip(layout.previous, values.tuple_of(rows.prev[index]), strict=False)
        row[layout.time] = decode_time(rows.t[index], layout.time_kind)
        if layout.distribution:
            row[layout.distribution.probability] = float(rows.p[index])
        return row

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        self._forget_readings()
        tables = {"pending": pa.table(self.held.arrays()), "watermark": pa.table({"watermark": [self.watermark]})}
        for stream, (keys, values) in enumerate(zip(self.keys, self.values, strict=True)):
            tables[f"keys {stream}"] = keys.to_table()
            tables[f"values {stream}"] = values.to_table()
        return tables

    def _forget_readings(self) -> None:
        """Keep only the values of held rows, where an inferred stream has used the others and most are new.

        Measured quantities are seldom equal, so their dictionary would grow with the stream.
        """
        for stream, layout in enumerate(self.layouts):
            if layout.derivation is not None and len(layout.values) >= 2:
                self.keep_values(stream, self.used_values(stream, np.zeros(0, np.int32)))

    def used_keys(self, stream: int, used: I32 | I64) -> Bools:
        """Which keys of a stream are used, or are those of held rows."""
        return _marked(len(self.keys[stream]), used, self.held.key[self.held.stream == stream])

    def used_values(self, stream: int, used: I32) -> Bools:
        """Which values of a stream are used, or are those of held rows; *nothing* always is."""
        of_stream = self.held.stream == stream
        return _marked(len(self.values[stream]), [0], used, self.held.value[of_stream], self.held.prev[of_stream])

    def keep_keys(self, stream: int, kept: Bools) -> I32:
        """Forget all other keys of a stream; returns the new number of each key."""
        of_stream = self.held.stream == stream
        numbers = self.keys[stream].keep(kept)
        self.held.key[of_stream] = numbers[self.held.key[of_stream]]
        return numbers

    def keep_values(self, stream: int, kept: Bools) -> I32:
        """Forget all other values of a stream; returns the new number of each value."""
        of_stream = self.held.stream == stream
        numbers = self.values[stream].keep(kept)
        for codes in (self.held.value, self.held.prev):
            codes[of_stream] = numbers[codes[of_stream]]
        return numbers

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._buffer.held = Rows(**{name: tables["pending"][name].to_numpy().copy() for name in Rows.__slots__})
        self._watermark.at = tables["watermark"]["watermark"][0].as_py()
        for stream in range(len(self.layouts)):
            self.keys[stream].restore(tables[f"keys {stream}"])
            self.values[stream].restore(tables[f"values {stream}"])


def _marked(n: int, *used: I32 | I64 | list[int]) -> Bools:
    """Which of n numbers are in one of several arrays."""
    marked = np.zeros(n, np.bool_)
    for numbers in used:
        marked[numbers] = True
    return marked


def _value_dictionary(layout: Layout) -> Dictionary:
    """A dictionary whose value 0 is *nothing*: all columns NULL."""
    values = Dictionary(layout.value_types)
    width = max(1, len(layout.value_types))
    kinds = layout.value_types or (pa.bool_(),)
    values.encode(pa.table({str(index): pa.nulls(1, kinds[index]) for index in range(width)}))
    return values
