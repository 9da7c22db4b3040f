"""Runs safe plans over an archive: O(T^2) time for T instants and each binding of a regular leaf, O(T) memory.

Every part of a plan computes, for each instant a in order, the probability that the part is true at *no* instant of
[a, b], for every b >= a. It yields one vector of logarithms per a, so only vectors are in memory, no T x T matrix:

- a regular leaf runs its chains from the weights at a, with an absorbing accepting state;
- a projection adds the logarithms of its bindings, which are independent;
- an inner sequence uses two running sums over the last instant at which its goal matched.

The outermost sequence sums, over the last instant a at which its head was true, the probability that the goal's first
match after a is at t and is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.pattern import kernel
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.automaton import NO_TICKS, Automaton, RegularMachine, Tables, accept_bit, match_bit
from anabranch.pattern.safe_plan import Project, Reg, Seq
from anabranch.pattern.weights import Batch, Weights, weights_for

#: The letters of a single goal: no match, a match, an accepted match.
_NOTHING, _MATCH, _ACCEPTED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Events:
    """The rows of one chain of the query, cleaned, and sorted by instant, key and previous value.

    `instant` numbers the distinct `times` of the chain; `mask` has the symbols of each row's event (`automaton.py`).
    """

    instant: I64
    stream: I32
    stream_key: I32
    key: I32
    model: I32
    prev: I32
    value: I32
    p: F64
    mask: I64
    times: I64
    n_values: int

    @property
    def n_instants(self) -> int:
        """The number of distinct times."""
        return len(self.times)

    def where(self, chosen: Bools) -> Events:
        """The rows for which `chosen` holds."""
        names = ("instant", "stream", "stream_key", "key", "model", "prev", "value", "p", "mask")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def of_goals(self, goals: range) -> Events:
        """All rows of the keys that ever match one of these goals, with the symbols of these goals only."""
        symbols = sum(match_bit(goal) | accept_bit(goal) for goal in goals)
        matching_keys = np.unique(self.key[self.mask & symbols != 0])
        chosen = self.where(np.isin(self.key, matching_keys))
        return replace(chosen, mask=chosen.mask & symbols)


@dataclass(frozen=True, slots=True)
class _Tables:
    delta: I32
    accept: Bools
    union: I32
    ticks: I32 = field(default_factory=lambda: NO_TICKS)


class SafePlan:
    """The safe plan of one query; `run` runs it over one chain.

    Parameters
    ----------
    plan : the part of the plan below the projection of the chain's variables
    analysis : which goals have a `+` or a NOT
    bindings : numbers the bindings of variables
    """

    def __init__(self, plan: Seq, analysis: PatternAnalysis, bindings: Bindings) -> None:
        self._plan = plan
        self._kleene = analysis.kleene
        self._absent = analysis.absent
        self._bindings = bindings

    def run(self, events: Events) -> F64:
        """The probability that the query is true, for each instant."""
        head = self._during(self._plan.head, events)
        matches = _Matches(events.of_goals(range(self._plan.goal, self._plan.goal + 1)), self._plan.goal)
        before = np.zeros(events.n_instants)
        if self._kleene[self._plan.goal]:
            before[1:] = -np.expm1(next(head)[:-1])
            return matches.at_each_instant() * before
        answers = np.zeros(events.n_instants)
        earlier = next(head, None)
        for after in matches.first_after_each():
            later = next(head, None)
            if earlier is None or later is None:
                break
            # The head was last true at a: true during [a, t - 1], but not during [a + 1, t - 1].
            answers[1:] += _difference(later, earlier)[:-1] * after[1:]
            earlier = later
        return answers

    def during(self, events: Events, firsts: I64, lasts: I64) -> F64:
        """The probability that the query is true at some instant from a first to a last one.

        Parameters
        ----------
        events : Events
        firsts, lasts : indexes of instants, both in increasing order
        """
        p = np.zeros(len(firsts))
        number = 0
        for start, log_none in enumerate(self._inner(self._plan, events)):
            while number < len(firsts) and firsts[number] == start:
                p[number] = -np.expm1(log_none[lasts[number]])
                number += 1
        return p

    def has_disjoint_keys(self, events: Events) -> bool:
        """Whether no key feeds both sides of a sequence: the plan is valid for these rows."""
        return self._feeding_keys(self._plan, events) is not None

    def _feeding_keys(self, part: Reg | Seq, events: Events, variables: tuple[str, ...] = ()) -> I32 | None:
        """The keys that have an effect on a part; None if a key feeds both sides of a sequence."""
        if isinstance(part, Seq):
            head = self._feeding_keys(part.head.part, events, part.head.variables)
            last = np.unique(events.key[events.mask & match_bit(part.goal) != 0])
            return None if head is None or np.isin(last, head).any() else np.union1d(head, last)
        # A binding for which some goal accepts no event is never true.
        leaf = events.of_goals(range(part.goals))
        binding = self._bindings(variables, part.goals, leaf)
        useful = np.unique(binding)
        for goal in (goal for goal in range(part.goals) if not self._absent[goal]):
            useful = np.intersect1d(useful, binding[leaf.mask & accept_bit(goal) != 0])
        return np.unique(leaf.key[np.isin(binding, useful) & (leaf.mask != 0)])

    def _during(self, plan: Project, events: Events) -> Iterator[F64]:
        """For each instant a: log P(the part is true at no instant of [a, b]) for every b; 0 where b < a."""
        if isinstance(plan.part, Seq):
            return self._some_binding(plan.part, plan.variables, events)
        leaf_events = events.of_goals(range(plan.part.goals))
        chain = self._bindings(plan.variables, plan.part.goals, leaf_events)
        machine = RegularMachine(self._kleene[: plan.part.goals], absent=self._absent[: plan.part.goals])
        return _Leaf(leaf_events, chain, machine).during()

    def _some_binding(self, part: Seq, variables: tuple[str, ...], events: Events) -> Iterator[F64]:
        """`_during` of a sequence below a projection: the sum over the bindings."""
        part_events = events.of_goals(range(part.goal + 1))
        binding = self._bindings(variables, part.goal + 1, part_events)
        sequences = [self._inner(part, part_events.where(binding == code)) for code in np.unique(binding)]
        for _ in range(events.n_instants):
            logarithms = [next(sequence) for sequence in sequences]
            yield np.sum(logarithms, axis=0) if logarithms else np.zeros(events.n_instants)

    def _inner(self, plan: Seq, events: Events) -> Iterator[F64]:
        """`_during` of an inner sequence: the stream of its goal is not MARKOV, and every match is accepted."""
        goal_events = events.of_goals(range(plan.goal, plan.goal + 1))
        match = _Matches(goal_events, plan.goal).at_each_instant()
        head = self._during(plan.head, events)
        since_first: F64 | None = None
        before = np.zeros(events.n_instants)
        for start, logarithms in enumerate(head):
            if since_first is None:
                since_first = np.zeros(events.n_instants)
                since_first[1:] = -np.expm1(logarithms[:-1])
                before = since_first.copy()
            with np.errstate(divide="ignore"):
                true = kernel.true_since(match, since_first if self._kleene[plan.goal] else before, start)
                yield np.log1p(-true)
            # From the next start on, a match at this instant has consumed the results of the head before it.
            from_here = np.zeros(events.n_instants)
            from_here[1:] = -np.expm1(logarithms[:-1])
            before = match[start] * from_here + (1.0 - match[start]) * before


class Bindings(Protocol):
    """Numbers the bindings of variables."""

    def __call__(self, variables: tuple[str, ...], goals: int, events: Events) -> I32:
        """The code of each row's binding of the variables, which are variables of the first `goals` goals."""


