"""Rows to blobs: one Arrow blob per bucket and batch crosses the shuffle, not a row per event.

A *packet* holds the rows of one stream for one bucket as numbers (key code, value code, previous value code, time,
probability) beside small tables of the distinct keys and values, in which the codes count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, I64, U64
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.times import BEGINNING, END, TimeKind, encode_known_times, encode_times, order_doubles
from anabranch.compiled import compiled
from anabranch.transport.state import write_tables

if TYPE_CHECKING:
    from anabranch.inference.reporting import Reporting
    from anabranch.transport.derivation import Derivation

#: What an event of an interval does: begin it, interrupt it, go on with it, end it.
ROLES = ("start", "suspend", "resume", "end")

_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class IntervalColumns:
    """What a stream of INTERVALS has besides key and time: the position of an event, and what may be known of it.

    `horizon` holds the codes of the two instants between which everything happened.
    """

    order: str
    length: str | None = None
    role: str | None = None
    window: tuple[str, str] | None = None
    horizon: tuple[int, int] | None = None

    @property
    def columns(self) -> list[str]:
        """Every column to read."""
        return [name for name in (self.order, self.length, self.role, *(self.window or ())) if name is not None]


@dataclass(frozen=True, slots=True)
class SpaceColumns:
    """Where an event is: two coordinates, in the plane or as degrees on the globe, or one column of geometries."""

    columns: tuple[str, ...]
    geodesic: bool = False
    shape_type: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns of a stream's source are what; the worker's view of a catalogue Stream.

    `lateness` is the WATERMARK: how late a row may come, in seconds for a TIMESTAMP, else in the unit of the
    time column. `interval` is what INTERVALS reads besides; `space` and `start`, when an event that lasts began, are
    for CONSTRAIN. `derive` makes the rows of a stream from those of its source, where they are not the same.

    PREDICTED streams have, an entry for each value column: `rates`, the columns of the rates; `errors`, each a number
    or the column that holds it; `normals`, the standard deviation of an error, None where it is uniform. `period` is
    how long a prediction is good for, in the unit of `lateness`. Where a stream is predicted from positions, it is
    those that are read: there are no rates then, and `reporting` says how predictions are made.
    """

    name: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    previous: tuple[str, ...]
    time: str
    time_kind: TimeKind
    probability: str | None
    key_types: tuple[pa.DataType, ...]
    value_types: tuple[pa.DataType, ...]
    lateness: float = 0.0
    interval: IntervalColumns | None = None
    rates: tuple[str, ...] = ()
    space: SpaceColumns | None = None
    start: str | None = None
    derive: Derivation | None = None
    errors: tuple[str | float, ...] = ()
    normals: tuple[float | None, ...] = ()
    period: float | None = None
    reporting: Reporting | None = None

    @property
    def error_columns(self) -> list[str]:
        """The columns that hold the errors of a row, each once."""
        return list(dict.fromkeys(error for error in self.errors if isinstance(error, str)))

    @property
    def horizon(self) -> tuple[int, int]:
        """Between which instants the events of INTERVALS happened; all time, where nothing is said."""
        return (self.interval and self.interval.horizon) or (BEGINNING, END)

    @property
    def reaches_back(self) -> bool:
        """Whether the first event of an interval may be lost, and so be before all that is known of it."""
        return self.interval is not None and bool(self.interval.horizon or self.interval.window)

    @property
    def columns(self) -> list[str]:
        """Every column to read."""
        last = self.error_columns
        last += [] if self.probability is None else [self.probability]
        last += [] if self.interval is None else self.interval.columns
        last += [] if self.space is None else self.space.columns
        times = [self.time] if self.start is None else [self.start, self.time]
        return list(dict.fromkeys((*self.keys, *self.values, *self.previous, *times, *self.rates, *last)))


@compiled
def _hash_bytes(offsets, data, hashes):
    for i in range(len(hashes)):
        h = hashes[i]
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * _FNV_PRIME
        hashes[i] = (h ^ np.uint64(0xFF)) * _FNV_PRIME


def hash_tuples(columns: Sequence[pa.Array], n_rows: int) -> U64:
    """A 64-bit hash of each tuple that is the same in every process and every version.

    Integers of any width, and strings of any encoding, hash by their value.
    """
    hashes = np.full(n_rows, _FNV_START, np.uint64)
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pa.array(order_doubles(column.to_numpy(zero_copy_only=False)))  # -0.0 and 0.0 are one key
        if not pa.types.is_binary(column.type):
            column = pc.cast(column, pa.large_string())
        text = pc.fill_null(pc.cast(column, pa.large_binary()), b"")
        offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + n_rows + 1]
        raw = text.buffers()[2]
        data = np.frombuffer(raw, np.uint8) if raw is not None and raw.size else np.zeros(1, np.uint8)
        _hash_bytes(offsets, data, hashes)
    # The low bits of FNV alone spread short keys badly over few buckets.
    return hashes ^ (hashes >> np.uint64(29))


