"""The operator of a PATTERN query with bindings (`bindings.py`): the chains of the kernels are nodes.

All nodes share one automaton, and the kernels update them together. If one MARKOV key feeds a chain, the bindings of
the last goal share a node, because they differ only in which value ends the match. In a stream, the state is the
weights of every node. Over an archive, only the nodes with all values are computed, some at a time, so that memory is
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64
from anabranch.columns.dictionary import is_worth_removing
from anabranch.pattern import kernel
from anabranch.pattern.automaton import letter_of
from anabranch.pattern.bindings import REMEDY, Bindings, Expansion
from anabranch.pattern.intake import Received
from anabranch.pattern.markov_past import MarkovPast
from anabranch.pattern.operator import PatternOperator
from anabranch.pattern.weights import Batch, JointWeights, SingleWeights, weights_for
from anabranch.transport.limits import AnswerLimit
from anabranch.transport.operator import Outcome
from anabranch.transport.state import seal, unseal

#: For each answer its chain, the codes of its grouping variables, its time and its probability.
_Answers = tuple[I32, I64, I64, F64]


class GroupedOperator(PatternOperator):
    """The operator of one bucket."""

    _pages_chains = False

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        super().open(state)
        self._bindings = Bindings(self._spec, self._intake, without_last=self._spec.analysis.shares_last)
        self._past = MarkovPast()
        if state is not None:
            tables = unseal(state, self._spec.fingerprint)
            self._bindings.load(tables)
            self._past.load(tables)

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        tables = self._tables() | self._bindings.save() | self._past.save()
        return seal(tables, self._spec.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and return all answers about instants before the watermark."""
        received = self._intake.receive(packets, watermark, ended)
        origins = self._bindings.read(received)
        steps = self._live_step(received, origins) if self._spec.live else self._archive_step(received)
        blocks = list(self._limited(steps))
        nothing = _no_answers(len(self._spec.analysis.bound))
        self._chains, self._codes, times, p = (np.concatenate(part) for part in zip(nothing, *blocks, strict=True))
        answers = self._answers(np.arange(len(times), dtype=np.int32), times, p)
        if self._spec.live and self._intake.forgets and not self._spec.analysis.markov:
            self._forget()
        return Outcome(answers, received.rejected, received.counts)

    def _limited(self, blocks: Iterator[_Answers]) -> Iterator[_Answers]:
        """The answers of blocks of nodes, while there are not too many."""
        limit = AnswerLimit(self._spec.analysis.query.name, self._spec.max_answers, REMEDY)
        names = ", ".join(name for name, _ in self._spec.analysis.group_by)
        for block in blocks:
            limit.add(len(block[0]), lambda: f"{len(self._bindings):,} bindings of {names}")
            yield block

    def _forget(self) -> None:
        """Forget the nodes that are as new ones, and chains without other nodes."""
        nodes = self._bindings.needed(self._weights.is_new())
        chains = self._intake.needed(self._bindings.chains_of(nodes, self._intake.n_chains))
        used = self._intake.used(chains, self._weights.used_keys(), self._weights.used_values())
        if used.is_minority or is_worth_removing(nodes):
            self._bindings.keep(nodes, used.chains)
            self._intake.keep(used)
            self._weights.keep(nodes)

    def _columns(self, chains: I32) -> list[pa.Array]:
        """The variables of answers, by their number."""
        of_chain = self._intake.chains.take(self._chains[chains]) if self._spec.analysis.chain else []
        return [*of_chain, *self._bindings.columns(self._codes[chains])]

    def _live_step(self, received: Received, origins: I64) -> Iterator[_Answers]:
        """Update all nodes; those of this step continue the nodes from which they come."""
        nodes = np.arange(len(self._bindings))
        weights = self._weights
        weights.append(origins)
        if isinstance(weights, JointWeights):
            expansion = self._bindings.expand(nodes, weights.keys())
            self._add_axes(weights, received, expansion)
            yield self._update(received, expansion, nodes)
            self._past.step(received, self._intake.n_values)
        else:
            yield self._update(received, self._bindings.expand(nodes, None), nodes)

    def _add_axes(self, weights: JointWeights, received: Received, expansion: Expansion) -> None:
        """Add the MARKOV keys that now have an effect on a node for the first time, with their values so far."""
        markov = received.model[expansion.rows] >= kernel.MARKOV
        pairs = np.unique(np.stack([expansion.node[markov], received.key[expansion.rows[markov]]]), axis=1)
        for node, key in pairs.T.tolist():
            past = self._past.of(key)
            if past is not None and key not in weights.chains[node].keys:
                weights.add_axis(node, key, *past)

    def _archive_step(self, received: Received) -> Iterator[_Answers]:
        """Compute the nodes with all values, from the beginning."""
        nodes = np.flatnonzero(self._bindings.complete)
        for block in self._bindings.blocks(nodes, np.arange(len(nodes))):
            analysis = self._spec.analysis
            self._weights = weights_for(analysis.single, analysis.markov)
            yield self._update(received, self._bindings.expand(block, None), block)

    def _update(self, received: Received, expansion: Expansion, nodes: I64) -> _Answers:
        """Update the weights of nodes by their rows, and return the answers."""
        of_goals = np.stack([self._intake.of_goals(bits) for bits in (expansion.mask, expansion.again)])
        symbols, letter = np.unique(of_goals, axis=1, return_inverse=True)
        letters = [letter_of(mask, again) for mask, again in symbols.T.tolist()]
        self._automaton.extend(letters)
        index = self._automaton.index_of(letters)[letter.reshape(-1)] if letters else np.zeros(0, np.int32)
        self._weights.grow(len(nodes), len(self._automaton.states))
        rows, chosen = received.rows, expansion.rows
        batch = Batch(
            np.arange(len(chosen)), expansion.numbered(nodes).starts(len(nodes)), rows.t[chosen], received.key[chosen],
            received.model[chosen], rows.prev[chosen], rows.value[chosen], rows.p[chosen], index, self._intake.n_values,
        )  # fmt: skip
        if self._spec.analysis.shares_last and isinstance(self._weights, SingleWeights):
            return self._split(expansion, batch.t, self._weights.step_by_row(batch, self._automaton))
        local, times, p = self._weights.step(batch, self._automaton)
        return self._bindings.chain_of(nodes[local]), self._bindings.codes_of(nodes[local]), times, p

    def _split(self, expansion: Expansion, t: I64, row_p: F64) -> _Answers:
        """The answers of bindings, from the parts of the rows that end in them."""
        rows = np.flatnonzero(row_p > 0.0)
        chain = self._bindings.chain_of(expansion.node[rows])
        codes = self._bindings.split(expansion, rows)
        keys, index = np.unique(np.column_stack([chain, t[rows], codes]), axis=0, return_inverse=True)
        p = np.minimum(np.bincount(index.reshape(-1), row_p[rows], minlength=len(keys)), 1.0)
        return keys[:, 0].astype(np.int32), keys[:, 2:], keys[:, 1], p


def _no_answers(n_bound: int) -> _Answers:
    return np.zeros(0, np.int32), np.zeros((0, n_bound), np.int64), np.zeros(0, np.int64), np.zeros(0)
