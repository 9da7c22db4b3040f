"""PER d: the answers of a bucket in each window, with the automaton that counts (`counting.py`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, F64, I32, I64, Bools
from anabranch.binding.per import PerWindow
from anabranch.columns.counts import summed_counts
from anabranch.columns.local_times import local_codes
from anabranch.columns.times import TimeKind, decode_times, steps_of
from anabranch.pattern.automaton import Tables
from anabranch.pattern.counting import OUTSIDE, Counted, SpanCounts
from anabranch.pattern.groups import Groups
from anabranch.pattern.spec import PatternSpec
from anabranch.pattern.weights import Batch, weights_for
from anabranch.transport.per import Moment, window_begins


class Windows:
    """The counts of all chains of a bucket in their windows."""

    def __init__(self, spec: PatternSpec, per: PerWindow, groups: Groups) -> None:
        analysis = spec.analysis
        self._spec = spec
        self._per = per
        self._groups = groups
        self._counts = SpanCounts(weights_for(analysis.single, analysis.markov), per.at_least, not spec.direct)

    @property
    def unites(self) -> bool:
        """Whether the letters of several events at one instant are united."""
        return self._counts.weights.unites

    def step(self, batch: Batch, automaton: Tables, now: Moment) -> pa.Table:
        """Update the counts by a batch, and return those of the windows that are complete."""
        kind = self._spec.time_kind
        complete = BEGINNING
        if now.ended:
            complete = END
        elif now.watermark > BEGINNING:
            complete = int(window_of(np.array([now.watermark]), self._per, kind)[0])
        counted = self._counts.step(batch, automaton, lambda _, t: window_of(t, self._per, kind), complete)
        return self._direct_rows(counted) if self._spec.direct else self._combined_rows(counted)

    def _direct_rows(self, counted: Counted) -> pa.Table:
        """The rows of windows whose chains are groups."""
        p = np.minimum(counted.p[:, 0], 1.0)
        kept = (p > 0.0) & (p >= self._spec.least)
        numbers = [pa.array(p[kept]), pa.array(counted.expected[kept])]
        return self._table(counted.span[kept], counted.chain[kept], numbers)

    def _combined_rows(self, counted: Counted) -> pa.Table:
        """One row per window and group of this bucket: the distribution of the number of true answers."""
        window, group, p, expected = combined_counts(counted, self._groups.of_chains())
        counts = pa.FixedSizeListArray.from_arrays(pa.array(p.reshape(-1)), p.shape[1])
        return self._table(window, self._groups.first_chains()[group], [counts, pa.array(expected)])

    def _table(self, window: I64, chain: I64, numbers: list[pa.Array]) -> pa.Table:
        ends = window_times(window, self._per, self._spec.time_kind)
        arrays = [*ends, *self._groups.columns_of(chain), *numbers]
        fields = self._spec.answer_schema
        return pa.table([array.cast(field.type) for array, field in zip(arrays, fields, strict=True)], schema=fields)

    def end_results(self, chains: Bools) -> None:
        """Move the weight of some chains to state 0: their partial results are over. Open windows keep their counts."""
        self._counts.weights.end_results(chains & (self._counts.span == OUTSIDE))

    def is_new(self) -> Bools:
        """Which chains are as new ones, and in no window."""
        return self._counts.weights.is_new() & (self._counts.span == OUTSIDE)

    def keep(self, chains: Bools) -> None:
        """Remove all other chains."""
        self._counts.weights.keep(chains)
        self._counts.span, self._counts.expected = self._counts.span[chains], self._counts.expected[chains]

    def used_keys(self) -> I64:
        """The keys that the counts refer to."""
        return self._counts.weights.used_keys()

    def used_values(self) -> I32:
        """The value codes that the counts refer to."""
        return self._counts.weights.used_values()

    def renumber(self, keys: I64, values: I32) -> None:
        """Replace the numbers of keys and values by new ones."""
        self._counts.weights.renumber(keys, values)

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        return self._counts.weights.save() | {
            "windows": pa.table({"window": self._counts.span, "expected": self._counts.expected})
        }

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._counts.weights.load(tables)
        self._counts.span = tables["windows"]["window"].to_numpy().copy()
        self._counts.expected = tables["windows"]["expected"].to_numpy().copy()


def window_of(t: I64, per: PerWindow, kind: TimeKind) -> I64:
    """The number of the last window that has begun at each time: it never decreases with time."""
    window = steps_of(local_codes(t, per.zone), per.length, kind)
    if per.zone is not None:
        # Clocks that are set back show times of earlier windows again.
        while (begun := window_begins(per, window + 1, kind) <= t).any():
            window = window + begun
    return window


def window_times(window: I64, per: PerWindow, kind: TimeKind) -> list[pa.Array]:
    """The start and the end of each window."""
    return [decode_times(window_begins(per, window + later, kind), kind) for later in (0, 1)]


def combined_counts(counted: Counted, group_of: I64) -> tuple[I64, I64, F64, F64]:
    """The span, the group, the distribution of the sum of the counts of its chains, and the mean, for each."""
    groups = group_of[counted.chain]
    pairs, pair = np.unique(np.stack([counted.span, groups]), axis=1, return_inverse=True)
    none = np.maximum(1.0 - counted.p.sum(axis=1), 0.0)
    p = summed_counts(np.column_stack([none, counted.p]), pair.reshape(-1), pairs.shape[1])
    expected = np.bincount(pair.reshape(-1), counted.expected, minlength=pairs.shape[1]).astype(np.float64)
    return pairs[0], pairs[1], p, expected
