"""SEQUENCE: rows go where their keys are equal, and a bucket keeps them as long as a window.

One job serves many questions over the same streams: rows are read, asked and sent once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from anabranch.language.typed import Typed
from anabranch.rows.conditions import holds
from anabranch.rows.event_job import EventJob, ResultColumn
from anabranch.rows.events import I64, EventTable, pack_events
from anabranch.rows.job import Setting
from anabranch.rows.operator import Operator
from anabranch.rows.packing import hash_tuples
from anabranch.rows.roles import roles_of
from anabranch.rows.routing import Packets
from anabranch.rows.times import TimeKind
from anabranch.sequence.analysis import SequenceAnalysis, analyse
from anabranch.sequence.files import with_files
from anabranch.sequence.groups import as_compared
from anabranch.sequence.lowering import Search, lower, window_of
from anabranch.sequence.operator import SequenceOperator
from anabranch.sequence.question import BoundSequence
from anabranch.splitmix import mix_all


@dataclass(frozen=True)
class SequenceJob(EventJob):
    """SEQUENCE questions over the same streams, as the workers need them."""

    analyses: tuple[SequenceAnalysis, ...]
    searches: tuple[tuple[Search, ...], ...]

    @cached_property
    def first_role(self) -> tuple[int, ...]:
        """The number of the first role of each question; a role is a component of a disjunct."""
        sizes = [len(each.disjuncts) * len(each.query.components) for each in self.analyses]
        return tuple(int(place) for place in np.cumsum([0, *sizes]))

    def window(self, question: int) -> float:
        """WITHIN in the unit of times."""
        return window_of(self.analyses[question].query.within, scale_of(self.time_kind))

    @property
    def answer_schema(self) -> pa.Schema:
        """One row a match: its question, and its events, those of each stream in a list, NULL where one is missing."""
        time = self.time_kind.arrow_type
        facts = [("t", time), ("t_start", time), ("probability", pa.float64()), ("status", pa.string())]
        return pa.schema([("question", pa.int32()), *facts, *self.event_fields])

    # ------------------------------------------------------------ placement

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """A packet for each bucket: rows that can be some component, and which."""
        events = EventTable.from_rows(rows, self.layouts[stream])
        demands = self._demands(stream)
        if not len(events) or not demands:
            return [], len(events)
        first, variable = roles_of(
            events.columns, demands, lambda part, columns, n: holds(part, columns, self.relations, n)
        )
        row = np.repeat(np.arange(len(events)), np.diff(first))
        role, bucket = self._copies(events, row, variable, n_buckets)
        return pack_events(events, row[role], bucket, {"variable": variable[role].astype(np.int32)}, n_buckets)

    def _demands(self, stream: int) -> list[tuple[int, Typed | None]]:
        """What is asked of single events of a stream, for each role that is of it."""
        name = self.layouts[stream].name.lower()
        return [
            (first + place * len(analysis.query.components) + number, own)
            for first, analysis in zip(self.first_role, self.analyses, strict=False)
            for place, disjunct in enumerate(analysis.disjuncts)
            for number, (component, own) in enumerate(zip(analysis.query.components, disjunct.own, strict=True))
            if component.stream.name.lower() == name
        ]

    def _copies(self, events: EventTable, row: I64, variable: I64, n_buckets: int) -> tuple[I64, I64]:
        """Where each role goes: (role, bucket), the rows of each bucket in order."""
        bucket = np.zeros(len(row), np.int64)
        everywhere = np.zeros(len(row), np.bool_)
        placed: dict[tuple[int, tuple[str, ...]], I64] = {}
        for number in np.unique(variable) if n_buckets > 1 else ():
            question = int(np.searchsorted(self.first_role, number, side="right")) - 1
            analysis = self.analyses[question]
            place = (number - self.first_role[question]) % len(analysis.query.components)
            columns = analysis.key_columns(analysis.query.components[place].name)
            own = variable == number
            if columns is None:
                everywhere |= own
                continue
            if (question, columns) not in placed:
                placed[question, columns] = self._buckets(events, question, columns, n_buckets)
            bucket[own] = placed[question, columns][row[own]]
        kept, copied = np.flatnonzero(~everywhere), np.flatnonzero(everywhere)
        role = np.concatenate([kept, np.tile(copied, n_buckets)])
        bucket = np.concatenate([bucket[kept], np.repeat(np.arange(n_buckets), len(copied))])
        order = np.argsort(role, kind="stable")
        return role[order], bucket[order]

    def _buckets(self, events: EventTable, question: int, columns: tuple[str, ...], n_buckets: int) -> I64:
        """The bucket of each row, by the columns that are equal in all events of a match."""
        analysis = self.analyses[question]
        values = [
            as_compared(events.columns[name], analysis.is_compared_as_double(place))
            for name, place in zip(columns, analysis.key, strict=True)
        ]
        # Questions without a key have one bucket each, and not all the same.
        codes = hash_tuples(values, len(events)) ^ np.uint64(0 if columns else question)
        return (mix_all(codes) % np.uint64(n_buckets)).astype(np.int64)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return SequenceOperator(self)

    # ------------------------------------------------------------ answers

    def result_columns(self, question: int) -> Sequence[ResultColumn]:
        """The columns of the answers of one question."""
        query = self.analyses[question].query
        place = [0] * len(self.layouts)
        columns = [ResultColumn(name, name) for name in ("t", "t_start", "probability")]
        for component in query.components:
            if not component.negative:
                stream = self.stream_number(component.stream.name)
                columns.append(ResultColumn(component.label, f"events_{stream}", place[stream]))
                place[stream] += 1
        if "expired" in query.emit:
            columns.append(ResultColumn("status", "status"))
        return columns


def scale_of(kind: TimeKind) -> float:
    """How many units of a time make one of a delay."""
    return 1e6 if kind is TimeKind.TIMESTAMP else 1.0


def make_job(questions: Sequence[BoundSequence], setting: Setting) -> SequenceJob:
    """Questions over the same streams made ready for the workers: files of laws are read, tables of scores made."""
    with_laws = map(with_files, questions, setting.folders)
    analyses = tuple(map(analyse, with_laws))
    scale = scale_of(setting.layouts[0].time_kind)
    searches = tuple(lower(analysis, setting.relations, scale) for analysis in analyses)
    return SequenceJob(setting, len(analyses), analyses, searches)
