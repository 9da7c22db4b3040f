"""Combinations over an archive whose operands are not all regular, or whose state may be large.

The automaton of the partial results of all operands answers the chains for which it is small. All other groups are
carried as on a stream, exactly or in sampled worlds (`combined_group.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.arrays import I64
from anabranch.errors import TooLarge
from anabranch.pattern.archive import ArchiveChains
from anabranch.pattern.combined import CombinedSpec, GroupAnswers, GroupRows
from anabranch.pattern.combined_machine import CombinedMachine
from anabranch.pattern.general import hash_chains
from anabranch.pattern.product import ProductAutomaton, TrueSets, true_sets
from anabranch.pattern.signatures import Signed
from anabranch.transport.operator import Outcome


class CombinedArchive(ArchiveChains):
    """The operator of one bucket of a combination over an archive: it takes all rows in one step."""

    _automaton_class = ProductAutomaton

    def __init__(self, spec: CombinedSpec) -> None:
        self._combined = spec
        self._operands = spec.analysis.on_streams
        super().__init__(spec, CombinedMachine(self._operands, spec.relations))
        self._group_answers = GroupAnswers(spec, self._intake)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take all packets and return all answers."""
        received = self._intake.receive(packets, watermark, ended)
        self._group_answers.note(received)
        self._signed = Signed.of_operands(self._intake, self._operands, received)
        sets, others = self._by_automata(np.flatnonzero(np.diff(received.starts)))
        group_of = self._group_answers.group_of_chains()
        carried = np.unique(group_of[others])
        parts = [self._group_answers.exact_rows(sets.where(~np.isin(group_of[sets.chain], carried)))]
        for group in carried.tolist():
            parts += self._carried_rows(group, np.flatnonzero(group_of == group))
        rest = self._group_answers.default_rows(parts, received.instants)
        return Outcome(self._group_answers.table([*parts, rest]), received.rejected, received.counts)

    def _by_automata(self, chains: I64) -> tuple[TrueSets, I64]:
        """The sets of true operands of the chains that an automaton answers, and the other chains."""
        nothing = TrueSets(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, self._combined.n_sets)))
        # The operands have ticks of their own, so there is no automaton of several with WITHIN.
        if self._combined.is_timed or self._analysis.query.method == "SAMPLING":
            return nothing, chains
        self._sets.next_chain()
        try:
            return self._by_automaton(chains), chains[:0]
        except TooLarge:
            if len(chains) == 1:
                return nothing, chains
        # Whether a chain is too large must not depend on the other chains of its bucket.
        parts, others = [nothing], []
        for chain in chains.tolist():
            self._sets.next_chain()
            try:
                parts.append(self._by_automaton(np.array([chain])))
            except TooLarge:
                others.append(chain)
        return TrueSets.concat(parts), np.array(others, np.int64)

    def _by_automaton(self, chains: I64) -> TrueSets:
        """The sets of some chains by the automaton of the partial results of all operands.

        Raises
        ------
        TooLarge
            If the automaton, or the joint state of the keys, is too large.
        """
        weights, automaton, batch = self._automaton_of(chains.tolist())
        weights.grow(len(chains), len(automaton.states))
        sets = true_sets(weights, batch, automaton, self._combined.n_sets, lambda true: true)
        return TrueSets(chains[sets.chain], sets.t, sets.p)

    def _carried_rows(self, group: int, chains: I64) -> list[GroupRows]:
        """The rows of a group, whose chains are carried."""
        hashes = hash_chains(self._intake, chains).tolist()
        started = {chain: self._carrying.start(hashed) for chain, hashed in zip(chains.tolist(), hashes, strict=True)}
        return self._group_answers.carried_rows(group, started, self._histories_of(list(started)))