@compiled
def _rows_by_bucket(bucket_of_code, codes, n_buckets):
    """A counting sort of rows by bucket: the order, and where each bucket starts."""
    starts = np.zeros(n_buckets + 1, np.int64)
    for code in codes:
        if bucket_of_code[code] >= 0:
            starts[bucket_of_code[code] + 1] += 1
    for b in range(n_buckets):
        starts[b + 1] += starts[b]
    fill = starts[:-1].copy()
    order = np.empty(starts[n_buckets], np.int64)
    for i in range(len(codes)):
        b = bucket_of_code[codes[i]]
        if b >= 0:
            order[fill[b]] = i
            fill[b] += 1
    return order, starts


@compiled
def _compact(codes, scratch):
    """Renumber codes densely, in place; returns the codes kept. `scratch` is as long as the dictionary, all -1."""
    kept = np.empty(min(len(codes), len(scratch)), np.int32)
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        if scratch[code] < 0:
            scratch[code] = count
            kept[count] = code
            count += 1
        codes[i] = scratch[code]
    for i in range(count):
        scratch[kept[i]] = -1
    return kept[:count].copy()


def pack(
    table: pa.Table, layout: Layout, bucket_of_key: I64, key_codes: I32,
    keys: pa.Table, n_buckets: int,
) -> Iterator[tuple[int, bytes]]:  # fmt: skip
    """Cut checked rows into one packet per bucket; a key whose bucket is -1 takes no part.

    Parameters
    ----------
    table : the rows
    bucket_of_key : for each distinct key, its bucket
    key_codes, keys : the code of each row's key, and the distinct keys (`encode_tuples`)
    """
    columns = _numbers(table, layout, key_codes)
    values, value_table = _encode_values(table, layout)
    columns |= values
    order, starts = _rows_by_bucket(bucket_of_key, key_codes, n_buckets)
    sorted_columns = {name: column[order] for name, column in columns.items()}
    key_scratch = np.full(max(1, keys.num_rows), -1, np.int32)
    value_scratch = np.full(max(1, value_table.num_rows), -1, np.int32)
    for bucket in range(n_buckets):
        lo, hi = starts[bucket], starts[bucket + 1]
        if lo == hi:
            continue
        part = {name: column[lo:hi] for name, column in sorted_columns.items()}
        kept_keys = _compact(part["key"], key_scratch)
        coded = [name for name in ("value", "prev") if name in part]
        joined = np.concatenate([part[name] for name in coded])
        kept_values = _compact(joined, value_scratch)
        for place, name in enumerate(coded):
            part[name] = joined[place * (hi - lo) : (place + 1) * (hi - lo)]
        yield (
            bucket,
            write_tables(
                {"rows": pa.table(part), "keys": keys.take(kept_keys), "values": value_table.take(kept_values)}
            ),
        )


def _numbers(table: pa.Table, layout: Layout, key_codes: I32) -> dict[str, npt.NDArray]:
    if layout.interval:
        return {"key": key_codes, **interval_numbers(table, layout)}
    columns: dict[str, npt.NDArray] = {"key": key_codes, "t": encode_times(table[layout.time], layout.time_kind)}
    if layout.probability:
        columns["p"] = pc.cast(table[layout.probability], pa.float64()).to_numpy()
    return columns


def interval_numbers(table: pa.Table, layout: Layout) -> dict[str, npt.NDArray]:
    """The columns of an event of an interval; what is not known of it is BEGINNING, or END for the end of a window."""
    interval, kind = layout.interval, layout.time_kind
    if interval is None:
        return {}
    columns = {"t": encode_known_times(table[layout.time], kind), "seq": whole_numbers(table[interval.order])}
    if interval.length:
        columns["length"] = whole_numbers(table[interval.length])
    if interval.role:
        columns["role"] = role_numbers(table[interval.role])
    if interval.window:
        low, high = interval.window
        columns["lo"] = encode_known_times(table[low], kind)
        columns["hi"] = encode_known_times(table[high], kind, unknown=END)
    return columns


def whole_numbers(column: pa.ChunkedArray) -> I64:
    """A column of whole numbers; 0 where there is none."""
    return pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy()


def role_numbers(column: pa.ChunkedArray) -> I64:
    """The place of each role in ROLES; -1 where there is none, -2 where it is not a role."""
    names = pc.utf8_lower(pc.cast(column, pa.string()))
    numbers = pc.fill_null(pc.index_in(names, value_set=pa.array(ROLES)), -2)
    return pc.if_else(column.is_null(), -1, numbers).to_numpy().astype(np.int64)


def _encode_values(table: pa.Table, layout: Layout) -> tuple[dict[str, npt.NDArray], pa.Table]:
    """Value and previous-value codes, counted in one common table of values."""
    n = table.num_rows
    if not layout.previous:
        codes, distinct = encode_tuples([table[name] for name in layout.values], n)
        return {"value": codes}, distinct
    stacked = [_stack(table[name], table[before]) for name, before in zip(layout.values, layout.previous, strict=True)]
    codes, distinct = encode_tuples(stacked, 2 * n)
    return {"value": codes[:n], "prev": codes[n:]}, distinct


def _stack(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    if second.type != first.type:
        second = second.cast(first.type)
    return pa.chunked_array([*first.chunks, *second.chunks], type=first.type)