def _difference(later: F64, earlier: F64) -> F64:
    """exp(later) - exp(earlier), where later >= earlier, without cancellation; both may be -inf."""
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isneginf(later), 0.0, -np.expm1(np.minimum(earlier - later, 0.0)))
    return np.exp(later) * ratio


# ---------------------------------------------------------------- chains that run again from every instant


class _Chains:
    """Chains of events with their weights: `advance` processes one instant, `ahead` looks at all later ones."""

    #: The letter of each row's event, in the automaton whose tables are used.
    letter: I32

    def __init__(self, events: Events, chain: I32) -> None:
        self._n_chains = int(chain.max(initial=-1)) + 1
        order, _ = kernel.order_rows(
            chain, events.instant, events.key, events.prev, events.value, events.p, self._n_chains
        )
        self._chain = chain[order]
        self._instant = events.instant[order]
        self._order = order
        self._events = events
        pairs = len(np.unique(chain.astype(np.int64) * (int(events.key.max(initial=0)) + 1) + events.key))
        markov = events.model == kernel.MARKOV
        self.n_instants = events.n_instants
        self.weights: Weights = weights_for(pairs == self._n_chains and bool(markov.all()), bool(markov.any()))

    def advance(self, instant: int, tables: Tables) -> None:
        """Update the weights by the events of one instant."""
        self._run(self.weights, self._instant == instant, tables)

    def ahead(self, instant: int, tables: Tables) -> F64:
        """The probability that each chain accepts at each instant from `instant` on; the weights are not changed."""
        return self._run(deepcopy(self.weights), self._instant >= instant, tables)

    def _run(self, weights: Weights, chosen: Bools, tables: Tables) -> F64:
        accepted = np.zeros((self._n_chains, self.n_instants))
        rows, events = self._order[chosen], self._events
        starts = np.concatenate([[0], np.cumsum(np.bincount(self._chain[chosen], minlength=self._n_chains))])
        batch = Batch(
            rows, starts.astype(np.int64), events.instant, events.key, events.model, events.prev, events.value,
            events.p, self.letter, events.n_values,
        )  # fmt: skip
        weights.grow(self._n_chains, tables.delta.shape[0])
        chains, instants, p = weights.step(batch, tables)
        accepted[chains, instants] = p
        return accepted


