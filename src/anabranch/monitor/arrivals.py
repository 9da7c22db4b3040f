"""The input of a MONITOR bucket: packets are decoded, late rows quarantined, and positions turned into predictions.

The rule of `transport/watermark.py` applies in full to positions only: a `ReorderBuffer` holds them until they are
ready, because a report depends on all earlier measurements of its key. Predictions can be late, but they are not held:
they are compared when they arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64
from anabranch.columns.dictionary import Dictionary, is_worth_removing
from anabranch.columns.times import decode_time
from anabranch.monitor.placement import counts_rows
from anabranch.monitor.predictions import Predictions, no_predictions
from anabranch.transport.checks import LATE, QUARANTINE, quarantine
from anabranch.transport.layout import Layout, require_prediction
from anabranch.transport.operator import Counts
from anabranch.transport.state import read_tables
from anabranch.transport.watermark import Advance, ReorderBuffer


class Arrivals:
    """The rows that arrive in a bucket, and their keys.

    Attributes
    ----------
    keys : the keys of each stream
    parts : the parts of the bucket; None until the first row has arrived
    """

    def __init__(self, layouts: Sequence[Layout], is_broadcast: bool) -> None:
        self._layouts = layouts
        self._is_broadcast = is_broadcast
        self._predictions = [require_prediction(layout) for layout in layouts]
        self._nothing = no_predictions(layouts)
        self.keys = [Dictionary(layout.key_types) for layout in layouts]
        self.parts: tuple[int, ...] | None = None
        #: The part of each key, by stream.
        self._key_parts = [np.zeros(0, np.int32) for _ in layouts]
        self._positions = ReorderBuffer(self._nothing, Predictions.concat)
        self._sensors = [
            None if prediction.reporting is None else prediction.reporting.open(layout.time_kind)
            for layout, prediction in zip(layouts, self._predictions, strict=True)
        ]

    @property
    def counts_rows(self) -> bool:
        """Whether this bucket counts its rows; each row may go to several buckets, and one of them counts it."""
        return self.parts is None or counts_rows(self.parts, self._is_broadcast)

    def receive(
        self, packets: Sequence[tuple[int, bytes]], advance: Advance, by_stream: Advance, counts: Counts
    ) -> tuple[Predictions, pa.Table]:
        """Take packets; returns the new predictions, and the quarantined late rows.

        A position is late or ready by the watermark of its stream (`by_stream`): a report depends on no other stream.
        """
        rows = Predictions.concat([self._nothing, *(self._decode(*packet) for packet in packets)])
        is_measured = np.array([sensors is not None for sensors in self._sensors])
        late = np.where(is_measured[rows.stream], by_stream.is_late(rows.code, rows.stream), advance.is_late(rows.code))
        rejected = self._quarantine(rows.where(late)) if self.counts_rows else QUARANTINE.empty_table()
        rows = rows.where(~late)
        counts.late += rejected.num_rows
        measured = is_measured[rows.stream]
        if self.counts_rows:
            counts.used += int((~measured).sum())
        positions, _ = self._positions.receive(rows.where(measured), by_stream)
        return Predictions.concat([rows.where(~measured), *self._reports(positions, counts)]), rejected

    def _decode(self, stream: int, blob: bytes) -> Predictions:
        tables, layout, prediction = read_tables(blob), self._layouts[stream], self._predictions[stream]
        rows = tables["rows"]
        n = rows.num_rows
        self.parts = tuple(tables["parts"]["part"].to_pylist())
        codes = self.keys[stream].encode(tables["keys"])
        self._store_key_parts(stream, codes, tables["key parts"]["part"].to_numpy())
        key = codes[rows["key"].to_numpy()]
        empty = self._nothing
        values, rates, errors, accelerations = (
            np.zeros((n, part.shape[1])) for part in (empty.values, empty.rates, empty.errors, empty.accelerations)
        )
        for index, name in enumerate(layout.values):
            values[:, index] = rows[f"#{name}"].to_numpy()
        for index, name in enumerate(prediction.rates):
            rates[:, index] = rows[f"#{name}"].to_numpy()
        for index, error in enumerate(prediction.errors):
            errors[:, index] = rows[f"#{error}"].to_numpy() if isinstance(error, str) else error
        for index, acceleration in enumerate(prediction.accelerations):
            if acceleration is not None:
                accelerations[:, index] = rows[f"#{acceleration}"].to_numpy()
        return Predictions(
            np.full(n, stream, np.int32), key, self._key_parts[stream][key], rows["t"].to_numpy().copy(), np.zeros(n),
            np.full(n, prediction.period), np.zeros(n, np.int64), np.ones(n, np.bool_), values, rates, errors,
            accelerations,
        )  # fmt: skip

    def _store_key_parts(self, stream: int, codes: I32, key_parts: I64) -> None:
        known = self._key_parts[stream]
        missing = len(self.keys[stream]) - len(known)
        self._key_parts[stream] = np.concatenate([known, np.full(missing, -1, np.int32)])
        self._key_parts[stream][codes] = key_parts

    def _reports(self, all_positions: Predictions, counts: Counts) -> list[Predictions]:
        """The predictions that sensors report for some positions."""
        predictions = []
        for stream, sensors in enumerate(self._sensors):
            positions = all_positions.take(all_positions.stream == stream)
            if sensors is None or not len(positions):
                continue
            width = len(self._layouts[stream].values)
            reports = sensors.report(positions.key, positions.code, np.ascontiguousarray(positions.values[:, :width]))
            reported = positions.take(reports.row)
            reported.values[:, :width] = reports.values
            reported.rates[:, :width] = reports.rates
            predictions.append(reported)
            if self.counts_rows:
                counts.duplicate += reports.duplicates
                counts.used += len(positions) - reports.duplicates
                counts.reported += len(reported)
        return predictions

    def _quarantine(self, late: Predictions) -> pa.Table:
        tables = [
            quarantine(
                layout.name,
                LATE,
                [self._source_row(late, row, number) for row in np.flatnonzero(late.stream == number).tolist()],
            )
            for number, layout in enumerate(self._layouts)
        ]
        return pa.concat_tables([QUARANTINE.empty_table(), *tables])

    def _source_row(self, rows: Predictions, row: int, stream: int) -> dict[str, object]:
        """A row with the columns of its source."""
        layout, prediction = self._layouts[stream], self._predictions[stream]
        source_row = dict(zip(layout.keys, self.keys[stream].tuple_of(rows.key[row]), strict=False))
        source_row[layout.time] = decode_time(rows.code[row], layout.time_kind)
        source_row |= {name: float(rows.values[row, index]) for index, name in enumerate(layout.values)}
        source_row |= {name: float(rows.rates[row, index]) for index, name in enumerate(prediction.rates)}
        source_row |= {
            name: float(rows.accelerations[row, index])
            for index, name in enumerate(prediction.accelerations)
            if name is not None
        }
        return source_row | {
            name: float(rows.errors[row, index])
            for index, name in enumerate(prediction.errors)
            if isinstance(name, str)
        }

    # ------------------------------------------------------------ state

    def forget_keys(self, held: Predictions) -> Predictions:
        """Remove the keys of which no prediction is held, once they are the majority; returns `held` with new numbers.

        The keys of sensors stay: what a sensor reports depends on its earlier reports.
        """
        key = held.key.copy()
        for stream, (keys, sensors) in enumerate(zip(self.keys, self._sensors, strict=True)):
            is_used = np.zeros(len(keys), np.bool_)
            rows = held.stream == stream
            is_used[held.key[rows]] = True
            if sensors is not None or not is_worth_removing(is_used):
                continue
            key[rows] = keys.keep(is_used)[held.key[rows]]
            self._key_parts[stream] = self._key_parts[stream][is_used]
        return replace(held, key=key)

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        parts = pa.table({"part": pa.array(self.parts or (), pa.int64())})
        tables = {"held positions": self._positions.held.save(), "parts": parts}
        for number, (keys, key_parts, sensors) in enumerate(
            zip(self.keys, self._key_parts, self._sensors, strict=True)
        ):
            tables[f"keys {number}"] = keys.to_table()
            tables[f"key parts {number}"] = pa.table({"part": key_parts})
            if sensors is not None:
                tables[f"sensors {number}"] = sensors.save()
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._positions.held = Predictions.load(tables["held positions"])
        self.parts = tuple(tables["parts"]["part"].to_pylist()) or None
        for number, sensors in enumerate(self._sensors):
            self.keys[number].restore(tables[f"keys {number}"])
            self._key_parts[number] = tables[f"key parts {number}"]["part"].to_numpy().copy()
            if sensors is not None:
                sensors.load(tables[f"sensors {number}"])
