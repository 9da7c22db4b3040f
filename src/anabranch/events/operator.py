"""The operator of SEQUENCE and CONSTRAIN: holds early events back, and keeps events that later ones may need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.columns.times import TimeKind, restore_doubles
from anabranch.events.batch import Batch
from anabranch.events.job import EventSpecification
from anabranch.events.members import Members, Renumbering
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.state import seal, unseal
from anabranch.transport.watermark import Progress, ReorderBuffer, Watermark


class EventOperator(ABC):
    """The operator of one bucket of events; a kind adds `answers_of`.

    Parameters
    ----------
    spec : of the job
    role_types : the types of the role columns

    Attributes
    ----------
    kept : events that later events may need
    """

    def __init__(self, spec: EventSpecification, role_types: Mapping[str, type]) -> None:
        self._layouts, self._fingerprint, self._role_types = spec.layouts, spec.fingerprint, role_types
        self._specification = spec
        self._no_answers = spec.answer_schema.empty_table()
        self.open(None)

    @abstractmethod
    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """The answers among kept and new events, in order of time; sets `kept` to what later events may need."""

    def in_order(self, batch: Batch) -> Batch:
        """The events in order of time."""
        return batch.by_time()

    @property
    def now(self) -> int | float:
        """The watermark as a number in the unit of event times."""
        if self._layouts[0].time_kind is TimeKind.DOUBLE:
            return float(restore_doubles(np.array([self._watermark.at]))[0])
        return self._watermark.at

    def open(self, state: bytes | None) -> None:
        """Start with an empty state, or resume from saved bytes."""
        empty = Batch.empty(self._layouts, self._role_types)
        self._members = Members(self._specification)
        self._watermark = Watermark(self._layouts)
        self._buffer = ReorderBuffer(empty, Batch.concat)
        self.kept = empty
        if state is not None:
            self.load(unseal(state, self._fingerprint))

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Set the state to that of saved tables."""
        self._watermark.at = tables["watermark"]["watermark"][0].as_py()
        self._buffer.held = Batch.load(tables, "pending", self._layouts, self._role_types)
        self.kept = Batch.load(tables, "kept", self._layouts, self._role_types)
        renumbering = self._members.load(tables["queries"])
        if renumbering is not None:
            self.renumber(renumbering)

    def renumber(self, new: Renumbering) -> Bools:
        """Convert loaded state of another set of queries; returns which of the kept events are still kept.

        Events that are held are counted later, also if no query needs them any more.
        """
        self._buffer.held = self._buffer.held.renumbered(new.variables)
        kept = self.kept.renumbered(new.variables)
        self.kept = kept.where(kept.has_role)
        return kept.has_role

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        return seal(self.tables(), self._fingerprint)

    def tables(self) -> dict[str, pa.Table]:
        """The state as tables, for `load`."""
        tables = {"watermark": pa.table({"watermark": [self._watermark.at]}), "queries": self._members.save()}
        return tables | self._buffer.held.save("pending") | self.kept.save("kept")

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Process packets; return all answers that are decided before the watermark."""
        arrived = self._arrived(packets, watermark)
        ready, late = self._buffer.receive(arrived, self._watermark.advance(watermark))
        rejected = late.quarantined_late()
        fresh, duplicates = ready.without_duplicates()
        counts = Counts(used=int(ready.counted.sum()) - duplicates, duplicate=duplicates, late=rejected.num_rows)
        batch = self.in_order(Batch.concat([self.kept, fresh]))
        answers = self.answers_of(batch, ended, counts) if len(batch) else self._no_answers
        return Outcome(answers, rejected, counts)

    def _arrived(self, packets: Sequence[tuple[int, bytes]], watermark: Progress) -> Batch:
        """The events of packets, in the order of the packets, with the roles of the queries that see them."""
        self._members.begin(watermark.newest_before)
        parts = [Batch.from_packet(stream, blob, self._layouts, self._role_types) for stream, blob in packets]
        return self._members.seen(Batch.concat([Batch.empty(self._layouts, self._role_types), *parts]))
