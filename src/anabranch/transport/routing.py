"""Before the shuffle: source rows are checked, routed to buckets, and packed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, I32, I64
from anabranch.binding.typed import Typed
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.columns.times import encode_known_times
from anabranch.transport.activations import TOO_LONG, readings_of
from anabranch.transport.checks import QUARANTINE, check_rows, plain_rows, quarantine
from anabranch.transport.jumps import Run, rows_by_run
from anabranch.transport.layout import Layout
from anabranch.transport.packing import pack
from anabranch.transport.parts import parts_of_keys
from anabranch.transport.preparing import PreparedRows, prepare_rows
from anabranch.transport.segments import FIRST, LAST, events_of, with_condition

#: (bucket, blob), one per bucket.
Packets = list[tuple[int, bytes]]


class Placement(Protocol):
    """Which buckets a row goes to. Each kind decides, because it knows which rows must meet."""

    @property
    def layouts(self) -> Sequence[Layout]:
        """The layouts of the streams, in order."""

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that streams and conditions use, by lower-case name."""

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of valid rows, and the number of rows that are not sent because no answer can use them."""

    def together(self, stream: int) -> tuple[str, ...]:
        """The columns of a stream, in lower case, in each of which rows that must meet in a bucket are equal."""


def distinct_keys(rows: pa.Table, layout: Layout) -> tuple[I32, pa.Table]:
    """The code of each row's key, and the distinct keys in the types of their stream.

    Files may hold one column in several types; equal keys must still go to one bucket.
    """
    codes, keys = encode_tuples([rows[name] for name in layout.keys], rows.num_rows)
    if layout.keys:
        columns = [column.cast(kind) for column, kind in zip(keys.columns, layout.key_types, strict=True)]
        keys = pa.table(columns, names=keys.column_names)
    return codes, keys


class KeyPlacement(ABC):
    """Routes rows by their keys: the rows of one key go to one bucket."""

    @property
    @abstractmethod
    def layouts(self) -> Sequence[Layout]:
        """The layouts of the streams, in order."""

    @property
    @abstractmethod
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions use, by lower-case name."""

    @abstractmethod
    def needed(self, stream: int) -> Typed | None:
        """The condition on a key that can be part of an answer; None if every key can."""

    def useful(self, stream: int) -> Typed | None:
        """The condition on a key whose rows are sent; others may be read for their times only."""
        return self.needed(stream)

    @abstractmethod
    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The columns that are hashed to route distinct keys; keys that must meet in a bucket are equal in them."""

    def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> I64:
        """The bucket of each distinct key; -1 for a key that cannot be part of an answer."""
        names = [name.lower() for name in self.layouts[stream].keys]
        columns = dict(zip(names, map(flat, keys.columns), strict=False))
        buckets = parts_of_keys(self.routing_columns(stream, columns), keys.num_rows, n_buckets)
        buckets[~holds(self.useful(stream), columns, self.relations, keys.num_rows)] = -1
        return buckets

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of valid rows, and the number of rows that are not sent because no answer can use them."""
        layout = self.layouts[stream]
        codes, keys = distinct_keys(rows, layout)
        buckets = self.buckets(stream, keys, n_buckets)
        packets = list(pack(rows, layout, buckets, codes, keys, n_buckets)) if rows.num_rows else []
        return packets, int((buckets[codes] < 0).sum()) if (buckets < 0).any() else 0


@dataclass(frozen=True, slots=True)
class Routed:
    """One routed batch of a stream: its packets, what the run counts, and the times of its rows where asked for.

    `ignored` counts valid rows that no answer can use, `excluded` those that the stream does not have (WHERE, JOIN).
    `run` has the times of the valid rows.
    """

    packets: Packets = field(default_factory=list)
    read: int = 0
    ignored: int = 0
    run: Run = field(default_factory=Run)
    rejected: pa.Table = field(default_factory=QUARANTINE.empty_table)
    excluded: int = 0
    instants: bytes | None = None

    @property
    def newest(self) -> int:
        """The newest time of a valid row; BEGINNING if there is none."""
        return self.run.newest


def route(table: pa.Table, stream: int, placement: Placement, n_buckets: int, instants: bool = False) -> Routed:
    """Prepare, check, route and pack a batch of rows of stream number `stream`.

    Rows that are `ignored` count as used, but are not sent. An activation counts as the readings that it stands for,
    and a segment as two events.
    """
    valid = _valid_rows(table, placement.layouts[stream], placement.relations)
    return replace(_packed(valid.rows, stream, placement, n_buckets, instants), **_counts(valid))


def route_runs(
    table: pa.Table, stream: int, placement: Placement, n_buckets: int, instants: bool = False
) -> list[Routed]:
    """The same for a stream: rows between which numeric times jump (MAX AHEAD) are in packets of their own.

    The first of the results has the counts of all.
    """
    layout = placement.layouts[stream]
    if layout.max_jump is None:
        return [route(table, stream, placement, n_buckets, instants)]
    valid = _valid_rows(table, layout, placement.relations)
    parts = [valid.rows.take(pa.array(rows)) for rows in rows_by_run(_times_of(valid.rows, layout), layout)]
    routed = [_packed(part, stream, placement, n_buckets, instants) for part in parts or [valid.rows]]
    return [replace(routed[0], **_counts(valid)), *routed[1:]]


def _valid_rows(table: pa.Table, layout: Layout, relations: Mapping[str, pa.Table]) -> PreparedRows:
    """The valid rows of a batch, in the columns that packets are made of, and what happened to the others."""
    unprepared, excluded = QUARANTINE.empty_table(), 0
    if layout.preparation is not None:
        prepared = prepare_rows(table, layout.name, layout.preparation, relations)
        table, unprepared, excluded = prepared.rows, prepared.rejected, prepared.excluded
    good, rejected = check_rows(table, layout)
    rejected = pa.concat_tables([unprepared, rejected])
    if layout.start is not None and layout.derivation is not None:
        good, too_long = readings_of(good, layout.start, layout.time, layout.derivation.step, layout.time_kind)
        columns = plain_rows(too_long.select(layout.columns))
        rejected = pa.concat_tables([rejected, quarantine(layout.name, TOO_LONG, columns)])
    good = events_of(good, layout)
    if layout.runs is not None:
        good = with_condition(good, layout.runs.condition, relations)
    return PreparedRows(good, rejected, excluded)


def _counts(valid: PreparedRows) -> dict[str, Any]:
    """What the run counts of a batch before its rows are packed, as fields of `Routed`."""
    read = valid.rows.num_rows + valid.rejected.num_rows + valid.excluded
    return {"read": read, "rejected": valid.rejected, "excluded": valid.excluded}


def _times_of(rows: pa.Table, layout: Layout) -> I64:
    """The time of each row as a code, by which it may be late or ahead; BEGINNING if it is unknown.

    Both events of a segment have the time of its end.
    """
    column = pc.coalesce(rows[LAST], rows[FIRST]) if LAST in rows.column_names else rows[layout.time]
    return encode_known_times(column, layout.time_kind)


def _packed(rows: pa.Table, stream: int, placement: Placement, n_buckets: int, instants: bool) -> Routed:
    """Pack valid rows; the result lacks the counts of `_counts`."""
    layout = placement.layouts[stream]
    times = _times_of(rows, layout)
    known = times[times > BEGINNING]
    run = Run(int(known.min()), int(known.max()), len(known)) if len(known) else Run()
    packets, ignored = placement.pack(stream, rows, n_buckets)
    distinct = np.unique(times).astype("<i8").tobytes() if instants and len(times) else None
    return Routed(packets, ignored=ignored, run=run, instants=distinct)
