"""Pairs of entities to probabilities: what the windows decide alone, and what the kernel must."""

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

#: A pair may carry this many weights at once: three times as many doubles are held.
MOST_WEIGHTS = 1 << 26


@dataclass(frozen=True, slots=True)
class Windows:
    """Entities by the windows of their events, end to end; a recorded event has a window of no length."""

    events: I64
    lo: I64
    hi: I64

    @property
    def lengths(self) -> I64:
        """The number of events of each entity."""
        return np.diff(self.events)

    @property
    def earliest(self) -> I64:
        """The instant before which nothing of an entity happened."""
        return self.lo[self.events[:-1]]

    @property
    def latest(self) -> I64:
        """The instant after which nothing of an entity happened."""
        return self.hi[self.events[1:] - 1]

    def select(self, entities: npt.NDArray[Any]) -> Windows:
        """Some of the entities."""
        lengths = self.lengths[entities]
        events = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(events[-1]) + np.repeat(self.events[entities] - events[:-1], lengths)
        return Windows(events, self.lo[places], self.hi[places])

    def followed_by(self, others: Windows) -> Windows:
        """These entities, and others after them."""
        events = np.concatenate([self.events, self.events[-1] + others.events[1:]])
        return Windows(events, np.concatenate([self.lo, others.lo]), np.concatenate([self.hi, others.hi]))

    def to_blobs(self) -> pa.Array:
        """One blob an entity, so that it travels as one cell."""
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
        """The entities as the kernel reads them; only some of them can be asked about, where these are said."""
        lost = self.lo < self.hi
        wanted = np.zeros(len(self.events) - 1, np.bool_)
        wanted[entities] = True
        marks, t, what, opens, longest = kernel.mark_entities(self.events, self.lo, self.hi, lost, wanted)
        return kernel.Entities(self.events, marks, self.lo, self.hi, t, what, opens, longest)


def relate(analysis: RelateAnalysis, doubles: bool, first: Windows, second: Windows, pairs: I64) -> tuple[F64, F64]:
    """The probability that the query holds, and that it does not, for pairs (n, 2) of entities' numbers.

    Where one entity lies wholly before the other, or has fewer segments than are asked for, no kernel is needed.

    Raises
    ------
    TooLarge
        If a pair has lost so much that what must be carried does not fit.
    """
    a, b = pairs[:, 0], pairs[:, 1]
    before, after = first.latest[a] < second.earliest[b], first.earliest[a] > second.latest[b]
    enough = (analysis.outer == ALL) | (first.lengths[a] // 2 >= analysis.outer)
    enough &= (analysis.inner == ALL) | (second.lengths[b] // 2 >= analysis.inner)
    holds = np.where(before, analysis.has_relation("PRECEDES"), analysis.has_relation("PRECEDED BY")) & enough
    probability, complement = holds.astype(np.float64), (~holds).astype(np.float64)
    close = np.flatnonzero(~before & ~after & enough)
    if len(close):
        classes = class_tables(second.lengths[b[close]], analysis)
        firsts, seconds = first.marked(a[close]), second.marked(b[close])
        _check_size(firsts.longest[a[close]], seconds.longest[b[close]], classes, analysis)
        hits, misses = kernel.relate_pairs(pairs[close], firsts, seconds, classes, analysis.hits_needed, doubles)
        # For ALL, hits are failures.
        true, false = (misses, hits) if analysis.outer == ALL else (hits, misses)
        # What is certain is exactly so, and not a little less by rounding.
        probability[close] = np.where(false == 0, 1.0, np.minimum(true, 1.0))
        complement[close] = np.where(true == 0, 1.0, np.minimum(false, 1.0))
    return probability, complement


def _check_size(longest_a: I64, longest_b: I64, classes: kernel.Classes, analysis: RelateAnalysis) -> None:
    """Refuse what must carry too many weights at once."""
    cells = int(((longest_a + 1) * (longest_b + 1)).max())
    weights = cells * int(classes.count.max()) * (analysis.hits_needed + 1)
    if weights > MOST_WEIGHTS:
        lost = f"two entities lost {longest_a.max()} and {longest_b.max()} events in a row"
        mend = "ask for fewer segments, or leave such entities out"
        raise TooLarge(f"{lost}, for which {weights:,} weights would be carried, above {MOST_WEIGHTS:,}; {mend}")


def class_tables(lengths: I64, analysis: RelateAnalysis) -> kernel.Classes:
    """The segment classes for second entities of these numbers of events, end to end."""
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
