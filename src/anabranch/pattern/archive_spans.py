"""PER over an archive: how often a query is true in windows or episodes, exactly where it can be, else by sampling.

The methods are those of `archive.py`, with a counter: the automaton has it in its states. The safe plan gives the
probability of being true at any instant of a span, where its last goal allows that. If some chain of a group is too
large for both, the whole group is carried from instant to instant (`tally.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import numpy as np
import pyarrow as pa

from anabranch.arrays import END, F64, I64
from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.errors import TooLarge
from anabranch.pattern.archive import ArchiveOperator
from anabranch.pattern.counting import OUTSIDE, Counted, SpanCounts
from anabranch.pattern.episodes import Runs, Touching, extend_runs, group_answers, is_above, run_of
from anabranch.pattern.general import answer_table
from anabranch.pattern.interval_plans import by_plan, why_not_by_intervals
from anabranch.pattern.safe import SafePlan
from anabranch.pattern.spec import GroupSpec
from anabranch.pattern.tally import EXACT, Answer, Episodes
from anabranch.pattern.windows import combined_counts, window_of
from anabranch.transport.per import Moment


class _Extents(Protocol):
    """Where the spans of each group are."""

    @property
    def times(self) -> int:
        """How often the query must be true in a span."""

    def of(self, group: I64, t: I64) -> I64:
        """The number of the span of each group and time, or `OUTSIDE`."""

    def answers(self, spans: I64, p: F64, expected: F64) -> list[Answer]:
        """The answers of some spans, with their probabilities and expected counts."""


@dataclass(frozen=True, slots=True)
class _Windows:
    spec: GroupSpec
    per: PerWindow

    @property
    def times(self) -> int:
        return self.per.at_least

    def of(self, group: I64, t: I64) -> I64:
        return window_of(t, self.per, self.spec.time_kind)

    def answers(self, spans: I64, p: F64, expected: F64) -> list[Answer]:
        return [Answer(*row) for row in zip(spans, spans, _log_none(p), repeat(EXACT), expected, strict=False)]


@dataclass(frozen=True, slots=True)
class _Episodes:
    spec: GroupSpec
    runs: Runs
    times: int = 1

    def of(self, group: I64, t: I64) -> I64:
        run = run_of(group, t, self.runs)
        inside = (run >= 0) & (t <= np.append(self.runs.t_to, OUTSIDE)[run])
        return np.where(inside, run, OUTSIDE)

    def answers(self, spans: I64, p: F64, expected: F64) -> list[Answer]:
        runs = self.runs
        columns = (runs.t_from[spans], runs.t_to[spans], _log_none(p), repeat(EXACT), runs.expected[spans])
        return [Answer(*row) for row in zip(*columns, runs.count[spans].tolist(), strict=False)]


def _log_none(p: F64) -> F64:
    with np.errstate(divide="ignore"):
        return np.log1p(-np.minimum(p, 1.0))


class SpanOperator(ArchiveOperator):
    """The operator of one bucket of a PATTERN query with PER d or PER EPISODE over an archive."""

    def __init__(self, spec: GroupSpec, per: PerWindow | PerEpisode) -> None:
        super().__init__(spec)
        self._per = per

    def _answers(self) -> pa.Table:
        """The rows of windows or episodes."""
        codes, groups = self._groups(len(self._received.starts) - 1)
        group_of = codes.astype(np.int64)
        extents, unknown = self._extents(group_of)
        counted, too_large = self._counted(extents, group_of)
        carried = np.unique(group_of[np.array([*unknown, *too_large], np.int64)])
        exact = ~np.isin(group_of[counted.chain], carried)
        counted = Counted(*(getattr(counted, name)[exact] for name in Counted.__slots__))
        span, group, p, expected = combined_counts(counted, group_of)
        answers = extents.answers(span, p[:, -1], expected)
        in_groups = group.tolist()
        with_rows = np.flatnonzero(np.isin(group_of, carried) & (np.diff(self._received.starts) > 0)).tolist()
        now = Moment(END, ended=True, instants=self._received.instants)
        for number, tally, histories in self._carried(group_of, with_rows):
            if isinstance(tally, Episodes):
                tally.instants = now.instants
            found = [*tally.advance(histories), *tally.complete(now)]
            answers += found
            in_groups += [number] * len(found)
        rows = pa.array(in_groups, pa.int64())
        columns = [groups.column(index).take(rows) for index in range(len(self._analysis.group_by))]
        return answer_table(self._spec, answers, columns)

    def _extents(self, group_of: I64) -> tuple[_Extents, list[int]]:
        """The spans, and the chains of groups whose spans are not known."""
        per = self._per
        if isinstance(per, PerWindow):
            return _Windows(self._spec, per), []
        answers, too_large = self._exact()
        group, t, p = group_answers(answers, group_of, alone=False)
        above = is_above(p, per.above)
        touching = Touching(per.gap, self._spec.time_kind)
        runs, _, _ = extend_runs(Runs(), group[above], t[above], p[above], self._received.instants, touching)
        return _Episodes(self._spec, runs), too_large

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
        # Whether a chain is too large must not depend on the other chains of its bucket.
        parts, too_large = [], []
        for chain in chains:
            self._sets.next_chain()
            try:
                parts.append(self._counted_by_automaton([chain], extents, group_of))
            except TooLarge:
                too_large.append(chain)
        return _joined(parts), too_large

    def _counted_by_automaton(self, chains: Sequence[int], extents: _Extents, group_of: I64) -> Counted:
        weights, automaton, batch = self._automaton_of(chains)
        number = np.array(chains, np.int64)
        counts = SpanCounts(weights, extents.times, distribution=True)
        counted = counts.step(batch, automaton, lambda chain, t: extents.of(group_of[number[chain]], t), END)
        return Counted(number[counted.chain], counted.span, counted.p, counted.expected)

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


def _joined(parts: Sequence[Counted]) -> Counted:
    if not parts:
        return Counted(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 1)), np.zeros(0))
    return Counted(*(np.concatenate([getattr(part, name) for part in parts]) for name in Counted.__slots__))
