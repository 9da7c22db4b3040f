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

from anabranch.columns.dictionary import Dictionary, all_null
from anabranch.columns.times import decode_time
from anabranch.transport.layout import Layout
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
        held = self.held
        for stream, layout in enumerate(self.layouts):
            if layout.derivation is None or len(layout.values) < 2:
                continue
            of_stream = held.stream == stream
            codes, positions = np.unique(np.append(0, held.value[of_stream]), return_inverse=True)
            columns = self.values[stream].take(codes.astype(np.int32))
            kept = Dictionary(layout.value_types)
            kept.encode(pa.table({str(index): column for index, column in enumerate(columns)}))
            held.value[of_stream] = positions.reshape(-1)[1:]
            self.values[stream] = kept

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._buffer.held = Rows(**{name: tables["pending"][name].to_numpy().copy() for name in Rows.__slots__})
        self._watermark.at = tables["watermark"]["watermark"][0].as_py()
        for stream in range(len(self.layouts)):
            self.keys[stream].encode(tables[f"keys {stream}"])
            self.values[stream].encode(tables[f"values {stream}"].slice(len(self.values[stream])))


def _value_dictionary(layout: Layout) -> Dictionary:
    """A dictionary whose value 0 is *nothing*: all columns NULL."""
    values = Dictionary(layout.value_types)
    width = max(1, len(layout.value_types))
    kinds = layout.value_types or (pa.bool_(),)
    values.encode(pa.table({str(index): pa.nulls(1, kinds[index]) for index in range(width)}))
    return values
