"""The pairs of a bucket, on live inputs, where no equality of `WHERE` says which entities can be a pair.

Entities are divided into parts, and a bucket gets all entities of two parts (`transport/parts.py`). It decides the
pairs of an entity of one part with an entity of the other. So every pair is decided in one bucket, and a bucket has all
entities that it needs to know how long to keep one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from anabranch.transport.parts import parts_of_buckets
from anabranch.transport.routing import Packets
from anabranch.transport.state import write_tables

#: The table of a packet, and of the state, with the parts of a bucket.
PARTS = "parts"


class Parts(NamedTuple):
    """The two parts of a bucket, which may be the same, and how many parts there are."""

    one: int
    other: int
    of: int

    @property
    def is_repeated(self) -> bool:
        """Whether both parts are the same. Of the buckets that an entity is in, this holds for one: it counts rows."""
        return self.one == self.other


def table_of(parts: Parts | None) -> pa.Table:
    """The parts of a bucket as a table, without rows if they are not known."""
    known = [] if parts is None else [parts._asdict()]
    return pa.Table.from_pylist(known, pa.schema([(name, pa.int64()) for name in Parts._fields]))


def parts_in(tables: Mapping[str, pa.Table]) -> Parts | None:
    """The parts of a bucket from the tables of a packet or of its state."""
    return next((Parts(**row) for row in tables[PARTS].to_pylist()), None)


def parts_for(n_buckets: int) -> list[Parts]:
    """The parts of each bucket that is used."""
    buckets = parts_of_buckets(n_buckets, operands=2)
    return [Parts(one, other, 1 + max(map(max, buckets))) for one, other in buckets]


def to_buckets(by_part: Packets, buckets: Sequence[Parts]) -> Packets:
    """Packets by part as packets by bucket: each is sent to all buckets of its part."""
    tables = [write_tables({PARTS: table_of(parts)}) for parts in buckets]
    return [
        (bucket, blob + tables[bucket])
        for part, blob in by_part
        for bucket, parts in enumerate(buckets)
        if part in (parts.one, parts.other)
    ]
