"""Bounds on the probabilities of answers whose events depend on each other, whatever the dependence is.

An answer has events, and each event has a lineage: the rows that it depends on. Events whose lineages overlap, directly
or through others, are one *group*. Groups are independent of each other. All n events of a group happen with a
probability between max(0, sum - n + 1) and the least of their probabilities (Fréchet); both can be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools
from anabranch.binding.lineage import Origin
from anabranch.columns import times
from anabranch.columns.times import TimeKind, encode_times
from anabranch.transport.per import BOUNDS


@dataclass(frozen=True, slots=True)
class EventColumn:
    """An event of an answer.

    Attributes
    ----------
    name : of the struct column; NULL if the event is missing
    probability : its field with the probability; None if the event is certain
    origins : its lineage, in terms of its fields
    """

    name: str
    probability: str | None
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class BoundsRule:
    """How the probabilities of answers are bounded.

    Answers have columns `probability`, `lower`, `upper` and `method`, as if all events were independent. Answers whose
    lower bound is below `least` are dropped.
    """

    events: tuple[EventColumn, ...]
    time_kind: TimeKind
    least: float


def with_bounds(rule: BoundsRule, answers: pa.Table) -> pa.Table:
    """The answers with the bounds on their probabilities; `probability` is the lower one."""
    events = [_Event(column, answers, rule.time_kind) for column in rule.events]
    p = np.stack([event.p for event in events], axis=1)
    group = _groups(events, answers.num_rows)
    dependent = np.array([len(set(row)) < len(row) for row in group.tolist()], np.bool_)
    low, high = _all_of_groups(p, group)
    product = p.prod(axis=1)
    lower, upper = (answers[name].to_numpy() for name in ("lower", "upper"))
    lower = np.where(dependent, lower / product * low, lower)
    upper = np.where(dependent, np.minimum(upper / product * high, 1.0), upper)
    method = pc.if_else(pa.array(dependent), BOUNDS, answers["method"])
    columns = {"lower": pa.array(lower), "upper": pa.array(upper), "method": method}
    columns["probability"] = pc.if_else(pa.array(dependent), columns["lower"], answers["probability"])
    for name, column in columns.items():
        index = answers.schema.get_field_index(name)
        answers = answers.set_column(index, answers.schema.field(index), column.cast(answers.schema.field(index).type))
    return answers.filter(pa.array((lower >= rule.least) & (upper > 0.0)))


def _all_of_groups(p: F64, group: I64) -> tuple[F64, F64]:
    """Bounds on the probability that all events happen; `group` has the number of the group of each event."""
    low, high = np.ones(len(p)), np.ones(len(p))
    for number in range(p.shape[1]):
        members = group == number
        count = members.sum(axis=1)
        total = np.where(members, p, 0.0).sum(axis=1)
        low *= np.where(count > 0, np.maximum(0.0, total - (count - 1)), 1.0)
        high *= np.where(members, p, 1.0).min(axis=1)
    return low, high


def _groups(events: Sequence[_Event], n: int) -> I64:
    """The group of each event of each answer: the number of its first event."""
    group = np.tile(np.arange(len(events)), (n, 1))
    overlaps = [(i, j, events[i].overlaps(events[j])) for i in range(len(events)) for j in range(i)]
    for _ in events:  # A chain of overlaps is at most as long as there are events.
        for i, j, together in overlaps:
            first = np.minimum(group[:, i], group[:, j])
            group[:, i] = np.where(together, first, group[:, i])
            group[:, j] = np.where(together, first, group[:, j])
    return group


class _Event:
    """One event of every answer."""

    def __init__(self, column: EventColumn, answers: pa.Table, time_kind: TimeKind) -> None:
        self._time_kind, self.origins = time_kind, column.origins
        events = answers[column.name].combine_chunks()
        # By index: the name of a column of answers may have a dot, which would be a field of a field.
        fields = enumerate(field.name for field in events.type)
        self._fields = {name.lower(): pc.struct_field(events, [index]) for index, name in fields}
        self.present: Bools = pc.is_valid(events).to_numpy(zero_copy_only=False)
        self.p: F64 = np.ones(answers.num_rows)
        if column.probability is not None:
            self.p = pc.fill_null(self._fields[column.probability.lower()], 1.0).to_numpy(zero_copy_only=False)

    def overlaps(self, other: _Event) -> Bools:
        """Which answers have events of both whose lineages overlap."""
        pairs = [(one, two) for one in self.origins for two in other.origins if one.stream == two.stream]
        nowhere = np.zeros(len(self.p), np.bool_)
        together = reduce(np.logical_or, (self._shares(one, other, two) for one, two in pairs), nowhere)
        return together & self.present & other.present

    def _shares(self, origin: Origin, other: _Event, others: Origin) -> Bools:
        """Which answers have rows in both origins; what is not known counts as shared."""
        shared = np.ones(len(self.p), np.bool_)
        for own, theirs in zip(origin.keys, others.keys, strict=True):
            if own is not None and theirs is not None:
                shared &= _may_equal(self._fields[own], other._fields[theirs])
        spans = (
            (self._times(origin.since), origin.before, other._times(others.until)),
            (other._times(others.since), others.before, self._times(origin.until)),
        )
        for first, before, last in spans:
            if first is not None and last is not None:
                shared &= first <= (times.later(last, before, self._time_kind) if before else last)
        return shared

    def _times(self, name: str | None) -> I64 | None:
        """The times in a field as codes; None if they are not known."""
        column = None if name is None else self._fields[name]
        if column is None or column.type != self._time_kind.arrow_type or column.null_count:
            return None
        return encode_times(pa.chunked_array([column]), self._time_kind)


def _may_equal(one: pa.Array, other: pa.Array) -> Bools:
    """Where two values are equal, or are not known."""
    if one.type != other.type:
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one.type, other.type))
        if not numbers:
            return np.ones(len(one), np.bool_)
        one, other = one.cast(pa.float64()), other.cast(pa.float64())
    return np.asarray(pc.fill_null(pc.equal(one, other), True).to_numpy(zero_copy_only=False), np.bool_)


def bounded_batches(rule: BoundsRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`with_bounds` for the batches of a partition."""
    for batch in batches:
        yield from with_bounds(rule, pa.Table.from_batches([batch])).to_batches()