class _Leaf:
    """A regular part: one chain for each binding of its variables."""

    def __init__(self, events: Events, chain: I32, machine: RegularMachine) -> None:
        self._chains = _Chains(events, chain)
        automaton = Automaton(machine, union_closed=self._chains.weights.unites)
        masks, mask_index = np.unique(events.mask, return_inverse=True)
        automaton.extend(masks.tolist())
        self._chains.letter = automaton.index_of(masks.tolist())[mask_index]
        self._tables = automaton
        self._absorbing = _absorbing(automaton)

    def during(self) -> Iterator[F64]:
        """For each instant a: log P(no chain accepts in [a, b]), for every b."""
        for instant in range(self._chains.n_instants):
            first = self._chains.ahead(instant, self._absorbing)
            with np.errstate(divide="ignore"):
                yield np.log1p(-np.minimum(np.cumsum(first, axis=1), 1.0)).sum(axis=0)
            self._chains.advance(instant, self._tables)


def _absorbing(automaton: Tables) -> _Tables:
    """The automaton with one more state, which a chain enters when it accepts and never leaves."""
    n_states, n_letters = automaton.delta.shape
    delta = np.where(automaton.accept, n_states, automaton.delta)
    sink = np.full((1, n_letters), n_states)
    accept = np.concatenate([automaton.accept, np.zeros((1, n_letters), np.bool_)])
    return _Tables(np.concatenate([delta, sink]).astype(np.int32), accept, automaton.union)


class _Matches:
    """The matches of one goal: each key is a chain."""

    _UNION = np.array([[0, 1, 2], [1, 1, 2], [2, 2, 2]], np.int32)
    #: Stays in state 0: every match counts.
    _FORGETS = np.zeros((2, 3), np.int32)
    #: Goes to state 1 at the first match, and stays there: only the first match counts.
    _ENDS = np.array([[0, 1, 1], [1, 1, 1]], np.int32)
    _AT_MATCH = np.array([[False, True, True], [False, False, False]])
    _AT_ACCEPTED = np.array([[False, False, True], [False, False, False]])

    def __init__(self, events: Events, goal: int) -> None:
        _, chain = np.unique(events.key, return_inverse=True)
        matched, accepted = (events.mask & bit != 0 for bit in (match_bit(goal), accept_bit(goal)))
        self._chains = _Chains(events, chain.astype(np.int32))
        self._chains.letter = np.where(accepted, _ACCEPTED, np.where(matched, _MATCH, _NOTHING)).astype(np.int32)

    def at_each_instant(self) -> F64:
        """P(some key matches at t), for each instant t."""
        matched = self._chains.ahead(0, _Tables(self._FORGETS, self._AT_MATCH, self._UNION))
        with np.errstate(divide="ignore"):
            return -np.expm1(np.log1p(-np.minimum(matched, 1.0)).sum(axis=0))

    def first_after_each(self) -> Iterator[F64]:
        """For each instant a: P(the first match after a is at t, and a match at t is accepted), for each t."""
        for instant in range(self._chains.n_instants):
            self._chains.advance(instant, _Tables(self._FORGETS, self._AT_MATCH, self._UNION))
            first = self._chains.ahead(instant + 1, _Tables(self._ENDS, self._AT_MATCH, self._UNION))
            accepted = self._chains.ahead(instant + 1, _Tables(self._ENDS, self._AT_ACCEPTED, self._UNION))
            unmatched = np.ones((first.shape[0], first.shape[1] + 1))
            unmatched[:, 1:] = 1.0 - np.minimum(np.cumsum(first, axis=1), 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(accepted > 0.0, np.minimum(accepted / unmatched[:, :-1], 1.0), 0.0)
                none_before = np.log(unmatched[:, :-1]).sum(axis=0)
                yield np.exp(none_before) * -np.expm1(np.log1p(-share).sum(axis=0))
