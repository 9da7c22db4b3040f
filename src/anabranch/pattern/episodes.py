"""PER EPISODE: runs of instants at which a group is true with a probability above a bound.

A batch is processed twice. The first pass gives the probability of each instant, and so the episodes. The second one
runs the automaton with a bit that says whether the chain was true since the episode began (`counting.py`, counting to
1). It gives the probability that an instant is the first one at which the chain is true; their sum up to the last
instant of the episode is the probability that the chain was true at any of them. Chains are independent.

Whether two instants are consecutive depends on all keys of the streams, so every bucket gets all instants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, F64, I32, I64, Bools
from anabranch.binding.per import PerEpisode
from anabranch.columns.times import TimeKind, decode_times, later
from anabranch.pattern.automaton import Tables
from anabranch.pattern.counting import Marks, counting_tables, step_with_marks
from anabranch.pattern.groups import Groups
from anabranch.pattern.spec import PatternSpec
from anabranch.pattern.weights import Answers, Batch, weights_for
from anabranch.transport.per import Moment

#: A probability that exceeds the number of ABOVE by this share, or less, is equal to it: sums are rounded.
_ROUNDING = 1e-12

#: The names of the tables of the second pass in saved state begin with this.
_SINCE = "since "


@dataclass(frozen=True, slots=True)
class Touching:
    """When two answers of a group belong to one episode: at most `gap` apart, or at consecutive instants."""

    gap: float
    kind: TimeKind

    def holds(self, before: I64, after: I64, instants: I64) -> Bools:
        """Whether each time `after` touches the time `before`; BEGINNING is no time. `instants` is sorted."""
        index = np.searchsorted(instants, before)
        following = np.append(instants, [BEGINNING, BEGINNING])[np.minimum(index, len(instants)) + 1]
        consecutive = np.isin(before, instants) & (following == after)
        return (before > BEGINNING) & (consecutive | (after <= self.reach(before)))

    def reach(self, before: I64) -> I64:
        """The latest time that touches a time, whatever the instants are."""
        times = np.where(before > BEGINNING, before, 0)
        return np.where(before > BEGINNING, later(times, self.gap, self.kind), BEGINNING)


@dataclass(slots=True)
class Runs:
    """Episodes, sorted by group and time."""

    group: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    t_from: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    t_to: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    count: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    expected: F64 = field(default_factory=lambda: np.zeros(0))

    def where(self, chosen: Bools | I64) -> Runs:
        """The episodes selected by a mask or by indexes."""
        return Runs(*(getattr(self, name)[chosen] for name in Runs.__slots__))

    def arrays(self) -> dict[str, I64 | F64]:
        """The columns by name."""
        return {name: getattr(self, name) for name in Runs.__slots__}


def extend_runs(
    before: Runs, group: I64, t: I64, p: F64, instants: I64, touching: Touching
) -> tuple[Runs, Bools, Bools]:
    """The episodes after more answers above the bound, sorted by group and time.

    Returns
    -------
    The episodes; which of them are new; and which have some of these answers.
    """
    groups = np.concatenate([before.group, group])
    times = np.concatenate([before.t_to, t])
    order = np.lexsort((times, groups))
    groups, times = groups[order], times[order]
    counts = np.concatenate([before.count, np.ones(len(t), np.int64)])[order]
    sums = np.concatenate([before.expected, p])[order]
    is_old = order < len(before.group)
    previous = np.concatenate([[BEGINNING], times[:-1]])
    previous[np.concatenate([[True], np.diff(groups) != 0])[: len(groups)]] = BEGINNING
    begins = is_old | ~touching.holds(previous[: len(times)], times, instants)
    number = np.cumsum(begins) - 1
    n_runs = int(begins.sum())
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(times)) - 1
    t_from = times[first].copy()
    t_from[is_old[first]] = before.t_from
    runs = Runs(
        groups[first],
        t_from,
        times[last] if n_runs else times,
        np.bincount(number, counts, minlength=n_runs).astype(np.int64),
        np.bincount(number, sums, minlength=n_runs).astype(np.float64),
    )
    return runs, ~is_old[first], np.bincount(number, ~is_old, minlength=n_runs) > 0


def group_answers(answers: Answers, group_of: I64, alone: bool) -> tuple[I64, I64, F64]:
    """The probability that some chain of a group is true, for each group and time; sorted by both.

    `alone` says that every chain is a group.
    """
    chains, times, p = answers
    groups = group_of[chains]
    order = np.lexsort((times, groups))
    groups, times, p = groups[order], times[order], p[order]
    if alone:
        return groups, times, p
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(groups) != 0) | (np.diff(times) != 0)])[: len(p)])
    with np.errstate(divide="ignore"):
        log_none = np.add.reduceat(np.log1p(-p), begins) if len(p) else p
    return groups[begins], times[begins], -np.expm1(log_none)


def is_above(p: F64, above: float) -> Bools:
    """Which probabilities are above the bound of the clause."""
    return p > above * (1 + _ROUNDING)


class Episodes:
    """The episodes of all groups of a bucket; it has all chains of its groups."""

    def __init__(self, spec: PatternSpec, per: PerEpisode, groups: Groups) -> None:
        analysis = spec.analysis
        self._spec = spec
        self._per = per
        self._groups = groups
        self._touching = Touching(per.gap, spec.time_kind)
        self._weights = weights_for(analysis.single, analysis.markov)
        self._since = weights_for(analysis.single, analysis.markov)
        #: The episodes that have not ended.
        self._open = Runs()
        #: For each chain, P(true since the open episode of its group began): until its last instant, and after it.
        self._until = np.zeros(0)
        self._after = np.zeros(0)
        self._last_instant = BEGINNING

    @property
    def unites(self) -> bool:
        """Whether the letters of several events at one instant are united."""
        return self._weights.unites

    def step(self, batch: Batch, automaton: Tables, now: Moment) -> pa.Table:
        """Update the weights by a batch, and return the episodes that have ended."""
        n_chains = len(batch.starts) - 1
        group_of = self._groups.of_chains()
        self._weights.grow(n_chains, automaton.delta.shape[0])
        answers = self._weights.step(batch, automaton)
        group, t, p = group_answers(answers, group_of, self._spec.direct)
        above = is_above(p, self._per.above)
        instants = np.unique(np.concatenate([[self._last_instant], now.instants]))
        runs, is_new, is_longer = extend_runs(self._open, group[above], t[above], p[above], instants, self._touching)
        self._last_instant = int(instants[-1])
        until, after = self._true_since(batch, automaton, runs, is_new, is_longer, group_of)
        ended = self._ended(runs, now)
        table = self._table(runs.where(ended), self._probabilities(until, len(runs.group))[ended])
        self._keep(runs.where(~ended), np.flatnonzero(~ended), until, after, n_chains)
        return table

    def _ended(self, runs: Runs, now: Moment) -> Bools:
        """Which episodes can have no more answers."""
        if now.ended:
            return np.ones(len(runs.group), np.bool_)
        ended = np.concatenate([np.diff(runs.group) == 0, np.zeros(1, np.bool_)])[: len(runs.group)]
        passed = (self._last_instant > runs.t_to) & (now.watermark > self._touching.reach(runs.t_to))
        return ended | passed

    def _true_since(
        self, batch: Batch, automaton: Tables, runs: Runs, is_new: Bools, is_longer: Bools, group_of: I64
    ) -> tuple[_Pairs, _Pairs]:
        """For each episode and chain, P(true since it began): until its last instant, and after it."""
        n_chains = len(batch.starts) - 1
        tables = counting_tables(automaton, 1, distribution=False, only_new=True)
        self._since.grow(n_chains, tables.delta.shape[0])
        marks = _begin_marks(batch, runs.where(is_new), group_of)
        chain, times, first = step_with_marks(self._since, batch, tables, marks).events
        run = run_of(group_of[chain], times, runs)
        known = run >= 0
        run, chains, times, first = run[known], chain[known].astype(np.int64), times[known], first[known]
        until = times <= runs.t_to[run]
        # The sums so far belong to the episodes that were open; those behind the end count if it has moved.
        carried = np.flatnonzero(self._until + self._after > 0.0)
        old = np.searchsorted(runs.group, group_of[carried])
        moved = is_longer[old]
        return (
            _Pairs.summed(
                [run[until], old, old[moved]],
                [chains[until], carried, carried[moved]],
                [first[until], self._until[carried], self._after[carried[moved]]],
            ),
            _Pairs.summed(
                [run[~until], old[~moved]],
                [chains[~until], carried[~moved]],
                [first[~until], self._after[carried[~moved]]],
            ),
        )

    def _probabilities(self, until: _Pairs, n_runs: int) -> F64:
        """The probability that some chain was true in each episode."""
        p = np.minimum(until.p, 1.0)
        if self._spec.direct:
            return np.bincount(until.run, p, minlength=n_runs).astype(np.float64)
        with np.errstate(divide="ignore"):
            return -np.expm1(np.bincount(until.run, np.log1p(-p), minlength=n_runs))

    def _keep(self, runs: Runs, numbers: I64, until: _Pairs, after: _Pairs, n_chains: int) -> None:
        self._open = runs
        self._until, self._after = (pairs.by_chain(numbers, n_chains) for pairs in (until, after))

    def _table(self, runs: Runs, p: F64) -> pa.Table:
        spec = self._spec
        kept = (p > 0.0) & (p >= spec.least)
        runs, p = runs.where(kept), p[kept]
        chains = self._groups.first_chains()[runs.group]
        arrays = [decode_times(times, spec.time_kind) for times in (runs.t_from, runs.t_to)]
        arrays += [*self._groups.columns_of(chains), pa.array(runs.count), pa.array(p), pa.array(runs.expected)]
        return pa.table(arrays, schema=spec.answer_schema)

    def _outside(self) -> Bools:
        """Which chains are in no open episode: what they were since it began does not count."""
        return ~np.isin(self._groups.of_chains(), self._open.group)

    def end_results(self, chains: Bools) -> None:
        """Move the weight of some chains to state 0: their partial results are over."""
        chains = chains & self._outside()
        self._weights.end_results(chains)
        self._since.end_results(chains)

    def is_new(self) -> Bools:
        """Which chains are as new ones."""
        return self._weights.is_new() & self._outside()

    def keep(self, chains: Bools) -> None:
        """Remove all other chains; none of them is in an open episode."""
        group_of = self._groups.of_chains()
        firsts = np.unique(group_of[chains], return_index=True)
        number_of = np.zeros(len(group_of), np.int64)
        number_of[firsts[0][np.argsort(firsts[1])]] = np.arange(len(firsts[0]))
        group = number_of[self._open.group]
        self._open = replace(self._open, group=group).where(np.argsort(group, kind="stable"))
        self._weights.keep(chains)
        self._since.keep(chains)
        self._until, self._after = self._until[chains], self._after[chains]

    def used_keys(self) -> I64:
        """The keys that the weights refer to."""
        return np.concatenate([self._weights.used_keys(), self._since.used_keys()])

    def used_values(self) -> I32:
        """The value codes that the weights refer to."""
        return np.concatenate([self._weights.used_values(), self._since.used_values()])

    def renumber(self, keys: I64, values: I32) -> None:
        """Replace the numbers of keys and values by new ones."""
        self._weights.renumber(keys, values)
        self._since.renumber(keys, values)

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        since = {_SINCE + name: table for name, table in self._since.save().items()}
        return (
            self._weights.save()
            | since
            | {
                "episodes": pa.table(self._open.arrays()),
                "true since": pa.table({"until": self._until, "after": self._after}),
                "last instant": pa.table({"t": [self._last_instant]}),
            }
        )

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._weights.load(tables)
        prefix = "since "
        self._since.load(
            {name.removeprefix(prefix): table for name, table in tables.items() if name.startswith(prefix)}
        )
        self._open = Runs(**{name: tables["episodes"][name].to_numpy().copy() for name in Runs.__slots__})
        self._until = tables["true since"]["until"].to_numpy().copy()
        self._after = tables["true since"]["after"].to_numpy().copy()
        self._last_instant = tables["last instant"]["t"][0].as_py()


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A probability for some pairs of an episode and a chain."""

    run: I64
    chain: I64
    p: F64

    @classmethod
    def summed(cls, runs: Sequence[I64], chains: Sequence[I64], p: Sequence[F64]) -> _Pairs:
        """The sums over equal pairs."""
        parts = np.stack([np.concatenate(runs), np.concatenate(chains)])
        pairs, pair = np.unique(parts, axis=1, return_inverse=True)
        sums = np.bincount(pair.reshape(-1), np.concatenate(p), minlength=pairs.shape[1])
        return cls(pairs[0], pairs[1], sums.astype(np.float64))

    def by_chain(self, runs: I64, n_chains: int) -> F64:
        """The probability of each chain in those of these episodes that have it."""
        chosen = np.isin(self.run, runs)
        of_chain = np.zeros(n_chains)
        of_chain[self.chain[chosen]] = self.p[chosen]
        return of_chain


