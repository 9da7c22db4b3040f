"""From the kernel's solutions to rows: what it cannot decide is asked here, and events get their columns back."""

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
from anabranch.events.batch import Batch, lists_of_events, row_numbers


class Answers:
    """The solutions among the events of a batch, in the schema of their job."""

    def __init__(self, spec: ConstrainSpec, batch: Batch) -> None:
        self._spec = spec
        self._batch = batch
        self._code = batch.event_time
        self._row = row_numbers(batch.stream, len(batch.tables))
        self._tables: list[pa.Table] = []

    def table(self) -> pa.Table:
        """All solutions that were added and hold."""
        return pa.concat_tables([self._spec.answer_schema.empty_table(), *self._tables])

    def add(self, query: int, found: I64) -> None:
        """Take solutions of a query: the events of its places, a row a solution."""
        analysis = self._spec.analyses[query]
        for condition in self._spec.lowered.others[query]:
            for places in _instances(analysis, condition):
                if len(found):
                    found = found[self._holds(analysis, condition, places, found)]
        if not len(found):
            return
        columns = [
            pa.repeat(pa.scalar(query, pa.int32()), len(found)),
            self._times(found.max(axis=1)),
            pa.repeat(1.0, len(found)),
        ]
        columns += [self._events(number, analysis, found) for number in range(len(self._spec.layouts))]
        self._tables.append(pa.table(columns, schema=self._spec.answer_schema))

    def _times(self, events: I64) -> pa.Array:
        return decode_times(self._code[events], self._spec.time_kind)

    def _events(self, stream: int, analysis: ConstrainAnalysis, found: I64) -> pa.Array:
        """The events of one stream as a list for each solution."""
        own, place = [], 0
        for variable in analysis.query.variables:
            if self._spec.stream_number(variable.stream.name) == stream:
                events = found[:, place : place + variable.count]
                own.append(self._by_key(stream, events) if variable.count > 1 else events)
            place += variable.count
        rows = self._row[np.concatenate(own, axis=1)] if own else np.zeros((len(found), 0), np.int64)
        return lists_of_events(self._batch, stream, rows, self._spec.answer_schema.field(f"events_{stream}").type)

    def _by_key(self, stream: int, events: I64) -> I64:
        """Sets of events, each in order of time, then of key, then of the other columns."""
        present, place = np.unique(events, return_inverse=True)
        rank = self._batch.tables[stream].ranks(self._row[present])
        order = np.argsort(rank)
        return present[order][np.sort(rank[place.reshape(events.shape)], axis=1)]

    def _holds(
        self, analysis: ConstrainAnalysis, condition: Typed, places: dict[tuple[str, int], int], found: I64
    ) -> Bools:
        """Whether a condition holds of those events of each solution that stand at some places."""
        columns: dict[str, pa.Array] = {}
        streams = {}
        variables = {variable.name: variable for variable in analysis.query.variables}
        for (owner, mention), place in places.items():
            stream = variables[owner].stream
            name, number = f"{owner} {mention}", self._spec.stream_number(stream.name)
            streams[name] = stream
            rows = pa.array(self._row[found[:, place]])
            table = self._batch.tables[number]
            for column in _columns_of(condition, owner, table.columns):
                columns[f"{name}.{column}"] = table.columns[column].take(rows)
        told_apart = with_references(condition, lambda each: replace(each, owner=f"{each.owner} {each.mention}"))
        return holds_of_events(told_apart, columns, streams, self._spec.relations, len(found))


def _columns_of(condition: Typed, owner: str, known: dict[str, pa.Array]) -> Sequence[str]:
    """The columns of an event that a condition may read: those it names, or all where it names the whole event."""
    named = {node.name for node in walk(condition) if isinstance(node, Reference) and node.owner == owner}
    return list(known) if "*" in named else [name for name in known if name in named]


def _instances(analysis: ConstrainAnalysis, condition: Typed) -> Iterator[dict[tuple[str, int], int]]:
    """Every way in which places can stand for the events that a condition mentions."""
    named = sorted(mentions(condition))
    owners = dict.fromkeys(owner for owner, _ in named)
    starts = np.cumsum([0, *(variable.count for variable in analysis.query.variables)])
    names = [variable.name for variable in analysis.query.variables]
    ways = []
    for owner in owners:
        number = names.index(owner)
        own = [mention for mention in named if mention[0] == owner]
        places = range(int(starts[number]), int(starts[number + 1]))
        ways.append([list(zip(own, chosen, strict=True)) for chosen in permutations(places, len(own))])
    for way in product(*ways):
        yield dict(pair for part in way for pair in part)
