"""The probabilities of pairs of entities: the kernel is called only for pairs that the windows do not decide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.errors import TooLarge
from anabranch.relate import kernel
from anabranch.relate.analysis import ALL, RelateAnalysis

#: The most weights of a pair; the kernel allocates three doubles per weight.
MOST_WEIGHTS = 1 << 26


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of the events of many entities, one entity after the other; a recorded event has `lo == hi`.

    `events` is the index of each entity's first event; it has one entry more than there are entities.
    """

    events: I64
    lo: I64
    hi: I64

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

    def select(self, entities: npt.NDArray[Any]) -> Windows:
        """The entities with these numbers."""
        lengths = self.lengths[entities]
        events = np.concatenate([[0], np.cumsum(lengths)])
        indexes = np.arange(events[-1]) + np.repeat(self.events[entities] - events[:-1], lengths)
        return Windows(events, self.lo[indexes], self.hi[indexes])

    def followed_by(self, others: Windows) -> Windows:
        """These entities, followed by others."""
        events = np.concatenate([self.events, self.events[-1] + others.events[1:]])
        return Windows(events, np.concatenate([self.lo, others.lo]), np.concatenate([self.hi, others.hi]))

    def to_blobs(self) -> pa.Array:
        """One blob per entity, for one cell of a table: (lo, hi) of each event."""
        pairs = np.ascontiguousarray(np.stack([self.lo, self.hi], axis=1)).astype("<i8")
        offsets = pa.py_buffer((16 * self.events).astype("<i8"))
        blobs = pa.Array.from_buffers(pa.large_binary(), len(self.events) - 1, [None, offsets, pa.py_buffer(pairs)])
        return blobs.cast(pa.binary())

    @staticmethod
    def from_blobs(blobs: pa.Array) -> Windows:
        """The entities of `to_blobs`."""
        joined = blobs.cast(pa.large_binary())
        offsets = np.frombuffer(joined.buffers()[1], "<i8")[joined.offset : joined.offset + len(joined) + 1]
        pairs = np.frombuffer(joined.buffers()[2], "<i8")[offsets[0] // 8 : offsets[-1] // 8].reshape(-1, 2)
        return Windows((offsets - offsets[0]) // 16, pairs[:, 0].copy(), pairs[:, 1].copy())

    def marked(self, entities: npt.NDArray[Any] | slice = slice(None)) -> kernel.Entities:
        """The entities as input of the kernel; only the given entities are prepared, by default all."""
        lost = self.lo < self.hi
        wanted = np.zeros(len(self.events) - 1, np.bool_)
        wanted[entities] = True
        marks, t, what, opens, longest = kernel.mark_entities(self.events, self.lo, self.hi, lost, wanted)
        return kernel.Entities(self.events, marks, self.lo, self.hi, t, what, opens, longest)


def relate(analysis: RelateAnalysis, doubles: bool, first: Windows, second: Windows, pairs: I64) -> tuple[F64, F64]:
    """The probability that the query holds for each pair (n, 2) of entity numbers, and the complement.

    The kernel is not needed if one entity ends before the other begins, or has fewer segments than the query requires.

    Raises
    ------
    TooLarge
        If the consecutive lost events of a pair need more than MOST_WEIGHTS weights.
    """
    a, b = pairs[:, 0], pairs[:, 1]
    is_before, is_after = first.latest[a] < second.earliest[b], first.earliest[a] > second.latest[b]
    has_segments = (analysis.outer == ALL) | (first.lengths[a] // 2 >= analysis.outer)
    has_segments &= (analysis.inner == ALL) | (second.lengths[b] // 2 >= analysis.inner)
    holds = np.where(is_before, analysis.has_relation("PRECEDES"), analysis.has_relation("PRECEDED BY")) & has_segments
    probability, complement = holds.astype(np.float64), (~holds).astype(np.float64)
    overlapping = np.flatnonzero(~is_before & ~is_after & has_segments)
    if len(overlapping):
        classes = class_tables(second.lengths[b[overlapping]], analysis)
        firsts, seconds = first.marked(a[overlapping]), second.marked(b[overlapping])
        _check_size(firsts.longest[a[overlapping]], seconds.longest[b[overlapping]], classes, analysis)
        hits, misses = kernel.relate_pairs(pairs[overlapping], firsts, seconds, classes, analysis.hits_needed, doubles)
        # For ALL, hits are failures.
        true, false = (misses, hits) if analysis.outer == ALL else (hits, misses)
        # A certain pair has probability exactly 1, without rounding errors.
        probability[overlapping] = np.where(false == 0, 1.0, np.minimum(true, 1.0))
        complement[overlapping] = np.where(true == 0, 1.0, np.minimum(false, 1.0))
    return probability, complement


def _check_size(longest_a: I64, longest_b: I64, classes: kernel.Classes, analysis: RelateAnalysis) -> None:
    """Raise TooLarge if a pair needs too many weights."""
    cells = int(((longest_a + 1) * (longest_b + 1)).max())
    weights = cells * int(classes.count.max()) * (analysis.hits_needed + 1)
    if weights > MOST_WEIGHTS:
        lost = f"two entities have {longest_a.max()} and {longest_b.max()} consecutive lost events"
        hint = "use a smaller AT LEAST, or filter out such entities"
        raise TooLarge(f"{lost}, which needs {weights:,} weights (at most {MOST_WEIGHTS:,} are allowed); {hint}")


def class_tables(lengths: I64, analysis: RelateAnalysis) -> kernel.Classes:
    """The segment classes for second entities with these numbers of events, one table after the other."""
    distinct = np.unique(lengths)
    tables = [_table(int(n), analysis.inner, analysis.relations, analysis.outer == ALL) for n in distinct]
    first_row = np.full(int(distinct[-1]) + 1, -1, np.int64)
    first_row[distinct] = np.concatenate([[0], np.cumsum(distinct + 1)[:-1]])
    widest = max(after.shape[1] for _, after, *_ in tables)
    count, after, hit, hit_tie, begun, begun_tie = (
        np.concatenate([_widened(column, widest) for column in columns]) for columns in zip(*tables, strict=True)
    )
    return kernel.Classes(first_row, count, after, hit, hit_tie, begun, begun_tie)


@lru_cache(maxsize=4096)
def _table(n_events: int, inner: int, relations: int, hit_is_failure: bool) -> tuple[npt.NDArray[Any], ...]:
    return kernel.segment_classes(n_events, inner, relations, hit_is_failure)


def _widened(column: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    return column if column.ndim == 1 else np.pad(column, ((0, 0), (0, width - column.shape[1])))
