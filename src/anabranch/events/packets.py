"""Packets of events: whole rows with their roles, one packet per bucket."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Numbers
from anabranch.events.table import EventTable
from anabranch.transport.routing import Packets
from anabranch.transport.state import write_tables


def pack_events(
    events: EventTable, row: I64, bucket: I64, roles: Mapping[str, Numbers], n_buckets: int
) -> tuple[Packets, int]:
    """One packet per bucket with the rows that have a role there, and the number of rows without any role.

    Parameters
    ----------
    row, bucket : the row and the bucket of each role; rows ascend within a bucket
    roles : further columns of the roles, one of them `variable`
    """
    order = np.argsort(bucket, kind="stable")
    starts = np.searchsorted(bucket[order], np.arange(n_buckets + 1))
    owner = _owners(len(events), row, bucket, roles.get("is_primary"))
    packets = []
    for number in range(n_buckets):
        in_bucket = order[starts[number] : starts[number + 1]]
        if len(in_bucket):
            bucket_roles = {name: column[in_bucket] for name, column in roles.items()}
            packets.append((number, _packet(events, row[in_bucket], bucket_roles, owner, number)))
    return packets, int((owner < 0).sum())


def _owners(n_rows: int, row: I64, bucket: I64, is_primary: Numbers | None) -> I64:
    """The bucket that counts each row: that of a primary copy, if rows have several copies, else -1, which is any.

    The other copies have fewer events around them, and are dropped earlier.
    """
    owner = np.full(n_rows, -1, np.int64)
    if is_primary is not None:
        primary = np.flatnonzero(is_primary)
        owner[row[primary]] = bucket[primary]
    return owner


def _packet(events: EventTable, row: I64, roles: Mapping[str, Numbers], owner: I64, number: int) -> bytes:
    """The rows of one bucket with their roles; `owner` is updated: the first bucket that gets a row without one."""
    rows, index = np.unique(row, return_inverse=True)
    owner[rows[owner[rows] < 0]] = number
    counted = owner[rows] == number
    chosen = events.table.take(pa.array(rows)).append_column("#counted", pa.array(counted))
    return write_tables({"rows": chosen, "roles": pa.table({"row": index.astype(np.int32), **roles})})
