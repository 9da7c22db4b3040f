"""Combinations of PATTERN queries: the operator of those that can stream, and how the answers of groups are made.

The automata of the operands run as one (`product.py`). At an instant without events of a group, no operand is true for
it. If the combination is true then (NOT a), it is so at every instant of the streams, from the first one of the group's
key on. So every bucket gets the instants of all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from anabranch.arrays import END, F64, I32, I64, Bools
from anabranch.columns.intervals import interval
from anabranch.columns.times import decode_times
from anabranch.pattern.analysis import analyse
from anabranch.pattern.automaton import Automaton, accept_bit, match_bit
from anabranch.pattern.chain import Chain
from anabranch.pattern.combined_group import CarriedGroup
from anabranch.pattern.combining import CombinedAnalysis
from anabranch.pattern.groups import Groups
from anabranch.pattern.history import Earlier, History
from anabranch.pattern.intake import Intake, Received, Used
from anabranch.pattern.operator import PatternOperator, regular_machine
from anabranch.pattern.product import CascadeMachine, ProductAutomaton, ProductMachine, TrueSets, true_sets, united
from anabranch.pattern.query import BoundCascade
from anabranch.pattern.spec import GroupSpec, PatternSpec
from anabranch.pattern.weights import Batch
from anabranch.transport.limits import AnswerLimit
from anabranch.transport.operator import Outcome
from anabranch.transport.rows import Rows
from anabranch.transport.state import unseal

#: How to change a query that has too many answers, because it is true unless something happens.
_REMEDY = "combine it with a query that is rarely true (AND)"


@dataclass(frozen=True)
class CombinedSpec(GroupSpec):
    """A combination, over an archive or on live inputs: a bucket has complete groups, and gives complete rows."""

    analysis: CombinedAnalysis

    @property
    def needs_instants(self) -> bool:
        """Whether every bucket needs the instants of all rows: the combination is true if no operand is."""
        return self.analysis.combination.true_by_default

    @property
    def routed_by(self) -> tuple[int, ...]:
        """The grouping variables, unless all groups are in one bucket."""
        return () if self.analysis.in_one_bucket else self.routed_by_groups

    @property
    def n_sets(self) -> int:
        """How many sets of operands there are."""
        return 1 << len(self.analysis.operands)

    @property
    def is_timed(self) -> bool:
        """Whether an operand has WITHIN."""
        return any(operand.query.within is not None for operand in self.analysis.operands)

    @property
    def kept_values(self) -> list[tuple[list[str], list[str]]]:
        """The columns of all operands: variables of different operands may have the same name."""
        operands = enumerate(self.analysis.operands)
        return [names for number, operand in operands for names in self._kept_values(operand, f"value {number} ")]

    @property
    def value_types(self) -> dict[str, pa.DataType]:
        """The types of these columns."""
        operands = enumerate(self.analysis.operands)
        return {
            name: kind
            for number, operand in operands
            for name, kind in self._value_types(operand, f"value {number} ").items()
        }


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The rows of groups: their numbers, times, and probabilities with their intervals."""

    group: I64
    t: I64
    p: F64
    lower: F64
    upper: F64
    sampled: bool = False


