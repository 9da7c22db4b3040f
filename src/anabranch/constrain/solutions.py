"""Converts solutions of the kernel to answers: evaluates the remaining conditions, and adds the columns of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools
from anabranch.binding.typed import Reference, Typed, walk, with_references
from anabranch.columns.times import decode_times
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.factors import assignments
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.probabilities import Chances
from anabranch.constrain.query import BoundConstrain, BoundCounted, counts_in, mentions
from anabranch.constrain.sets import Groups
from anabranch.constrain.spec import ConstrainSpec
from anabranch.constrain.true_locations import Chance, TrueLocations
from anabranch.errors import TooManyAnswers
from anabranch.events.answers import EventAnswers
from anabranch.events.batch import Batch
from anabranch.thresholds import least_reaching

#: For each event that a condition mentions (a variable, and 1 or 2), its column in an array of solutions.
Assignment = dict[tuple[str, int], int]


class Answers(EventAnswers):
    """The solutions among the events of a batch, in the schema of their job."""

    def __init__(self, spec: ConstrainSpec, batch: Batch) -> None:
        super().__init__(spec, batch)
        self._spec, self._code = spec, batch.event_time

    def add(self, query: int, solutions: I64, absent: F64 | None = None) -> None:
        """Add solutions of a query as answers, if they are possible and reach its threshold.

        A solution is a row with the events of its variables; a set of events has several columns. `absent` is the
        probability that no event of a variable with NOT happened.
        """
        analysis = self._spec.analyses[query]
        happened = self._probability(analysis.query, solutions) * (1.0 if absent is None else absent)
        chance = self._chance(analysis, solutions, happened)
        reaches = _reaches(analysis.query, chance.probability)
        if not reaches.any():
            return
        solutions, chance = solutions[reaches], Chance(*(part[reaches] for part in chance))
        self.limit(query).add(len(solutions), partial(self._last, solutions))
        times = decode_times(self._code[solutions.max(axis=1)], self._spec.time_kind)
        streams = range(len(self._spec.layouts))
        events = [self._events(stream, analysis, solutions) for stream in streams]
        self._append(query, [times, *self._probability_columns(analysis, chance)], events)

    def _chance(self, analysis: ConstrainAnalysis, solutions: I64, happened: F64) -> Chance:
        """The probability that all events happened, and that their true locations satisfy the conditions on them."""
        if not analysis.query.is_expected:
            return Chance(happened, happened, happened)
        events = self._events_by_variable(analysis.query, solutions)
        return Chance(*(happened * part for part in self._true_locations.chance(analysis, events)))

    def _events_by_variable(self, query: BoundConstrain, solutions: I64) -> dict[str, I64]:
        """The events of each variable; those of a set in the order of the batch, which no arrival changes."""
        columns = _columns_by_owner(query.variables, solutions)
        return {variable.name: np.sort(solutions[:, columns[variable.name]], axis=1) for variable in query.present}

    def _probability_columns(self, analysis: ConstrainAnalysis, chance: Chance) -> list[pa.Array]:
        """The probability, and its interval where the job has one."""
        if not self._spec.has_expected:
            return [pa.array(chance.probability)]
        method = "sampling" if analysis.query.is_expected and analysis.factors.joint else "exact"
        return [*map(pa.array, chance), pa.repeat(method, len(chance.probability))]

    @cached_property
    def _true_locations(self) -> TrueLocations:
        return TrueLocations(self._spec, self._batch, self._row)

    def exceeded(self, query: int, solutions: I64) -> TooManyAnswers:
        """The error that a query has too many solutions, of which these are the last."""
        return self.limit(query).exceeded(self._last(solutions))

    def _last(self, solutions: I64) -> str:
        """The last event of the last solution, for a message."""
        return self._batch.described(int(solutions[-1].max()))

    def _probability(self, query: BoundConstrain, solutions: I64) -> F64:
        """The probability that all events of each solution happened."""
        return np.ones(len(solutions)) if query.is_certain else self._chances.of_all(solutions)

    @cached_property
    def _chances(self) -> Chances:
        return Chances(self._batch)

    def fitting(self, query: int, solutions: I64) -> I64:
        """The solutions that satisfy the remaining conditions of a query on events of answers."""
        variables = self._spec.analyses[query].query.variables
        absent = {variable.name for variable in variables if variable.is_negated}
        conditions = [c for c in self._spec.lowered.others[query] if not absent & {owner for owner, _ in mentions(c)}]
        fitting = solutions[self._satisfying(query, conditions, solutions, _columns_by_owner(variables, solutions))]
        analysis = self._spec.analyses[query]
        if not analysis.tests_together or not len(fitting):
            return fitting
        return fitting[self._true_locations.can_be_true(analysis, self._events_by_variable(analysis.query, fitting))]

    def possible(self, query: int, solutions: I64) -> I64:
        """The solutions that can reach the threshold of a query, whatever the probability of missing events is."""
        bound = self._spec.analyses[query].query
        return solutions[_reaches(bound, self._probability(bound, solutions))]

    def absence(self, query: int, solutions: I64, run: Run) -> F64 | None:
        """The probability that no event happened which can be added as a variable with NOT, if a solution did.

        The same for one with AT LEAST, if events have probabilities: the set is maximal then. None if there is no such
        variable.
        """
        bound = self._spec.analyses[query].query
        excluded = [
            variable for variable in bound.variables if variable.is_negated or (variable.grows and not bound.is_certain)
        ]
        if not excluded:
            return None
        added = [self._companions(query, variable, solutions, run) for variable in excluded]
        return self._chances.of_none(solutions, np.concatenate(added))

    def grown(self, query: int, solutions: I64, run: Run) -> Iterator[I64]:
        """The solutions with complete sets of the variable with AT LEAST; those of each number of events together.

        Each of the solutions has the first event of a set. Events that can be added to it are candidates. Every maximal
        set of candidates that agree with each other makes a solution if it has no earlier event: so each is found once.
        If events have probabilities, every set is maximal in some world.
        """
        bound = self._spec.analyses[query].query
        variable = bound.growing
        if variable is None:
            yield solutions
            return
        added = self._companions(query, variable, solutions, run)
        added = added[np.lexsort(added.T[::-1])]
        column = _columns_by_owner(bound.variables, solutions)[variable.name][0]
        group, event = added.T.copy()
        groups = Groups(solutions[:, column], group, event, variable.count, f"{bound.name}: {variable.label}")
        agreements = partial(self._agreements, query, variable, solutions, run)
        if bound.is_certain:
            sets = groups.maximal_sets(agreements)
        else:
            begun, least = self._chances.of_all(solutions), least_reaching(bound.threshold)
            sets = groups.possible_sets(agreements, self._chances.p, begun, least)
        for row, events in sets:
            yield np.column_stack([solutions[row, :column], events, solutions[row, column + 1 :]])

    def _agreements(
        self, query: int, variable: BoundCounted, solutions: I64, run: Run, rows: I64, members: I64, starts: I64
    ) -> Bools:
        """Whether every two candidates for a set agree: one matrix per solution, which are `rows` (see `Groups`)."""
        variables = self._spec.analyses[query].query.variables
        number = int(self._spec.lowered.graph.first[query]) + variables.index(variable)
        matrix = run.agreements(number, members, starts)
        conditions = [c for c in self._spec.lowered.others[query] if (variable.name, 2) in mentions(c)]
        if conditions:
            entries = np.flatnonzero(matrix)
            sizes = np.diff(starts)
            blocks = np.cumsum(sizes**2) - sizes**2
            group = np.searchsorted(blocks + sizes**2, entries, side="right")
            one, other = (starts[group] + part for part in np.divmod(entries - blocks[group], sizes[group]))
            pairs = np.column_stack([solutions[rows[group]], members[one], members[other]])
            columns: dict[str, Sequence[int]] = dict(_columns_by_owner(variables, solutions))
            columns[variable.name] = range(solutions.shape[1], pairs.shape[1])
            matrix[:] = False
            matrix[entries[self._satisfying(query, conditions, pairs, columns)]] = True
        return matrix

    def _companions(self, query: int, variable: BoundCounted, solutions: I64, run: Run) -> I64:
        """(m, 2): the solution, and the event, for each event that can be added to it as an awaited variable."""
        variables = self._spec.analyses[query].query.variables
        first = int(self._spec.lowered.graph.first[query])
        owners = np.repeat(first + np.arange(len(variables)), counts_in(variables, solutions.shape[1]))
        added = run.companions(first + variables.index(variable), owners, solutions)
        extended = np.column_stack([solutions[added[:, 0]], added[:, 1]])
        columns: dict[str, Sequence[int]] = dict(_columns_by_owner(variables, solutions))
        columns[variable.name] = [*columns[variable.name], solutions.shape[1]]
        others = self._spec.lowered.others[query]
        conditions = [c for c in others if variable.name in {owner for owner, _ in mentions(c)}]
        return added[self._satisfying(query, conditions, extended, columns)]

    def _satisfying(
        self, query: int, conditions: Sequence[Typed], solutions: I64, columns: Mapping[str, Sequence[int]]
    ) -> I64:
        """The indices of the solutions that satisfy conditions; `columns` are those of each variable."""
        chosen = np.arange(len(solutions))
        for condition in conditions:
            for assignment in assignments(columns, condition):
                if len(chosen):
                    chosen = chosen[self._holds(self._spec.analyses[query], condition, assignment, solutions[chosen])]
        return chosen

    def _events(self, stream: int, analysis: ConstrainAnalysis, solutions: I64) -> pa.Array:
        """The events of one stream as one list per solution."""
        of_stream, columns = [], _columns_by_owner(analysis.query.variables, solutions)
        for variable in in_lists(analysis.query.present):
            if self._spec.stream_number(variable.stream.name) == stream:
                events = solutions[:, columns[variable.name]]
                of_stream.append(self._by_rank(stream, events) if variable.is_set else events)
        rows = self._row[np.concatenate(of_stream, axis=1)] if of_stream else np.zeros((len(solutions), 0), np.int64)
        return self._lists(stream, rows)

    def _by_rank(self, stream: int, events: I64) -> I64:
        """Sort the events in each row by time, then by key, then by the other columns."""
        present, index = np.unique(events, return_inverse=True)
        rank = self._batch.tables[stream].ranks(self._row[present])
        order = np.argsort(rank)
        return present[order][np.sort(rank[index.reshape(events.shape)], axis=1)]

    def _holds(self, analysis: ConstrainAnalysis, condition: Typed, assignment: Assignment, solutions: I64) -> Bools:
        """The solutions whose events satisfy a condition, with this assignment of its mentions."""
        columns: dict[str, pa.Array] = {}
        streams = {}
        variables = {variable.name: variable for variable in analysis.query.variables}
        for (owner, mention), solution_column in assignment.items():
            stream = variables[owner].stream
            name, number = f"{owner} {mention}", self._spec.stream_number(stream.name)
            streams[name] = stream
            rows = pa.array(self._row[solutions[:, solution_column]])
            table = self._batch.tables[number]
            for column in _columns_of(condition, owner, table.columns):
                columns[f"{name}.{column}"] = table.columns[column].take(rows)
        with_mentions = with_references(
            condition, lambda reference: replace(reference, owner=f"{reference.owner} {reference.mention}")
        )
        return holds_of_events(with_mentions, columns, streams, self._spec.relations, len(solutions))


def _reaches(query: BoundConstrain, probability: F64) -> Bools:
    """Which probabilities are above 0 and reach the threshold of a query."""
    return (probability > 0) & (probability >= least_reaching(query.threshold))


def _columns_of(condition: Typed, owner: str, known: dict[str, pa.Array]) -> Sequence[str]:
    """The columns of an event that a condition may read; all columns if it names the whole event."""
    named = {node.name for node in walk(condition) if isinstance(node, Reference) and node.owner == owner}
    return list(known) if "*" in named else [name for name in known if name in named]


def in_lists(variables: Sequence[BoundCounted]) -> list[BoundCounted]:
    """The variables in the order of their events in the lists of answers: a set of any size is at the end."""
    return sorted(variables, key=lambda variable: variable.grows)


def _columns_by_owner(variables: Sequence[BoundCounted], solutions: I64) -> dict[str, range]:
    """The columns of each variable in an array of solutions, by its name in conditions."""
    counts = counts_in(variables, solutions.shape[1])
    ends = np.cumsum(counts).tolist()
    return {v.name: range(end - count, end) for v, count, end in zip(variables, counts, ends, strict=True)}
