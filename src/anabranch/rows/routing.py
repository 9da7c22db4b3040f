"""The step before the shuffle: source rows are checked, their keys are placed in buckets, and packets are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.rows.checks import check_rows
from anabranch.rows.dictionary import encode_tuples
from anabranch.rows.packing import Layout, pack
from anabranch.rows.times import BEGINNING, encode_known_times


class Placement(Protocol):
    """Which bucket a key belongs to: the family's choice, for it decides what must meet."""

    @property
    def layouts(self) -> Sequence[Layout]:
        """The streams of the query, in order."""

    def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> npt.NDArray[np.int64]:
        """The bucket of each distinct key; -1 for a key that can take no part in any answer."""


@dataclass(frozen=True, slots=True)
class Routed:
    """What became of one batch of a stream: its packets by bucket, and what the run's summary needs."""

    packets: list[tuple[int, bytes]]
    read: int
    ignored: int
    newest: int
    rejected: pa.Table


def route(table: pa.Table, stream: int, placement: Placement, n_buckets: int) -> Routed:
    """Check, place and pack a batch of rows of stream number `stream`.

    `ignored` counts good rows whose key can take no part; they are read and used, but not sent.
    """
    layout = placement.layouts[stream]
    good, rejected = check_rows(table, layout)
    newest = int(encode_known_times(good[layout.time], layout.time_kind).max(initial=BEGINNING))
    codes, keys = encode_tuples([good[name] for name in layout.keys], good.num_rows)
    if layout.keys:
        # Files may hold one column in several types; a key has one bucket.
        columns = [column.cast(kind) for column, kind in zip(keys.columns, layout.key_types, strict=True)]
        keys = pa.table(columns, names=keys.column_names)
    buckets = placement.buckets(stream, keys, n_buckets)
    packets = list(pack(good, layout, buckets, codes, keys, n_buckets)) if good.num_rows else []
    ignored = int((buckets[codes] < 0).sum()) if (buckets < 0).any() else 0
    return Routed(packets, table.num_rows, ignored, newest, rejected)
