"""PATTERN over an archive, for queries that cannot stream or may be too large: safe plans, joint states, sampling.

A bucket has complete groups (the bindings of GROUP BY; without GROUP BY, all rows). Each chain is answered exactly if
possible: by the safe plan, or by the automaton of its partial results. The chains of a group that are too large for
this are sampled together, and combined with the exact answers of the other chains.

The automaton answers all chains of a bucket at the speed of the kernels, but it must follow every letter from every
state. If that is too much, each chain is tried separately, with only the states that its data can reach (`joint.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.times import decode_times
from anabranch.errors import TooLarge
from anabranch.pattern import joint
from anabranch.pattern.analysis import by_plan
from anabranch.pattern.automaton import MAX_MOVES, Automaton, accept_bit, match_bit
from anabranch.pattern.bindings import Bindings
from anabranch.pattern.history import Histories
from anabranch.pattern.intake import Intake
from anabranch.pattern.machine import LEAST_WORK, Machine, Match, Partial, SetMachine, Signature
from anabranch.pattern.safe import Events, SafePlan
from anabranch.pattern.safe_plan import common_positions
from anabranch.pattern.sampling import estimate
from anabranch.pattern.signatures import read_signatures
from anabranch.pattern.spec import ArchiveSpec
from anabranch.pattern.weights import Answers, Batch, Weights, weights_for
from anabranch.pattern.within import Clock
from anabranch.transport.operator import Outcome

#: How many pairs of a partial result and an event are tried before a chain counts as too large: about a second.
MOST_WORK = 200_000
#: With METHOD EXACT, the limits are so many times higher.
EXACT_FACTOR = 100

#: By group and time: probability, lower, upper and method.
Rows = dict[tuple[int, int], tuple[float, float, float, str]]

_NO_ANSWERS: Answers = (np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0))


class ArchiveOperator:
    """The operator of one bucket of a PATTERN query over an archive: it takes all rows in one step."""

    def __init__(self, spec: ArchiveSpec) -> None:
        self._spec = spec
        self._analysis = spec.analysis
        self._intake = Intake(spec)
        self._machine = Machine(spec.analysis, spec.relations, spec.time_kind)
        self._factor = EXACT_FACTOR if spec.analysis.query.method == "EXACT" else 1
        self._most_work = MOST_WORK * self._factor
        #: The automata of all chains share their steps.
        self._sets = SetMachine(self._machine, self._most_work)
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
        self._signature, self._signatures, self._mask = read_signatures(self._intake, self._analysis, received.rows)
        if self._analysis.bound:
            answers = pa.concat_tables([self._spec.answer_schema.empty_table(), *self._answers_of_bindings()])
        else:
            answers = self._answers_of_chains()
        return Outcome(answers, received.rejected, received.counts)

    def _answers_of_chains(self) -> pa.Table:
        self._histories = Histories(
            self._intake, self._received, self._signature, self._signatures, self._analysis.query.seed
        )
        return self._answers()

    # ------------------------------------------------------------ bindings

    def _answers_of_bindings(self) -> Iterator[pa.Table]:
        """The answers of some bindings at a time, so that memory is bounded; all those of a group together."""
        self._tree = Bindings(self._spec, self._intake)
        self._tree.read(self._received)
        whole = self._received, self._signature, self._signatures, self._mask
        self._nodes = np.flatnonzero(self._tree.complete)
        for nodes in self._tree.blocks(self._nodes, self._groups(len(self._nodes))[0]):
            self._received, self._signature, self._signatures, self._mask = whole
            self._nodes = nodes
            self._repeat_rows()
            yield self._answers_of_chains()

    def _repeat_rows(self) -> None:
        """Repeat the rows for each binding that they can change: the chains are bindings from here on."""
        none = np.zeros(0, np.int64)
        expansion = self._tree.expand(self._nodes, (none, none)).numbered(self._nodes)
        received, rows = self._received, expansion.rows
        pairs, index = np.unique(np.stack([self._signature[rows], expansion.mask]), axis=1, return_inverse=True)
        signatures: dict[Signature, int] = {}
        codes = [
            signatures.setdefault(_restricted(self._signatures[signature], mask), len(signatures))
            for signature, mask in pairs.T.tolist()
        ]
        self._signature = np.array(codes, np.int32)[index.reshape(-1)]
        self._signatures = list(signatures)
        self._mask = expansion.mask
        self._received = replace(
            received, rows=received.rows.take(rows), key=received.key[rows], model=received.model[rows],
            chain=expansion.node, used=np.arange(len(rows)), starts=expansion.starts(len(self._nodes)),
        )  # fmt: skip

    # ------------------------------------------------------------ exact answers

    def _exact(self) -> tuple[Answers, list[int]]:
        """The answers of all chains that can be answered exactly, and the other chains."""
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
            return self._chain_by_chain(
                chains, self._by_any_method if len(chains) > 1 else self._by_plan_or_joint_state
            )

    def _chain_by_chain(self, chains: list[int], answer: Callable[[int], Answers]) -> tuple[Answers, list[int]]:
        answers, too_large = [_NO_ANSWERS], []
        for chain in chains:
            self._sets.next_chain()
            try:
                answers.append(answer(chain))
            except TooLarge as error:
                self._require_sampling(error)
                too_large.append(chain)
        answer_chain, times, p = (np.concatenate(columns) for columns in zip(*answers, strict=True))
        return (answer_chain, times, p), too_large

    def _require_sampling(self, error: TooLarge) -> None:
        """Raise the error that a chain is too large, if the query excludes sampling."""
        if self._analysis.query.method == "EXACT":
            raise TooLarge(f"{error}, and METHOD EXACT excludes sampling; remove it, or GROUP BY") from error

    def _rows_of(self, chains: Sequence[int]) -> list[I64]:
        """The rows of each chain, without the keys that never match a goal."""
        received = self._received
        rows_of_chains = [received.used[received.starts[chain] : received.starts[chain + 1]] for chain in chains]
        return [rows[np.isin(received.key[rows], received.key[rows[self._mask[rows] != 0]])] for rows in rows_of_chains]

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

    def _automaton_of(self, chains: Sequence[int]) -> tuple[Weights, Automaton[frozenset[Partial]], Batch]:
        """New weights, the automaton of the partial results of some chains, and their rows."""
        received, analysis = self._received, self._analysis
        rows_of_chains = self._rows_of(chains)
        rows = np.concatenate([*rows_of_chains, np.zeros(0, np.int64)])
        starts = np.concatenate([[0], np.cumsum([len(chain_rows) for chain_rows in rows_of_chains])]).astype(np.int64)
        weights = weights_for(analysis.single, analysis.markov)
        # Each entry of the tables takes some work, so an automaton that takes too much is soon found to be too large.
        most_moves = min(MAX_MOVES, self._most_work // LEAST_WORK)
        within = analysis.query.within
        timed = None if within is None else self._sets
        automaton = Automaton(self._sets, weights.unites, most_moves, timed)
        distinct, distinct_index = np.unique(self._signature[rows], return_inverse=True)
        letters = [self._sets.letter_of(self._signatures[signature]) for signature in distinct]
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

    def _by_any_method(self, chain: int) -> Answers:
        try:
            return self._by_automaton([chain])
        except TooLarge:
            return self._by_plan_or_joint_state(chain)

    def _by_plan_or_joint_state(self, chain: int) -> Answers:
        sequence = by_plan(self._analysis, if_disjoint=True)
        if sequence is not None:
            plan, events = SafePlan(sequence, self._analysis, self._bindings), self._events_of(chain)
            if plan.has_disjoint_keys(events):
                return self._by_plan(plan, events, chain)
        return self._by_joint_state(chain)

    def _by_joint_state(self, chain: int) -> Answers:
        (rows,) = self._rows_of([chain])
        self._sets.next_chain()
        most_steps = joint.MOST_STEPS * self._factor
        answers = list(joint.joint_answers(self._sets, self._histories.of(rows), most_steps))
        times, p = zip(*answers, strict=True) if answers else ((), ())
        return np.full(len(answers), chain, np.int32), np.array(times, np.int64), np.array(p, np.float64)

    def _events_of(self, chain: int) -> Events:
        """The rows of a chain, as safe plans take them."""
        received = self._received
        (rows,) = self._rows_of([chain])
        times, instant = np.unique(received.rows.t[rows], return_inverse=True)
        return Events(
            instant.astype(np.int64), received.rows.stream[rows], received.rows.key[rows], received.key[rows],
            received.model[rows], received.rows.prev[rows], received.rows.value[rows], received.rows.p[rows],
            self._intake.of_goals(self._mask[rows]), times, self._intake.n_values,
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
        spec, analysis = self._spec, self._analysis
        group_of, groups = self._groups(len(self._received.starts) - 1)
        rows = self._rows_of_instants(group_of)
        kept = [(key, row) for key, row in rows.items() if row[0] > 0 and row[0] >= analysis.query.least_probability]
        kept_groups = pa.array([group for (group, _), _ in kept], pa.int64())
        arrays = [decode_times(np.array([t for (_, t), _ in kept], np.int64), spec.time_kind)]
        arrays += [groups.column(index).take(kept_groups) for index in range(len(analysis.group_by))]
        arrays += [pa.array([row[number] for _, row in kept], pa.float64()) for number in range(3)]
        arrays.append(pa.array([row[3] for _, row in kept], pa.string()))
        return pa.table(arrays, schema=spec.answer_schema)

    def _rows_of_instants(self, group_of: I32 | I64) -> Rows:
        """The probability that some chain of a group is true, for each group and time."""
        (chains, times, p), too_large = self._exact()
        pairs, pair_index = np.unique(np.stack([group_of[chains], times]), axis=1, return_inverse=True)
        with np.errstate(divide="ignore"):
            log_none = np.bincount(pair_index.reshape(-1), np.log1p(-p), minlength=pairs.shape[1])
        known = {(int(g), int(t)): -np.expm1(log) for (g, t), log in zip(pairs.T, log_none, strict=True)}
        rows: Rows = {key: (value, value, value, "exact") for key, value in known.items()}
        for group in np.unique(group_of[too_large]).tolist() if too_large else []:
            rows |= self._sampled(group, [c for c in too_large if group_of[c] == group], known)
        return rows

    def _groups(self, n_chains: int) -> tuple[I32, pa.Table]:
        """The group of each chain, and the values of the grouping columns of each group."""
        if not self._analysis.group_by:
            return np.zeros(n_chains, np.int32), pa.table({})
        if self._analysis.bound:
            chains, bound = self._tree.chain_of(self._nodes), self._tree.columns(self._tree.codes_of(self._nodes))
        else:
            chains, bound = np.arange(n_chains, dtype=np.int32), []
        columns = [*(self._intake.chains.take(chains) if self._analysis.chain else []), *bound]
        return encode_tuples([pa.chunked_array([columns[index]]) for _, index in self._analysis.group_by], n_chains)

    def _sampled(self, group: int, chains: list[int], known: dict[tuple[int, int], float]) -> Rows:
        """The rows of a group, of which `chains` are sampled; `known` has the probabilities of the other chains."""
        query = self._analysis.query
        histories = [self._histories.of(rows) for rows in self._rows_of(chains)]
        sample = estimate(self._machine, histories, query.accuracy, query.confidence)
        self.worlds_drawn += sample.worlds
        sampled = zip(sample.t.tolist(), zip(sample.probability, sample.lower, sample.upper, strict=True), strict=True)
        # At the times of exact answers, the sampled chains may be true although no sampled world shows it.
        estimates = {t: (0.0, 0.0, sample.unseen) for of_group, t in known if of_group == group} | dict(sampled)
        rows: Rows = {}
        for t, numbers in estimates.items():
            none = 1.0 - known.get((group, t), 0.0)
            probability, lower, upper = (float(1.0 - none * (1.0 - number)) for number in numbers)
            rows[group, t] = probability, lower, upper, "sampling"
        return rows


def _restricted(signature: Signature, mask: int) -> Signature:
    """How an event matches each alternative for a binding, given the symbols that the event has for it."""
    return tuple(
        Match(bool(mask & accept_bit(number)), match.values) if match is not None and mask & match_bit(number) else None
        for number, match in enumerate(signature)
    )
