"""The operators of queries about events: late rows are set aside, early ones wait, and some are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from anabranch.columns.times import BEGINNING, TimeKind, restore_doubles
from anabranch.events.batch import Batch
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.state import seal, unseal

if TYPE_CHECKING:
    from anabranch.events.job import EventJob


class EventOperator(ABC):
    """The operator of queries about events. The queries themselves are the kind's: see `answers_of`.

    Parameters
    ----------
    job : whose bucket it is
    kinds : the types of the columns of roles

    Attributes
    ----------
    kept : events that those to come may need
    """

    def __init__(self, job: EventJob, kinds: Mapping[str, type]) -> None:
        self._layouts, self._fingerprint, self._kinds = job.layouts, job.fingerprint, kinds
        self._nothing = job.answer_schema.empty_table()
        self.open(None)

    @abstractmethod
    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """The answers that new events give with those that are kept, all in order of time; and which to keep now."""

    @property
    def now(self) -> int | float:
        """The watermark, as times are calculated with."""
        if self._layouts[0].time_kind is TimeKind.DOUBLE:
            return float(restore_doubles(np.array([self._watermark]))[0])
        return self._watermark

    def open(self, state: bytes | None) -> None:
        """Begin anew, or go on from saved bytes."""
        self._watermark = BEGINNING
        self._pending = self.kept = Batch.empty(self._layouts, self._kinds)
        if state is not None:
            tables = unseal(state, self._fingerprint)
            self._watermark = tables["watermark"]["watermark"][0].as_py()
            self._pending = Batch.load(tables, "pending", self._layouts)
            self.kept = Batch.load(tables, "kept", self._layouts)

    def save(self) -> bytes:
        """The state, to be opened again."""
        tables = {"watermark": pa.table({"watermark": [self._watermark]})}
        tables |= self._pending.save("pending") | self.kept.save("kept")
        return seal(tables, self._fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets, and give every answer that is decided before the watermark."""
        parts = [Batch.from_packet(stream, blob, self._layouts, self._kinds) for stream, blob in packets]
        arrived = Batch.concat([Batch.empty(self._layouts, self._kinds), *parts])
        counts = Counts()
        is_late = arrived.code < self._watermark
        rejected = arrived.where(is_late).set_aside()
        counts.late += rejected.num_rows
        self._watermark = max(self._watermark, watermark)
        waiting = Batch.concat([self._pending, arrived.where(~is_late)])
        ready = waiting.code < self._watermark
        self._pending = waiting.where(~ready)
        come = waiting.where(ready)
        fresh, counts.duplicate = come.without_duplicates()
        counts.used += int(come.counted.sum()) - counts.duplicate
        batch = Batch.concat([self.kept, fresh]).by_time()
        answers = self.answers_of(batch, ended, counts) if len(batch) else self._nothing
        return Outcome(answers, rejected, counts)
