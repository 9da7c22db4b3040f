"""The queries of a group in the state of a bucket: which roles are theirs, and from when on each sees events.

Queries may be added and removed between two starts of a stream. The state names its queries, so the operator of another
set of queries can open it: roles of removed queries are dropped, those of the others get their new numbers. An added
query sees the events that are newer than every row that was read before its first micro-batch. Older ones may have been
read already, and were sent only to buckets in which the other queries need them. All buckets know the newest time, so
they agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, I64
from anabranch.events.batch import Batch
from anabranch.events.job import EventSpecification


@dataclass(frozen=True, slots=True)
class Renumbering:
    """The new numbers of what saved state has numbers for; -1 if it belongs to a removed query.

    Attributes
    ----------
    queries, variables : by the number in the saved state
    """

    queries: I64
    variables: I64


class Members:
    """The queries of a group.

    Attributes
    ----------
    after : each query sees only events after this time
    """

    def __init__(self, spec: EventSpecification) -> None:
        self._ids = [spec.query_id(number) for number in range(len(spec.analyses))]
        self._first = np.asarray(spec.first_role)
        self._sizes = np.diff(self._first)
        self.after = np.full(len(self._ids), BEGINNING, np.int64)
        self._added = np.zeros(len(self._ids), np.bool_)

    def load(self, table: pa.Table) -> Renumbering | None:
        """Set `after` to that of saved state; returns the new numbers, or None if the queries are the same."""
        ids, after = table["query"].to_pylist(), table["after"].to_numpy()
        if ids == self._ids:
            self.after = after.copy()
            return None
        number = {query: index for index, query in enumerate(self._ids)}
        queries = np.array([number.get(query, -1) for query in ids], np.int64)
        still = queries >= 0
        self.after[queries[still]] = after[still]
        self._added[:] = True
        self._added[queries[still]] = False
        sizes = table["roles"].to_numpy()
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        variables = np.where(np.repeat(still, sizes), np.repeat(self._first[queries], sizes) + within, -1)
        return Renumbering(queries, variables)

    def save(self) -> pa.Table:
        """The queries as a table, for `load`."""
        return pa.table({"query": self._ids, "roles": self._sizes, "after": self.after})

    def begin(self, newest: int) -> None:
        """Begin the queries that were added; `newest` is the newest time of any row that was read before."""
        self.after[self._added] = newest
        self._added[:] = False

    def seen(self, arrived: Batch) -> Batch:
        """The events without the roles of queries that do not see them."""
        latest = self.after.max()
        if not len(arrived) or latest == BEGINNING or arrived.event_time.min() > latest:
            return arrived
        event = np.repeat(np.arange(len(arrived)), np.diff(arrived.first))
        after = np.repeat(self.after, self._sizes)[arrived.roles["variable"]]
        return arrived.only_roles(arrived.event_time[event] > after)
