"""PER over an archive: how often a query is true in windows or episodes, exactly where it can be, else by sampling.

The methods are those of `archive.py`, with a counter: the automaton and the joint state have it in their states, and
sampled worlds have it as bits. The safe plan gives the probability of being true at any instant of a span, where its
last goal allows that. If some chain of a group is too large for all of them, the whole group is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from anabranch.arrays import END, F64, I64
from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.columns.times import decode_times
from anabranch.errors import TooLarge
from anabranch.pattern import joint
from anabranch.pattern.analysis import by_plan, why_not_by_intervals
from anabranch.pattern.archive import ArchiveOperator
from anabranch.pattern.counting import OUTSIDE, Counted, SpanCounts
from anabranch.pattern.episodes import Runs, Touching, extend_runs, is_above, run_of
from anabranch.pattern.safe import SafePlan
from anabranch.pattern.sampling import Spans, estimate
from anabranch.pattern.spec import ArchiveSpec
from anabranch.pattern.windows import combined_counts, window_of, window_times


class _Extents(Protocol):
    """Where the spans of each group are."""

    @property
    def times(self) -> int:
        """How often the query must be true in a span."""

    def of(self, group: I64, t: I64) -> I64:
        """The number of the span of each group and time, or `OUTSIDE`."""

    def columns(self, spans: I64, expected: F64) -> tuple[list[pa.Array], list[pa.Array], F64]:
        """Of some spans: the start and the end, the columns `count` if there is one, and the expected counts."""


@dataclass(frozen=True, slots=True)
class _Windows:
    spec: ArchiveSpec
    per: PerWindow

    @property
    def times(self) -> int:
        return self.per.at_least

    def of(self, group: I64, t: I64) -> I64:
        return window_of(t, self.per, self.spec.time_kind)

    def columns(self, spans: I64, expected: F64) -> tuple[list[pa.Array], list[pa.Array], F64]:
        return window_times(spans, self.per, self.spec.time_kind), [], expected


@dataclass(frozen=True, slots=True)
class _Episodes:
    spec: ArchiveSpec
    runs: Runs
    times: int = 1

    def of(self, group: I64, t: I64) -> I64:
        run = run_of(group, t, self.runs)
        inside = (run >= 0) & (t <= np.append(self.runs.t_to, OUTSIDE)[run])
        return np.where(inside, run, OUTSIDE)

    def columns(self, spans: I64, expected: F64) -> tuple[list[pa.Array], list[pa.Array], F64]:
        runs, kind = self.runs, self.spec.time_kind
        times = [decode_times(t[spans], kind) for t in (runs.t_from, runs.t_to)]
        return times, [pa.array(runs.count[spans])], runs.expected[spans]


@dataclass(slots=True)
class _Result:
    """Columns of the result, one list entry per part."""

    group: list[I64] = field(default_factory=list)
    span: list[I64] = field(default_factory=list)
    numbers: list[tuple[F64, F64, F64]] = field(default_factory=list)
    expected: list[F64] = field(default_factory=list)
    method: list[str] = field(default_factory=list)

    def add(self, group: I64, span: I64, numbers: tuple[F64, F64, F64], expected: F64, method: str) -> None:
        self.group.append(group)
        self.span.append(span)
        self.numbers.append(numbers)
        self.expected.append(expected)
        self.method += [method] * len(group)


class SpanOperator(ArchiveOperator):
    """The operator of one bucket of a PATTERN query with PER d or PER EPISODE over an archive."""

    def __init__(self, spec: ArchiveSpec, per: PerWindow | PerEpisode) -> None:
        super().__init__(spec)
        self._per = per

    def _answers(self) -> pa.Table:
        """The rows of windows or episodes."""
        codes, groups = self._groups(len(self._received.starts) - 1)
        group_of = codes.astype(np.int64)
        extents, guessed = self._extents(group_of)
        counted, too_large = self._counted(extents, group_of)
        sampled = sorted({*group_of[np.array(too_large, np.int64)].tolist(), *guessed})
        exact = ~np.isin(group_of[counted.chain], sampled)
        counted = Counted(*(getattr(counted, name)[exact] for name in Counted.__slots__))
        span, group, p, expected = combined_counts(counted, group_of)
        result = _Result()
        result.add(group, span, (p[:, -1],) * 3, expected, "exact")
        for number in sampled:
            with_rows = (group_of == number) & (np.diff(self._received.starts) > 0)
            self._sample_spans(number, np.flatnonzero(with_rows).tolist(), extents, result)
        return self._table(result, extents, groups)

    def _extents(self, group_of: I64) -> tuple[_Extents, list[int]]:
        """The spans, and the groups whose spans depend on sampled probabilities."""
        per = self._per
        if isinstance(per, PerWindow):
            return _Windows(self._spec, per), []
        rows = [
            (group, t, probability, method)
            for (group, t), (probability, _, _, method) in sorted(self._rows_of_instants(group_of).items())
            if is_above(np.array([probability]), per.above)[0]
        ]
        group, t = (np.array([row[column] for row in rows], np.int64) for column in range(2))
        p = np.array([row[2] for row in rows], np.float64)
        touching = Touching(per.gap, self._spec.time_kind)
        runs, _, _ = extend_runs(Runs(), group, t, p, self._received.instants, touching)
        return _Episodes(self._spec, runs), sorted({row[0] for row in rows if row[3] != "exact"})

    # ------------------------------------------------------------ exact counts

    def _counted(self, extents: _Extents, group_of: I64) -> tuple[Counted, list[int]]:
        """The counts of all chains that can be counted exactly, and the other chains."""
        chains = np.flatnonzero(np.diff(self._received.starts)).tolist()
        if self._analysis.query.method == "SAMPLING":
            return _joined([]), chains
        sequence = by_plan(self._analysis)
        if sequence is not None and extents.times == 1 and why_not_by_intervals(self._analysis, inner=True) is None:
            plan = SafePlan(sequence, self._analysis, self._bindings)
            return _joined([self._span_by_plan(plan, chain, extents, group_of) for chain in chains]), []
        try:
            return self._counted_by_automaton(chains, extents, group_of), []
        except TooLarge:
            pass
        parts, too_large = [], []
        for chain in chains:
            self._sets.next_chain()
            try:
                parts.append(self._counted_alone(chain, extents, group_of, others=len(chains) > 1))
            except TooLarge as error:
                self._require_sampling(error)
                too_large.append(chain)
        return _joined(parts), too_large

    def _counted_by_automaton(self, chains: Sequence[int], extents: _Extents, group_of: I64) -> Counted:
        weights, automaton, batch = self._automaton_of(chains)
        number = np.array(chains, np.int64)
        counts = SpanCounts(weights, extents.times, distribution=True)
        counted = counts.step(batch, automaton, lambda chain, t: extents.of(group_of[number[chain]], t), END)
        return Counted(number[counted.chain], counted.span, counted.p, counted.expected)

    def _counted_alone(self, chain: int, extents: _Extents, group_of: I64, others: bool) -> Counted:
        """The counts of one chain. Whether it is too large must not depend on the other chains of its bucket."""
        if others:
            try:
                return self._counted_by_automaton([chain], extents, group_of)
            except TooLarge:
                pass
        (rows,) = self._rows_of([chain])
        self._sets.next_chain()
        span_of, most_steps = _of_group(extents, int(group_of[chain])), joint.MOST_STEPS * self._factor
        history = self._histories.of(rows)
        spans = list(joint.joint_counts(self._sets, history, most_steps, span_of, extents.times))
        numbers, p, expected = zip(*spans, strict=True) if spans else ((), np.zeros((0, extents.times)), ())
        return Counted(np.full(len(spans), chain), np.array(numbers, np.int64), np.array(p), np.array(expected, float))

    def _span_by_plan(self, plan: SafePlan, chain: int, extents: _Extents, group_of: I64) -> Counted:
        """The probability that a chain is true in each span, by its safe plan."""
        events = self._events_of(chain)
        times, single = events.times, plan.run(events)
        span = extents.of(np.full(len(times), group_of[chain]), times)
        begins = np.flatnonzero(np.concatenate([[True], np.diff(span) != 0])[: len(span)])
        ends = np.append(begins[1:], len(span)) - 1
        expected = np.add.reduceat(single, begins) if len(span) else single
        kept = (span[begins] != OUTSIDE) & (expected > 0.0)
        begins, ends, expected = begins[kept], ends[kept], expected[kept]
        p = np.minimum(plan.during(events, begins, ends), 1.0)
        return Counted(np.full(len(p), chain), span[begins], p.reshape(-1, 1), expected)

    # ------------------------------------------------------------ sampling

    def _sample_spans(self, group: int, chains: list[int], extents: _Extents, result: _Result) -> None:
        """Add the rows of a group whose chains are all sampled."""
        query = self._analysis.query
        histories = [self._histories.of(rows) for rows in self._rows_of(chains) if len(rows)]
        spans = Spans(_of_group(extents, group), extents.times)
        sample = estimate(self._machine, histories, query.accuracy, query.confidence, spans)
        self.worlds_drawn += sample.worlds
        numbers = (sample.probability, sample.lower, sample.upper)
        result.add(np.full(len(sample.t), group), sample.t, numbers, sample.expected, "sampling")

    def _table(self, result: _Result, extents: _Extents, groups: pa.Table) -> pa.Table:
        group, span, expected = (np.concatenate(parts) for parts in (result.group, result.span, result.expected))
        p, lower, upper = (np.minimum(np.concatenate(parts), 1.0) for parts in zip(*result.numbers, strict=True))
        kept = (p > 0.0) & (p >= self._spec.least)
        times, counts, expected = extents.columns(span[kept], expected[kept])
        rows = pa.array(group[kept])
        arrays = [*times, *(groups.column(index).take(rows) for index in range(len(self._analysis.group_by))), *counts]
        arrays += [pa.array(numbers) for numbers in (p[kept], expected, lower[kept], upper[kept])]
        arrays.append(pa.array(result.method, pa.string()).filter(pa.array(kept)))
        return pa.table(arrays, schema=self._spec.answer_schema)


def _of_group(extents: _Extents, group: int) -> _SpanOfTime:
    """The span of one time, for one group."""
    return cache(lambda t: int(extents.of(np.array([group]), np.array([t]))[0]))


class _SpanOfTime(Protocol):
    def __call__(self, t: int, /) -> int: ...


def _joined(parts: Sequence[Counted]) -> Counted:
    if not parts:
        return Counted(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 1)), np.zeros(0))
    return Counted(*(np.concatenate([getattr(part, name) for part in parts]) for name in Counted.__slots__))
