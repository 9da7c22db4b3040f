"""The windows of the events of many entities: what operators send to the blocks in which pairs are decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.relate import kernel


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of the events of many entities, one entity after the other; a recorded event has `lo == hi`.

    `events` is the index of each entity's first event; it has one entry more than there are entities. `phases` and
    `rates` are those of the state that each event begins; None if segments and gaps have no distributions. `attributes`
    has the number of the attributes of the segment that each event opens, -1 if they are unknown; None if the query
    uses none, and in blocks (see `attributes.py`).
    """

    events: I64
    lo: I64
    hi: I64
    phases: I64 | None = None
    rates: F64 | None = None
    attributes: I64 | None = None

    @property
    def lengths(self) -> I64:
        """The number of events of each entity."""
        return np.diff(self.events)

    @property
    def earliest(self) -> I64:
        """The earliest possible time of each entity's first event."""
        return self.lo[self.events[:-1]]

    @property
    def latest(self) -> I64:
        """The latest possible time of each entity's last event."""
        return self.hi[self.events[1:] - 1]

    @property
    def has_laws(self) -> bool:
        """Whether segments or gaps have a distribution."""
        return self.rates is not None

    @property
    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns with one entry per event."""
        columns = {name: getattr(self, name) for name in ("lo", "hi", "phases", "rates", "attributes")}
        return {name: column for name, column in columns.items() if column is not None}

    def select(self, entities: npt.NDArray[Any]) -> Windows:
        """The entities with these numbers."""
        lengths = self.lengths[entities]
        events = np.concatenate([[0], np.cumsum(lengths)])
        indexes = np.arange(events[-1]) + np.repeat(self.events[entities] - events[:-1], lengths)
        return Windows(events, **{name: column[indexes] for name, column in self._columns.items()})

    def followed_by(self, others: Windows) -> Windows:
        """These entities, followed by others of the same stream."""
        events = np.concatenate([self.events, self.events[-1] + others.events[1:]])
        theirs = others._columns
        joined = {name: np.concatenate([column, theirs[name]]) for name, column in self._columns.items()}
        return Windows(events, **joined)

    def to_blobs(self) -> pa.Array:
        """One blob per entity, for one cell of a table: the columns of each event, without its attributes."""
        columns = [column.view(np.int64) for name, column in self._columns.items() if name != "attributes"]
        rows = np.ascontiguousarray(np.stack(columns, axis=1)).astype("<i8")
        offsets = pa.py_buffer((8 * len(columns) * self.events).astype("<i8"))
        blobs = pa.Array.from_buffers(pa.large_binary(), len(self.events) - 1, [None, offsets, pa.py_buffer(rows)])
        return blobs.cast(pa.binary())

    @staticmethod
    def from_blobs(blobs: pa.Array, has_laws: bool) -> Windows:
        """The entities of `to_blobs`."""
        joined, width = blobs.cast(pa.large_binary()), 4 if has_laws else 2
        offsets = np.frombuffer(joined.buffers()[1], "<i8")[joined.offset : joined.offset + len(joined) + 1]
        rows = np.frombuffer(joined.buffers()[2], "<i8")[offsets[0] // 8 : offsets[-1] // 8].reshape(-1, width)
        columns = [rows[:, column].copy() for column in range(width)]
        if has_laws:
            columns[3] = columns[3].view(np.float64)
        return Windows((offsets - offsets[0]) // (8 * width), *columns)

    def marked(self, entities: npt.NDArray[Any] | slice = slice(None)) -> kernel.Entities:
        """The entities as input of the kernel; only the given entities are prepared, by default all."""
        marks, t, flags, lost, longest = self._marks(entities, np.zeros(0, np.int64))
        return kernel.Entities(self.events, marks, self.lo, self.hi, t, flags, lost, longest)

    def chained(self, entities: npt.NDArray[Any] | slice = slice(None)) -> kernel.Chains:
        """The same as input of the kernel for distributions; without them, all placements are equally likely."""
        phases = np.ones(len(self.lo), np.int64) if self.phases is None else self.phases
        rates = np.zeros(len(self.lo)) if self.rates is None else self.rates
        marks, t, flags, lost, longest = self._marks(entities, phases)
        return kernel.Chains(self.events, marks, self.lo, self.hi, t, flags, lost, longest, phases, rates)

    def _marks(self, entities: npt.NDArray[Any] | slice, phases: I64) -> tuple[npt.NDArray[Any], ...]:
        wanted = np.zeros(len(self.events) - 1, np.bool_)
        wanted[entities] = True
        marks: tuple[npt.NDArray[Any], ...] = kernel.mark_entities(
            self.events, self.lo, self.hi, self.lo < self.hi, wanted, phases
        )
        return marks
