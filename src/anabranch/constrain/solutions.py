"""Converts solutions of the kernel to answers: evaluates the remaining conditions, and adds the columns of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools
from anabranch.binding.typed import Reference, Typed, walk, with_references
from anabranch.columns.times import decode_times
from anabranch.constrain.analysis import ConstrainAnalysis, mentions
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.spec import ConstrainSpec
from anabranch.events.answers import EventAnswers
from anabranch.events.batch import Batch

#: For each event that a condition mentions (a variable, and 1 or 2), its column in an array of solutions.
Assignment = dict[tuple[str, int], int]


class Answers(EventAnswers):
    """The solutions among the events of a batch, in the schema of their job."""

    def __init__(self, spec: ConstrainSpec, batch: Batch) -> None:
        super().__init__(spec, batch)
        self._spec, self._code = spec, batch.event_time

    def add(self, query: int, solutions: I64) -> None:
        """Add the solutions of a query that satisfy its remaining conditions.

        A solution is a row with the events of its variables; a counted variable has several columns.
        """
        analysis = self._spec.analyses[query]
        for condition in self._spec.lowered.others[query]:
            for assignment in _assignments(analysis, condition):
                if len(solutions):
                    solutions = solutions[self._holds(analysis, condition, assignment, solutions)]
        if not len(solutions):
            return
        times = decode_times(self._code[solutions.max(axis=1)], self._spec.time_kind)
        streams = range(len(self._spec.layouts))
        events = [self._events(stream, analysis, solutions) for stream in streams]
        self._append(query, [times, pa.repeat(1.0, len(solutions))], events)

    def _events(self, stream: int, analysis: ConstrainAnalysis, solutions: I64) -> pa.Array:
        """The events of one stream as one list per solution."""
        of_stream, column = [], 0
        for variable in analysis.query.variables:
            if self._spec.stream_number(variable.stream.name) == stream:
                events = solutions[:, column : column + variable.count]
                of_stream.append(self._by_rank(stream, events) if variable.count > 1 else events)
            column += variable.count
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


def _columns_of(condition: Typed, owner: str, known: dict[str, pa.Array]) -> Sequence[str]:
    """The columns of an event that a condition may read; all columns if it names the whole event."""
    named = {node.name for node in walk(condition) if isinstance(node, Reference) and node.owner == owner}
    return list(known) if "*" in named else [name for name in known if name in named]


def _assignments(analysis: ConstrainAnalysis, condition: Typed) -> Iterator[Assignment]:
    """Every assignment of different columns to the events that a condition mentions."""
    mentioned = sorted(mentions(condition))
    owners = dict.fromkeys(owner for owner, _ in mentioned)
    starts = np.cumsum([0, *(variable.count for variable in analysis.query.variables)])
    names = [variable.name for variable in analysis.query.variables]
    choices = []
    for owner in owners:
        number = names.index(owner)
        of_owner = [mention for mention in mentioned if mention[0] == owner]
        columns = range(int(starts[number]), int(starts[number + 1]))
        choices.append([list(zip(of_owner, chosen, strict=True)) for chosen in permutations(columns, len(of_owner))])
    for choice in product(*choices):
        yield dict(pair for part in choice for pair in part)
