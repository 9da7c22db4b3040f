"""PATTERN over an archive, for queries that may be too large: safe plans, automata, and carried chains.

A bucket has complete groups (the bindings of GROUP BY; without GROUP BY, all rows). A chain is answered by the safe
plan, or by the automaton of its partial results, if that is possible. All other chains are carried from instant to
instant as on a stream (`chain.py`), exactly or in sampled worlds, and combined with the answers of the former.

The automaton answers all chains of a bucket at the speed of the kernels, but it must follow every letter from every
state. A carried chain has only the states that its data can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64
from anabranch.columns.dictionary import encode_tuples
from anabranch.errors import TooLarge
from anabranch.pattern.automaton import MAX_MOVES, Automaton
from anabranch.pattern.bindings import Bindings
from anabranch.pattern.chain import EXACT_FACTOR, Carrying
from anabranch.pattern.general import answer_table, hash_chains
from anabranch.pattern.history import Histories, History
from anabranch.pattern.intake import Intake, Received
from anabranch.pattern.interval_plans import by_plan
from anabranch.pattern.machine import LEAST_WORK, Machine, SetMachine, Transitions
from anabranch.pattern.safe import Events, SafePlan
from anabranch.pattern.safe_plan import common_positions
from anabranch.pattern.signatures import Signed
from anabranch.pattern.spec import GroupSpec
from anabranch.pattern.tally import Answer, Tally, tally_of
from anabranch.pattern.weights import Answers, Batch, Weights, weights_for
from anabranch.pattern.within import Clock
from anabranch.transport.operator import Outcome

#: How many pairs of a partial result and an event are tried before a chain counts as too large: about a second.
MOST_WORK = 200_000
_NO_ANSWERS: Answers = (np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0))


class ArchiveChains:
    """The chains of one bucket over an archive: all rows come in one step."""

    _signed: Signed
    _automaton_class: type[Automaton[Any]] = Automaton

    def __init__(self, spec: GroupSpec, machine: Transitions) -> None:
        self._spec = spec
        self._analysis = spec.analysis
        self._intake = Intake(spec)
        self._most_work = MOST_WORK * (EXACT_FACTOR if spec.analysis.query.method == "EXACT" else 1)
        self._carrying = Carrying(spec.analysis.query, machine, spec.time_kind, spec.times)
        #: The automata of all chains share their steps.
        self._sets = SetMachine(machine, self._most_work)

    def open(self, state: bytes | None) -> None:
        """Start; there is no state to resume from."""
        if state is not None:
            raise ValueError("a query over an archive keeps no state")

    def save(self) -> bytes:
        """No bytes: a run over an archive is not resumed."""
        return b""

    @property
    def _received(self) -> Received:
        return self._signed.received

    def _rows_of(self, chains: Sequence[int]) -> list[I64]:
        """The rows of each chain, without the keys that never match a goal."""
        received, mask = self._received, self._signed.mask
        rows_of_chains = [received.used[received.starts[chain] : received.starts[chain + 1]] for chain in chains]
        return [rows[np.isin(received.key[rows], received.key[rows[mask[rows] != 0]])] for rows in rows_of_chains]

    def _histories_of(self, chains: Sequence[int]) -> dict[int, History]:
        """The rows of each chain, as carried chains take them."""
        signed, seed = self._signed, self._analysis.query.seed
        makes = Histories(self._intake, signed.received, signed.signature, signed.signatures, seed)
        return dict(zip(chains, map(makes.of, self._rows_of(chains)), strict=True))

    def _automaton_of(self, chains: Sequence[int]) -> tuple[Weights, Any, Batch]:
        """New weights, the automaton (`_automaton_class`) of the partial results of some chains, and their rows.

        Raises
        ------
        TooLarge
            If the automaton is too large.
        """
        received, analysis = self._received, self._analysis
        rows_of_chains = self._rows_of(chains)
        rows = np.concatenate([*rows_of_chains, np.zeros(0, np.int64)])
        starts = np.concatenate([[0], np.cumsum([len(chain_rows) for chain_rows in rows_of_chains])]).astype(np.int64)
        weights = weights_for(analysis.single, analysis.markov)
        # Each entry of the tables takes some work, so an automaton that takes too much is soon found to be too large.
        most_moves = min(MAX_MOVES, self._most_work // LEAST_WORK)
        within = analysis.query.within
        timed = None if within is None else self._sets
        automaton = self._automaton_class(self._sets, weights.unites, most_moves, timed)
        distinct, distinct_index = np.unique(self._signed.signature[rows], return_inverse=True)
        letters = [self._sets.letter_of(self._signed.signatures[signature]) for signature in distinct]
        automaton.extend(letters)
        letter = np.zeros(len(received.rows), np.int32)
        letter[rows] = automaton.index_of(letters)[distinct_index]
        batch = Batch(
            rows, starts, received.rows.t, received.key, received.model, received.rows.prev, received.rows.value,
            received.rows.p, letter, self._intake.n_values,
        )  # fmt: skip
        if within is not None:
            batch = Clock(within, self._spec.time_kind).timed(batch, automaton)
        return weights, automaton, batch


class ArchiveOperator(ArchiveChains):
    """The operator of one bucket of a PATTERN query over an archive: it takes all rows in one step."""

    def __init__(self, spec: GroupSpec) -> None:
        super().__init__(spec, Machine(spec.analysis, spec.relations))

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take all packets and return all answers."""
        received = self._intake.receive(packets, watermark, ended)
        self._signed = Signed.of(self._intake, self._analysis, received)
        if self._analysis.bound:
            answers = pa.concat_tables([self._spec.answer_schema.empty_table(), *self._answers_of_bindings()])
        else:
            answers = self._answers()
        return Outcome(answers, received.rejected, received.counts)

    # ------------------------------------------------------------ bindings

    def _answers_of_bindings(self) -> Iterator[pa.Table]:
        """The answers of some bindings at a time, so that memory is bounded; all those of a group together."""
        self._tree = Bindings(self._spec, self._intake)
        self._tree.read(self._received)
        whole, none = self._signed, np.zeros(0, np.int64)
        self._nodes = np.flatnonzero(self._tree.complete)
        for nodes in self._tree.blocks(self._nodes, self._groups(len(self._nodes))[0]):
            self._nodes = nodes
            self._signed = whole.repeated(self._tree.expand(nodes, (none, none)).numbered(nodes), len(nodes))
            yield self._answers()

    # ------------------------------------------------------------ exact answers

    def _exact(self) -> tuple[Answers, list[int]]:
        """The answers of all chains that a plan or an automaton answers, and the other chains."""
        chains = np.flatnonzero(np.diff(self._received.starts)).tolist()
        if self._analysis.query.method == "SAMPLING":
            return _NO_ANSWERS, chains
        sequence = by_plan(self._analysis)
        if sequence is not None:
            plan = SafePlan(sequence, self._analysis, self._bindings)
            return self._chain_by_chain(chains, lambda chain: self._by_plan(plan, self._events_of(chain), chain))
        self._sets.next_chain()
        try:
            return self._by_automaton(chains), []
        except TooLarge:
            # Whether a chain is too large must not depend on the other chains of its bucket.
            return self._chain_by_chain(chains, self._by_any_method if len(chains) > 1 else self._by_plan_if_disjoint)

    def _chain_by_chain(self, chains: list[int], answer: Callable[[int], Answers]) -> tuple[Answers, list[int]]:
        answers, too_large = [_NO_ANSWERS], []
        for chain in chains:
            self._sets.next_chain()
            try:
                answers.append(answer(chain))
            except TooLarge:
                too_large.append(chain)
        answer_chain, times, p = (np.concatenate(columns) for columns in zip(*answers, strict=True))
        return (answer_chain, times, p), too_large

    def _by_automaton(self, chains: Sequence[int]) -> Answers:
        """The answers of some chains by the automaton of their partial results.

        Raises
        ------
        TooLarge
            If the automaton, or the joint state of the keys, is too large.
        """
        weights, automaton, batch = self._automaton_of(chains)
        weights.grow(len(chains), len(automaton.states))
        chain_indexes, times, p = weights.step(batch, automaton)
        return np.array(chains, np.int32)[chain_indexes], times, p

    def _by_any_method(self, chain: int) -> Answers:
        try:
            return self._by_automaton([chain])
        except TooLarge:
            return self._by_plan_if_disjoint(chain)

    def _by_plan_if_disjoint(self, chain: int) -> Answers:
        """The answers by the plan for data without keys that feed both of its sides."""
        sequence = by_plan(self._analysis, if_disjoint=True)
        if sequence is not None:
            plan, events = SafePlan(sequence, self._analysis, self._bindings), self._events_of(chain)
            if plan.has_disjoint_keys(events):
                return self._by_plan(plan, events, chain)
        raise TooLarge("neither an automaton nor a plan answers the chain")

    def _events_of(self, chain: int) -> Events:
        """The rows of a chain, as safe plans take them."""
        received = self._received
        (rows,) = self._rows_of([chain])
        times, instant = np.unique(received.rows.t[rows], return_inverse=True)
        return Events(
            instant.astype(np.int64), received.rows.stream[rows], received.rows.key[rows], received.key[rows],
            received.model[rows], received.rows.prev[rows], received.rows.value[rows], received.rows.p[rows],
            self._intake.of_goals(self._signed.mask[rows]), times, self._intake.n_values,
        )  # fmt: skip

    @staticmethod
    def _by_plan(plan: SafePlan, events: Events, chain: int) -> Answers:
        p, times = plan.run(events), events.times
        true = np.flatnonzero(p > 0.0)
        return np.full(len(true), chain, np.int32), times[true], np.minimum(p[true], 1.0)

    def _bindings(self, variables: tuple[str, ...], goals: int, events: Events) -> I32:
        """The code of each row's binding of some key variables."""
        binding = np.zeros(len(events.key), np.int32)
        if not variables:
            return binding
        prefix = self._analysis.query.goals[:goals]
        codes: dict[tuple[object, ...], int] = {}
        for stream in np.unique(events.stream).tolist():
            positions = common_positions(prefix, self._analysis.streams[stream], variables)
            of_stream = events.stream == stream
            keys, key_index = np.unique(events.stream_key[of_stream], return_inverse=True)
            key_columns = self._intake.key_columns(stream)
            columns = [key_columns[position].take(pa.array(keys)).to_pylist() for position in positions]
            key_bindings = [codes.setdefault(values, len(codes)) for values in zip(*columns, strict=True)]
            binding[of_stream] = np.array(key_bindings, np.int32)[key_index]
        return binding

    # ------------------------------------------------------------ groups

    def _answers(self) -> pa.Table:
        """The answers of the query: the probability that some chain of a group is true, for each group and time."""
        group_of, groups = self._groups(len(self._received.starts) - 1)
        (chains, times, p), too_large = self._exact()
        pairs, pair_index = np.unique(np.stack([group_of[chains], times]), axis=1, return_inverse=True)
        with np.errstate(divide="ignore"):
            log_none = np.bincount(pair_index.reshape(-1), np.log1p(-p), minlength=pairs.shape[1])
        rows = {
            (group, t): Answer(t, t, log) for (group, t), log in zip(pairs.T.tolist(), log_none.tolist(), strict=True)
        }
        for group, tally, histories in self._carried(group_of, too_large):
            for answer in tally.advance(histories):
                known = rows.get((group, answer.t_from))
                rows[group, answer.t_from] = answer if known is None else known.united(answer)
        in_groups = pa.array([group for group, _ in rows], pa.int64())
        columns = [groups.column(index).take(in_groups) for index in range(len(self._analysis.group_by))]
        return answer_table(self._spec, list(rows.values()), columns)

    def _carried(self, group_of: I32 | I64, chains: Sequence[int]) -> Iterator[tuple[int, Tally, dict[int, History]]]:
        """The groups of chains that are carried, with the rows of each chain."""
        spec = self._spec
        for group in np.unique(group_of[np.array(chains, np.int64)]).tolist():
            members = [chain for chain in chains if group_of[chain] == group]
            started = {chain: self._carrying.start(self._hash_of(chain)) for chain in members}
            yield group, tally_of(spec.spans, spec.time_kind, started), self._histories_of(members)

    def _hash_of(self, number: int) -> int:
        """The hash of the variables of a chain."""
        chain = self._tree.chain_of(self._nodes[[number]]) if self._analysis.bound else np.array([number])
        return int(hash_chains(self._intake, chain)[0])

    def _groups(self, n_chains: int) -> tuple[I32, pa.Table]:
        """The group of each chain, and the values of the grouping columns of each group."""
        if not self._analysis.group_by:
            return np.zeros(n_chains, np.int32), pa.table({})
        if self._analysis.bound:
            chains, bound = self._tree.chain_of(self._nodes), self._tree.columns(self._tree.codes_of(self._nodes))
        else:
            chains, bound = np.arange(n_chains, dtype=np.int32), []
        columns = [*self._intake.chain_columns(chains), *bound]
        return encode_tuples([pa.chunked_array([columns[index]]) for _, index in self._analysis.group_by], n_chains)