class GroupAnswers:
    """Makes the answers of the groups of a bucket from the sets of true operands of its chains."""

    def __init__(self, spec: CombinedSpec, intake: Intake) -> None:
        self._spec = spec
        self._intake = intake
        self._groups = Groups(spec, intake)
        #: The first instant of each chain.
        self.first = np.zeros(0, np.int64)
        truths = [spec.analysis.combination.truth_of_set(true) for true in range(spec.n_sets)]
        #: For each set of operands, whether the combination is true, and whether its GIVEN is.
        self._asked, self._given = np.array(truths, np.float64).T

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self.first = tables["first instants"]["t"].to_numpy()

    def save(self) -> dict[str, pa.Table]:
        """The state as a table."""
        return {"first instants": pa.table({"t": self.first})}

    def keep(self, chains: Bools) -> None:
        """Forget all other chains."""
        self.first = self.first[chains]

    def note(self, received: Received) -> None:
        """Take note of the chains that begin with a step."""
        self.first = np.append(self.first, np.full(self._intake.n_chains - len(self.first), END, np.int64))
        np.minimum.at(self.first, received.chain[received.used], received.rows.t[received.used])

    def group_of_chains(self) -> I64:
        """The group of each chain."""
        return self._groups.of_chains()

    def exact_rows(self, sets: TrueSets) -> GroupRows:
        """The rows of groups and instants at which some operand may be true."""
        group = self.group_of_chains()[sets.chain]
        order = np.lexsort((sets.t, group))
        pairs = np.stack([group, sets.t])[:, order]
        number = np.cumsum(np.append(False, (np.diff(pairs, axis=1) != 0).any(axis=0)))[: pairs.shape[1]]
        p = united(number, sets.p[order])
        first = np.unique(number, return_index=True)[1]
        asked, given = p @ self._asked, p @ self._given
        ratio = np.divide(asked, given, out=np.zeros(len(p)), where=given > 0.0)
        return _certain(pairs[0, first], pairs[1, first], np.minimum(ratio, 1.0))

    def carried_rows(
        self, group: int, chains: Mapping[int, Chain], histories: Mapping[int, History], earlier: Earlier | None = None
    ) -> list[GroupRows]:
        """The rows of a group whose chains are carried: the exact ones, and the sampled ones."""
        query = self._spec.analysis.combination
        rows = CarriedGroup(chains, query, np.stack([self._asked, self._given], axis=1)).advance(histories, earlier)
        parts = []
        for sampled, own in groupby(sorted(rows, key=lambda row: row.sampled), key=lambda row: row.sampled):
            t, asked, given = (np.array(column) for column in list(zip(*own, strict=True))[:3])
            p = np.divide(asked, given, out=np.zeros(len(t)), where=given > 0)
            bounds = (np.minimum(p, 1.0),) * 2
            if sampled:
                # Among the worlds in which GIVEN is true, the combination is true independently of each other.
                bounds = interval(asked, given, 1.0 - query.confidence)
            parts.append(GroupRows(np.full(len(t), group), t, np.minimum(p, 1.0), *bounds, sampled=sampled))
        return parts

    def default_rows(self, known: Sequence[GroupRows], instants: I64) -> GroupRows:
        """The rows of groups and instants without other rows, where no operand is true, if there are any."""
        if not self._spec.needs_instants:
            instants = instants[:0]
        group_of = self.group_of_chains()
        first = np.full(int(group_of.max(initial=-1)) + 1, END, np.int64)
        np.minimum.at(first, group_of, self.first)
        begin = np.searchsorted(instants, first)
        counts = len(instants) - begin
        limit = AnswerLimit(self._spec.analysis.query.name, self._spec.max_answers, _REMEDY)
        limit.add(int(counts.sum()), lambda: f"{len(first):,} groups at {len(instants):,} instants")
        group = np.repeat(np.arange(len(first)), counts)
        index = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts) + begin[group]
        taken = np.concatenate(
            [np.zeros(0, np.int64), *(rows.group * len(instants) + np.searchsorted(instants, rows.t) for rows in known)]
        )
        missing = ~np.isin(group * len(instants) + index, taken)
        return _certain(group[missing], instants[index[missing]], np.ones(int(missing.sum())))

    def table(self, parts: Sequence[GroupRows]) -> pa.Table:
        """Rows in the schema of the specification."""
        spec = self._spec
        tables = [spec.answer_schema.empty_table()]
        first_chains = self._groups.first_chains()
        for rows in parts:
            kept = (rows.p > 0.0) & (rows.p >= spec.analysis.query.least_probability)
            chains = first_chains[rows.group[kept]]
            arrays = [decode_times(rows.t[kept], spec.time_kind), *self._groups.columns_of(chains)]
            arrays += [pa.array(numbers[kept]) for numbers in (rows.p, rows.lower, rows.upper)]
            arrays.append(pa.repeat("sampling" if rows.sampled else "exact", len(chains)))
            tables.append(pa.table(arrays, schema=spec.answer_schema))
        return pa.concat_tables(tables)


def _certain(group: I64, t: I64, p: F64) -> GroupRows:
    return GroupRows(group, t, p, p, p)