def _begin_marks(batch: Batch, runs: Runs, group_of: I64) -> Marks:
    """Marks where episodes begin, in every chain of their groups."""
    by_group = np.argsort(group_of, kind="stable")
    sorted_groups = group_of[by_group]
    lo, hi = (np.searchsorted(sorted_groups, runs.group, side=side) for side in ("left", "right"))
    run = np.repeat(np.arange(len(runs.group)), hi - lo)
    chain = by_group[np.arange(len(run)) - np.repeat(np.cumsum(hi - lo) - (hi - lo), hi - lo) + lo[run]]
    times = batch.t[batch.rows]
    row_chain = np.repeat(np.arange(len(batch.starts) - 1), np.diff(batch.starts))
    before = _search(row_chain, times, chain, runs.t_from[run], "left")
    return Marks.of(chain, before)[0]


def run_of(group: I64, t: I64, runs: Runs) -> I64:
    """The last episode of each group that has begun at t; -1 if none has."""
    run = _search(runs.group, runs.t_from, group, t, "right") - 1
    has_begun = (run >= 0) & (runs.group[np.maximum(run, 0)] == group) if len(runs.group) else np.zeros(len(run), bool)
    return np.where(has_begun, run, -1)


def _search(first: I64, second: I64, wanted_first: I64, wanted_second: I64, side: str) -> I64:
    """`np.searchsorted` for pairs: the index of each wanted pair among sorted pairs."""
    distinct, code = np.unique(np.concatenate([second, wanted_second]), return_inverse=True)
    size = len(distinct) + 1
    known = first.astype(np.int64) * size + code[: len(second)]
    wanted = wanted_first.astype(np.int64) * size + code[len(second) :]
    return np.searchsorted(known, wanted, side="left" if side == "left" else "right")
