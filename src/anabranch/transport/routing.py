"""The step before the shuffle: source rows are checked, placed in buckets, and cut into packets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64
from anabranch.binding.typed import Typed
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.columns.times import BEGINNING, encode_known_times
from anabranch.transport.checks import check_rows
from anabranch.transport.packing import Layout, hash_tuples, pack

#: One packet a bucket: its number, and the blob.
Packets = list[tuple[int, bytes]]


class Placement(Protocol):
    """Which buckets a row goes to: the family's choice, for it decides what must meet."""

    @property
    def layouts(self) -> Sequence[Layout]:
        """The streams of the query, in order."""

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of good rows, and how many rows can take no part in any answer, and are not sent."""


def distinct_keys(rows: pa.Table, layout: Layout) -> tuple[I32, pa.Table]:
    """The code of each row's key, and the distinct keys, in the types of their stream.

    Files may hold one column in several types; a key has one place.
    """
    codes, keys = encode_tuples([rows[name] for name in layout.keys], rows.num_rows)
    if layout.keys:
        columns = [column.cast(kind) for column, kind in zip(keys.columns, layout.key_types, strict=True)]
        keys = pa.table(columns, names=keys.column_names)
    return codes, keys


class KeyPlacement(ABC):
    """Places rows by their keys: the rows of one key go to one bucket."""

    @property
    @abstractmethod
    def layouts(self) -> Sequence[Layout]:
        """The streams of the query, in order."""

    @property
    @abstractmethod
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions ask, by lower-case name."""

    @abstractmethod
    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to take part in any answer; None where every key may."""

    @abstractmethod
    def spread(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The columns by which distinct keys are spread over buckets, given theirs; what must meet is equal there."""

    def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> I64:
        """The bucket of each distinct key; -1 for a key that can take no part in any answer."""
        names = [name.lower() for name in self.layouts[stream].keys]
        columns = dict(zip(names, map(flat, keys.columns), strict=False))
        hashes = hash_tuples(self.spread(stream, columns), keys.num_rows)
        buckets = (hashes % np.uint64(n_buckets)).astype(np.int64)
        buckets[~holds(self.needed(stream), columns, self.relations, keys.num_rows)] = -1
        return buckets

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of good rows, and how many rows can take no part in any answer, and are not sent."""
        layout = self.layouts[stream]
        codes, keys = distinct_keys(rows, layout)
        buckets = self.buckets(stream, keys, n_buckets)
        packets = list(pack(rows, layout, buckets, codes, keys, n_buckets)) if rows.num_rows else []
        return packets, int((buckets[codes] < 0).sum()) if (buckets < 0).any() else 0


@dataclass(frozen=True, slots=True)
class Routed:
    """What became of one batch of a stream: its packets by bucket, and what the run's summary needs."""

    packets: Packets
    read: int
    ignored: int
    newest: int
    rejected: pa.Table


def route(table: pa.Table, stream: int, placement: Placement, n_buckets: int) -> Routed:
    """Check, place and pack a batch of rows of stream number `stream`.

    `ignored` counts good rows that can take no part; they are read and used, but not sent.
    """
    layout = placement.layouts[stream]
    good, rejected = check_rows(table, layout)
    newest = int(encode_known_times(good[layout.time], layout.time_kind).max(initial=BEGINNING))
    packets, ignored = placement.pack(stream, good, n_buckets)
    return Routed(packets, table.num_rows, ignored, newest, rejected)