class ProductOperator(PatternOperator):
    """The operator of one bucket of a combination of regular queries, whose automata run as one.

    With PER, each group is one chain, and the automaton accepts where the combination is true.
    """

    _pages_chains = False

    def __init__(self, spec: PatternSpec, analysis: CombinedAnalysis) -> None:
        self._analysis = analysis
        super().__init__(spec)

    def _open_automaton(self) -> None:
        operands = self._analysis.on_streams
        self._machine: ProductMachine | CascadeMachine = ProductMachine(
            [regular_machine(operand) for operand in operands]
        )
        truths = [self._analysis.combination.truth_of_set(true)[0] for true in range(1 << len(operands))]
        self._automaton = self._product = ProductAutomaton(
            self._machine, union_closed=self._weights.unites, truths=np.array(truths)
        )
        self._operands = operands

    def _load_automaton(self, tables: dict[str, pa.Table]) -> None:
        """Restore the states of the automaton from what `_save_automaton` returned."""
        states = tables["automaton"]
        numbers = list(zip(*(column.to_pylist() for column in states.columns), strict=True))
        pairs = [tuple(zip(row[::2], row[1::2], strict=True)) for row in numbers]
        self._automaton.extend((), pairs)

    def _save_automaton(self) -> dict[str, pa.Table]:
        columns: dict[str, list[int]] = {}
        for operand in range(len(self._machine.start)):
            states = [state[operand] for state in self._automaton.states]
            columns[f"waiting {operand}"] = [waiting for waiting, _ in states]
            columns[f"repeating {operand}"] = [repeating for _, repeating in states]
        return {"automaton": pa.table(columns)}

    def _letters(self, rows: Rows) -> I32:
        """The index of the letter of each row's event."""
        letter = np.zeros(len(rows), np.int32)
        for events in self._intake.distinct_events(rows):
            masks = np.stack([self._intake.masks(events, operand) for operand in self._operands])
            distinct, index = np.unique(masks, axis=1, return_inverse=True)
            letters = [self._machine.letter_of(own) for own in distinct.T.tolist()]
            self._automaton.extend(letters)
            letter[events.rows] = self._automaton.index_of(letters)[index.reshape(-1)][events.event]
        return letter


class CascadeOperator(ProductOperator):
    """The operator of one bucket of a PATTERN over answers of PATTERN queries, which run as one automaton."""

    def __init__(self, spec: PatternSpec, analysis: CombinedAnalysis, cascade: BoundCascade) -> None:
        self._cascade = cascade
        super().__init__(spec, analysis)

    def _open_automaton(self) -> None:
        self._operands = self._analysis.on_streams
        inner = ProductMachine([regular_machine(operand) for operand in self._operands])
        outer = analyse(self._cascade.outer)
        letters = [0] * len(self._operands)
        for test, goal in zip(outer.tests, outer.query.alternatives, strict=True):
            letters[self._cascade.operand_of(goal.stream)] |= match_bit(test.goal) | accept_bit(test.goal)
        self._machine = CascadeMachine(inner, regular_machine(outer), letters)
        self._automaton = Automaton(self._machine, union_closed=self._weights.unites)


class CombinedOperator(ProductOperator):
    """The same without PER: the sets of true operands of the chains of a group are united."""

    def __init__(self, spec: CombinedSpec) -> None:
        self._combined = spec
        super().__init__(spec, spec.analysis)

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        super().open(state)
        self._group_answers = GroupAnswers(self._combined, self._intake)
        if state is not None:
            self._group_answers.load(unseal(state, self._spec.fingerprint))

    def _tables(self) -> dict[str, pa.Table]:
        return super()._tables() | self._group_answers.save()

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and return all answers about instants before the watermark."""
        received = self._intake.receive(packets, watermark, ended)
        self._group_answers.note(received)
        batch = Batch.of(received, self._letters(received.rows), self._intake.n_values)
        self._weights.grow(self._intake.n_chains, len(self._automaton.states))
        sets = true_sets(self._weights, batch, self._product, self._combined.n_sets, self._like)
        rows = self._group_answers.exact_rows(sets)
        rest = self._group_answers.default_rows([rows], received.instants)
        answers = self._group_answers.table([rows, rest])
        # If the combination is true while no operand is, every key has answers from its first row on.
        if self._spec.live and self._intake.forgets and not self._spec.needs_instants:
            self._forget()
        return Outcome(answers, received.rejected, received.counts)

    def _keep(self, used: Used) -> None:
        super()._keep(used)
        self._group_answers.keep(used.chains)

    def _like(self, true: int) -> object:
        """What has to be known of a set of operands: with one chain per group, only the truth of the combination."""
        return self._combined.analysis.combination.truth_of_set(true) if self._spec.direct else true
