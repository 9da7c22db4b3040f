"""The way of rows into a bucket: packets are decoded, late rows set aside, and positions made into predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.times import decode_time
from anabranch.monitor.placement import is_own
from anabranch.monitor.predictions import Predictions
from anabranch.transport.checks import LATE, QUARANTINE, quarantine
from anabranch.transport.layout import Layout, require_prediction
from anabranch.transport.operator import Counts
from anabranch.transport.state import read_tables
from anabranch.transport.watermark import Advance, ReorderBuffer


class Arrivals:
    """The rows that come to a bucket, and their keys.

    Attributes
    ----------
    keys : the keys of each stream
    parts : the parts of all keys that the bucket takes; None until the first row has come
    """

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self._layouts = layouts
        self._predictions = [require_prediction(layout) for layout in layouts]
        self._width = max(len(layout.values) for layout in layouts)
        self.keys = [Dictionary(layout.key_types) for layout in layouts]
        self.parts: tuple[int, ...] | None = None
        #: The part of each key, by stream.
        self._homes = [np.zeros(0, np.int32) for _ in layouts]
        #: Positions are held until the watermark has passed them: a report depends on all earlier measurements.
        self._positions = ReorderBuffer(Predictions.empty(self._width), Predictions.concat)
        self._sensors = [
            None if prediction.reporting is None else prediction.reporting.open(layout.time_kind)
            for layout, prediction in zip(layouts, self._predictions, strict=True)
        ]

    @property
    def is_own(self) -> bool:
        """Whether rows are counted here, and not in another bucket that they went to as well."""
        return self.parts is None or is_own(self.parts)

    def receive(
        self, packets: Sequence[tuple[int, bytes]], advance: Advance, counts: Counts
    ) -> tuple[Predictions, pa.Table]:
        """Take packets; returns the new predictions, and the late rows as their source had them.

        Predictions are not held: they are compared when they arrive. Positions are.
        """
        rows = Predictions.concat([Predictions.empty(self._width), *(self._decode(*packet) for packet in packets)])
        late = advance.is_late(rows.code)
        rejected = self._set_aside(rows.where(late)) if self.is_own else QUARANTINE.empty_table()
        rows = rows.where(~late)
        counts.late += rejected.num_rows
        measured = np.array([sensors is not None for sensors in self._sensors])[rows.stream]
        if self.is_own:
            counts.used += int((~measured).sum())
        positions, _ = self._positions.receive(rows.where(measured), advance)
        return Predictions.concat([rows.where(~measured), *self._reported(positions, counts)]), rejected

    def _decode(self, stream: int, blob: bytes) -> Predictions:
        tables, layout, prediction = read_tables(blob), self._layouts[stream], self._predictions[stream]
        rows = tables["rows"]
        n = rows.num_rows
        self.parts = tuple(tables["parts"]["part"].to_pylist())
        codes = self.keys[stream].encode(tables["keys"])
        self._note_homes(stream, codes, tables["homes"]["home"].to_numpy())
        key = codes[rows["key"].to_numpy()]
        values, rates, errors = (np.zeros((n, self._width)) for _ in range(3))
        for place, name in enumerate(layout.values):
            values[:, place] = rows[f"#{name}"].to_numpy()
        for place, name in enumerate(prediction.rates):
            rates[:, place] = rows[f"#{name}"].to_numpy()
        for place, error in enumerate(prediction.errors):
            errors[:, place] = rows[f"#{error}"].to_numpy() if isinstance(error, str) else error
        return Predictions(
            np.full(n, stream, np.int32), key, self._homes[stream][key], rows["t"].to_numpy().copy(), np.zeros(n),
            np.full(n, prediction.period), np.zeros(n, np.int64), np.ones(n, np.bool_), values, rates, errors,
        )  # fmt: skip

    def _note_homes(self, stream: int, codes: I32, homes: I64) -> None:
        known = self._homes[stream]
        missing = len(self.keys[stream]) - len(known)
        self._homes[stream] = np.concatenate([known, np.full(missing, -1, np.int32)])
        self._homes[stream][codes] = homes

    def _reported(self, rows: Predictions, counts: Counts) -> list[Predictions]:
        """What the sensors of some positions report."""
        found = []
        for stream, sensors in enumerate(self._sensors):
            own = rows.take(rows.stream == stream)
            if sensors is None or not len(own):
                continue
            width = len(self._layouts[stream].values)
            reports = sensors.report(own.key, own.code, np.ascontiguousarray(own.values[:, :width]))
            told = own.take(reports.row)
            told.rates[:, :width] = reports.rates
            found.append(told)
            if self.is_own:
                counts.duplicate += reports.duplicates
                counts.used += len(own) - reports.duplicates
                counts.reported += len(told)
        return found

    def _set_aside(self, late: Predictions) -> pa.Table:
        parts = [
            quarantine(
                layout.name,
                LATE,
                [self._row(late, row, number) for row in np.flatnonzero(late.stream == number).tolist()],
            )
            for number, layout in enumerate(self._layouts)
        ]
        return pa.concat_tables([QUARANTINE.empty_table(), *parts])

    def _row(self, rows: Predictions, row: int, stream: int) -> dict[str, object]:
        """A row as its source had it."""
        layout, prediction = self._layouts[stream], self._predictions[stream]
        told = dict(zip(layout.keys, self.keys[stream].tuple_of(rows.key[row]), strict=False))
        told[layout.time] = decode_time(rows.code[row], layout.time_kind)
        told |= {name: float(rows.values[row, place]) for place, name in enumerate(layout.values)}
        told |= {name: float(rows.rates[row, place]) for place, name in enumerate(prediction.rates)}
        return told | {
            name: float(rows.errors[row, place])
            for place, name in enumerate(prediction.errors)
            if isinstance(name, str)
        }

    # ------------------------------------------------------------ state

    def save(self) -> dict[str, pa.Table]:
        """Everything that must be known to go on."""
        parts = pa.table({"part": pa.array(self.parts or (), pa.int64())})
        tables = {"waiting": self._positions.held.save(), "parts": parts}
        for number, (keys, homes, sensors) in enumerate(zip(self.keys, self._homes, self._sensors, strict=True)):
            tables[f"keys {number}"] = keys.to_table()
            tables[f"homes {number}"] = pa.table({"home": homes})
            if sensors is not None:
                tables[f"sensors {number}"] = sensors.save()
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Take over what `save` gave."""
        self._positions.held = Predictions.load(tables["waiting"], self._width)
        self.parts = tuple(tables["parts"]["part"].to_pylist()) or None
        for number, sensors in enumerate(self._sensors):
            self.keys[number].encode(tables[f"keys {number}"])
            self._homes[number] = tables[f"homes {number}"]["home"].to_numpy().copy()
            if sensors is not None:
                sensors.load(tables[f"sensors {number}"])
