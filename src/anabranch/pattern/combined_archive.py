"""Combinations over an archive whose operands are not all regular, or whose state may be large.

Each chain is answered exactly if possible: by the automaton of the partial results of all operands, or by its joint
state. A group with a chain that is too large for this is sampled: in each world, all operands see the same events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anabranch.arrays import I32, I64, U64
from anabranch.errors import TooLarge
from anabranch.pattern import archive
from anabranch.pattern.automaton import MAX_MOVES
from anabranch.pattern.chain import EXACT_FACTOR
from anabranch.pattern.combined import CombinedSpec, GroupAnswers, GroupRows
from anabranch.pattern.history import Histories, History, Past
from anabranch.pattern.intake import Intake
from anabranch.pattern.joint import JointState
from anabranch.pattern.kernel.words import count_bits
from anabranch.pattern.machine import LEAST_WORK, Machine, Partial, SetMachine, Signature
from anabranch.pattern.product import Age, ProductAutomaton, ProductSets, TrueSets, true_sets
from anabranch.pattern.sampling import Worlds, interval, words_for
from anabranch.pattern.signatures import read_signatures
from anabranch.pattern.weights import Batch, weights_for
from anabranch.transport.operator import Outcome
from anabranch.transport.rows import Rows


class CombinedArchive:
    """The operator of one bucket of a combination over an archive: it takes all rows in one step."""

    def __init__(self, spec: CombinedSpec) -> None:
        self._spec = spec
        self._query = spec.analysis.combination
        self._operands = spec.analysis.on_streams
        self._intake = Intake(spec)
        self._group_answers = GroupAnswers(spec, self._intake)
        self._machines = [Machine(operand, spec.relations) for operand in self._operands]
        self._factor = EXACT_FACTOR if self._query.method == "EXACT" else 1
        self._most_work = archive.MOST_WORK * self._factor
        self._clocks = [Age(operand.query.within, spec.time_kind) for operand in self._operands]
        sets = [SetMachine(machine, self._most_work) for machine in self._machines]
        self._sets = ProductSets(sets, self._clocks, [len(operand.tests) for operand in self._operands])
        #: The sampled worlds of all groups; 0 if every chain was answered exactly.
        self.worlds_drawn = 0

    def open(self, state: bytes | None) -> None:
        """Start; there is no state to resume from."""
        if state is not None:
            raise ValueError("a query over an archive keeps no state")

    def save(self) -> bytes:
        """No bytes: a run over an archive is not resumed."""
        return b""

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take all packets and return all answers."""
        received = self._received = self._intake.receive(packets, watermark, ended)
        self._group_answers.note(received)
        self._signature, self._signatures = self._read(received.rows)
        self._histories = Histories(self._intake, received, self._signature, self._signatures, self._query.seed)
        sets, too_large = self._exact(np.flatnonzero(np.diff(received.starts)))
        group_of = self._group_answers.group_of_chains()
        sampled = np.unique(group_of[too_large])
        parts = [self._group_answers.exact_rows(sets.where(~np.isin(group_of[sets.chain], sampled)))]
        parts += [self._sampled_rows(group, np.flatnonzero(group_of == group)) for group in sampled.tolist()]
        rest = self._group_answers.default_rows(parts, received.instants)
        return Outcome(self._group_answers.table([*parts, rest]), received.rejected, received.counts)

    def _read(self, rows: Rows) -> tuple[I32, list[Signature]]:
        """The signature of each row for the goals of all operands, and the distinct ones."""
        of_operands = [read_signatures(self._intake, operand, rows) for operand in self._operands]
        indexes, index = np.unique(np.stack([own for own, _, _ in of_operands]), axis=1, return_inverse=True)
        signatures = [
            tuple(match for number, (_, known, _) in zip(numbers, of_operands, strict=True) for match in known[number])
            for numbers in indexes.T.tolist()
        ]
        return index.reshape(-1).astype(np.int32), signatures

    def _rows_of(self, chain: int) -> I64:
        """The rows of a chain, without the keys that never match a goal."""
        received = self._received
        rows = received.used[received.starts[chain] : received.starts[chain + 1]]
        matching = np.array([any(signature) for signature in self._signatures], np.bool_)
        return rows[np.isin(received.key[rows], received.key[rows[matching[self._signature[rows]]]])]

    # ------------------------------------------------------------ exact answers

    def _exact(self, chains: I64) -> tuple[TrueSets, list[int]]:
        """The sets of true operands of the chains that can be answered exactly, and the other chains."""
        nothing = TrueSets(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, self._spec.n_sets)))
        if self._query.method == "SAMPLING":
            return nothing, chains.tolist()
        parts, too_large = [nothing], []
        try:
            return self._by_automaton(chains), []
        except TooLarge:
            # Whether a chain is too large must not depend on the other chains of its bucket.
            self._sets.next_chain()
        for chain in chains.tolist():
            try:
                parts.append(self._by_any_method(chain))
            except TooLarge as error:
                if self._query.method == "EXACT":
                    message = f"{error}, and METHOD EXACT excludes sampling; remove it, or GROUP BY"
                    raise TooLarge(message) from error
                too_large.append(chain)
        return TrueSets.concat(parts), too_large

    def _by_any_method(self, chain: int) -> TrueSets:
        try:
            return self._by_automaton(np.array([chain]))
        except TooLarge:
            return self._by_joint_state(chain)

    def _by_automaton(self, chains: I64) -> TrueSets:
        """The sets of some chains by the automaton of the partial results of all operands.

        Raises
        ------
        TooLarge
            If the automaton, or the joint state of the keys, is too large.
        """
        if self._sets.timed:
            raise TooLarge("the automaton of several queries has no WITHIN")
        self._sets.next_chain()
        received, analysis = self._received, self._spec.analysis
        rows_of_chains = [self._rows_of(chain) for chain in chains.tolist()]
        rows = np.concatenate([*rows_of_chains, np.zeros(0, np.int64)])
        starts = np.concatenate([[0], np.cumsum([len(own) for own in rows_of_chains])]).astype(np.int64)
        weights = weights_for(analysis.single, analysis.markov)
        most_moves = min(MAX_MOVES, self._most_work // LEAST_WORK)
        automaton = ProductAutomaton(self._sets.machine, union_closed=weights.unites, most_moves=most_moves)
        distinct, index = np.unique(self._signature[rows], return_inverse=True)
        letters = [self._sets.letter_of(self._signatures[signature]) for signature in distinct]
        automaton.extend(letters)
        letter = np.zeros(len(received.rows), np.int32)
        letter[rows] = automaton.index_of(letters)[index]
        batch = Batch(
            rows, starts, received.rows.t, received.key, received.model, received.rows.prev, received.rows.value,
            received.rows.p, letter, self._intake.n_values,
        )  # fmt: skip
        weights.grow(len(chains), len(automaton.states))
        sets = true_sets(weights, batch, automaton, self._spec.n_sets, lambda true: true)
        return TrueSets(chains[sets.chain], sets.t, sets.p)

    def _by_joint_state(self, chain: int) -> TrueSets:
        """The sets of one chain by its joint state, of which only what the data can reach is kept."""
        self._sets.next_chain()
        state, past = JointState({((), self._sets.start): 1.0}), Past()
        times: list[int] = []
        dense: list[list[float]] = []
        for t, keys in self._histories.of(self._rows_of(chain)):
            state.states = self._sets.without_old(state.states, t)
            if state.advance(self._sets, keys, past, self._factor, t if self._sets.timed else 0) > 0.0:
                times.append(t)
                dense.append([0.0] * self._spec.n_sets)
                for (_, (_, operands)), weight in state.states.items():
                    dense[-1][operands] += weight
        p = np.array(dense).reshape(-1, self._spec.n_sets)
        return TrueSets.of(np.full(len(times), chain), np.array(times, np.int64), p)

    # ------------------------------------------------------------ sampled worlds

    def _sampled_rows(self, group: int, chains: I64) -> GroupRows:
        """The rows of a group, sampled: at the instants with rows of its keys."""
        histories = [self._histories.of(self._rows_of(chain)) for chain in chains.tolist()]
        times = np.unique([t for history in histories for t, _ in history]).astype(np.int64)
        words = words_for(self._query.accuracy, self._query.confidence)
        self.worlds_drawn += 64 * words
        hits = self._hits(histories, times, words)
        asked, given = hits
        p = np.divide(asked, given, out=np.zeros(len(times)), where=given > 0)
        # Among the worlds in which GIVEN is true, the combination is true independently of each other.
        lower, upper = interval(asked, given, 1.0 - self._query.confidence)
        return GroupRows(np.full(len(times), group), times, p, lower, upper, sampled=True)

    def _hits(self, histories: Sequence[History], times: I64, n_words: int) -> I64:
        """In how many worlds the combination is true, and its GIVEN is, at each time."""
        everywhere = np.full(n_words, np.uint64(0xFFFFFFFFFFFFFFFF))
        nothing = np.zeros((len(self._operands), n_words), np.uint64)
        true: dict[int, U64] = defaultdict(lambda: nothing)
        together: Any = WorldsOfOperands(
            self._machines, self._clocks, [len(operand.tests) for operand in self._operands]
        )
        for history in histories:
            worlds, past = Worlds(n_words), Past()
            for t, keys in history:
                true[t] = true[t] | worlds.advance(together, keys, past, t if self._sets.timed else 0)
        truths = (self._query.truth(list(true[t]), everywhere) for t in times.tolist())
        return np.array([[int(count_bits(mask)) for mask in masks] for masks in truths], np.int64).reshape(-1, 2).T


class WorldsOfOperands:
    """The machines of several operands in the same worlds; the goals of all operands are numbered on."""

    def __init__(self, machines: Sequence[Machine], clocks: Sequence[Age], n_tests: Sequence[int]) -> None:
        self._machines = machines
        self._clocks = clocks
        ends = np.cumsum(n_tests).tolist()
        self._tests = [slice(end - size, end) for end, size in zip(ends, n_tests, strict=True)]
        self._first_goals = [0, *np.cumsum([machine.n_goals for machine in machines]).tolist()]

    def advance(
        self,
        partials: Mapping[Partial, U64],
        events: Mapping[Signature, U64],
        everywhere: U64,
        now: int,
        oldest: int,
    ) -> tuple[dict[Partial, U64], U64]:
        """The partial results after an instant, and the worlds in which each operand is true at it."""
        after: dict[Partial, U64] = {}
        true = []
        for number, machine in enumerate(self._machines):
            first, end = self._first_goals[number : number + 2]
            own = {
                replace(partial, goal=partial.goal - first): worlds
                for partial, worlds in partials.items()
                if first <= partial.goal < end and self._clocks[number].is_recent(partial, now)
            }
            seen = self._events_of(number, events)
            results, true_worlds = machine.advance(own, seen, everywhere, now, oldest)
            after |= {replace(partial, goal=partial.goal + first): worlds for partial, worlds in results.items()}
            true.append(true_worlds)
        return after, np.stack(true)

    def _events_of(self, operand: int, events: Mapping[Signature, U64]) -> dict[Signature, U64]:
        """The events as an operand sees them: some may look alike."""
        seen: dict[Signature, U64] = {}
        for signature, worlds in events.items():
            own = signature[self._tests[operand]]
            seen[own] = seen[own] | worlds if own in seen else worlds
        return seen
