"""Decides the pairs of a block: the probability of each pair, and the retractions of pairs that no longer hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.columns.dictionary import flat
from anabranch.columns.times import TimeKind, decode_times
from anabranch.relate.attributes import SegmentConditions, Segments
from anabranch.relate.pairing import Side, pairs_of, side_of
from anabranch.relate.pairs import Decided, relate
from anabranch.relate.placement import Parts
from anabranch.relate.spec import RelateSpec
from anabranch.relate.windows import Windows
from anabranch.transport.limits import AnswerLimit, last_one

#: How to change a query that has too many answers.
_REMEDY = "compare keys in WHERE, or set a THRESHOLD"


def decide(spec: RelateSpec, members: pa.Table) -> pa.Table:
    """The answers about the pairs of a block, from its members."""
    return decide_pairs(spec, *(members.filter(pc.equal(members["side"], number)) for number in (0, 1)))


def decide_pairs(spec: RelateSpec, firsts: pa.Table, seconds: pa.Table, parts: Parts | None = None) -> pa.Table:
    """The answers about the pairs of entities of the first operand with those of the second.

    With the parts of a bucket, these are the pairs of entities of one part with those of the other.
    """
    if not firsts.num_rows or not seconds.num_rows:
        return spec.result_schema.empty_table()
    firsts, seconds = firsts.combine_chunks(), seconds.combine_chunks()
    first, second = side_of(spec, 0, firsts), side_of(spec, 1, seconds)
    if not first.changed.any() and not second.changed.any():
        return spec.result_schema.empty_table()
    deciding = _Deciding(spec, (first, second), (firsts, seconds))
    chunks = pairs_of(spec.analysis, first, second, spec.relations, parts)
    answers = [deciding.answers(pairs) for pairs in chunks]
    return pa.concat_tables([spec.result_schema.empty_table(), *answers])


class _Version(NamedTuple):
    """One version of the entities of both operands of a block, and the conditions on their segments."""

    windows: tuple[Windows, Windows]
    conditions: SegmentConditions | None

    @staticmethod
    def of(
        spec: RelateSpec, sides: tuple[Side, Side], entities: tuple[pa.Table, pa.Table], is_previous: bool = False
    ) -> _Version:
        """The current version of each entity, or the one before its last change, if there is one."""
        operands = []
        for stream, side, table in zip(spec.streams, sides, entities, strict=True):
            windows = Windows.from_blobs(_version(table, "entity", "previous", is_previous), spec.has_laws(stream))
            lists = None
            if spec.attributes(stream):
                lists = _version(table, *spec.attribute_names(stream), is_previous).cast(spec.attribute_type(stream))
            operands.append((windows, side.keys, lists))
        first, second = operands
        conditions = None
        if spec.analysis.has_segment_conditions:
            segments = Segments.of(*first), Segments.of(*second)
            conditions = SegmentConditions(spec.analysis, segments, spec.relations)
        return _Version((first[0], second[0]), conditions)


def _version(entities: pa.Table, current: str, previous: str, is_previous: bool) -> pa.Array:
    """A column of the current or the previous version; without a previous version, of the current one."""
    column = flat(entities[current])
    return pc.coalesce(flat(entities[previous]), column) if is_previous else column


class _Deciding:
    """The entities of a block: their current versions, and the versions before their last change."""

    def __init__(self, spec: RelateSpec, sides: tuple[Side, Side], entities: tuple[pa.Table, pa.Table]) -> None:
        self._spec, self._sides = spec, sides
        self._limit = AnswerLimit(spec.analysis.query.name, spec.max_answers, _REMEDY)
        self._ended, self._valid, changed = (
            [flat(side[name]).to_numpy(zero_copy_only=False) for side in entities]
            for name in ("ended", "valid", "changed")
        )
        #: Whether an entity existed before this step; one that did not change has no previous version.
        self._existed = [
            flat(side["previous"]).is_valid().to_numpy(zero_copy_only=False) | ~has_changed
            for side, has_changed in zip(entities, changed, strict=True)
        ]
        self._current = _Version.of(spec, sides, entities)
        self._previous = _Version.of(spec, sides, entities, is_previous=True) if spec.live else self._current

    def answers(self, pairs: I64) -> pa.Table:
        """The answers about some pairs, retractions included."""
        query, live = self._spec.analysis.query, self._spec.live
        decided = self._relate(self._current, pairs)
        decided.remove(~(self._valid[0][pairs[:, 0]] & self._valid[1][pairs[:, 1]]))
        probability = decided.probability
        reported = (probability > 0) & (probability >= query.least_probability)
        final = self._ended[0][pairs[:, 0]] & self._ended[1][pairs[:, 1]] & reported
        if live:
            self._compare_with_previous(pairs, decided, final, reported)
        self._limit.add(int(reported.sum()), lambda: self._described(pairs[reported][-1]))
        schema = self._spec.result_schema
        columns = [self._operand(number, pairs[reported, number], list(schema.field(number).type)) for number in (0, 1)]
        columns.append(pa.array(probability[reported]))
        columns += [pa.array(decided.complement[reported])] if query.complement else []
        if query.count:
            columns += [pa.array(column).filter(reported) for column in (decided.expected, decided.distributions)]
        columns += [pc.if_else(pa.array(final[reported]), "final", "provisional")] if live else []
        return pa.table(columns, schema=schema)

    def _operand(self, number: int, entities: I64, fields: list[pa.Field]) -> pa.Array:
        """Entities of one operand as structs: their keys, and their ends if a stream of answers needs them."""
        columns = [key.take(pa.array(entities)) for key in self._sides[number].keys.values()]
        if self._spec.has_ends:
            columns.append(decode_times(self._current.windows[number].latest[entities], self._spec.time_kind))
        # The keys come from Spark, whose settings decide between string and large_string.
        typed = [column.cast(field.type) for column, field in zip(columns, fields, strict=True)]
        return pa.StructArray.from_arrays(typed, fields=fields)

    def _described(self, pair: I64) -> str:
        """The keys of a pair, for a message."""
        operands = self._spec.analysis.query.operands
        return last_one(
            {
                f"{operand.label}.{name}": column[int(number)]
                for operand, side, number in zip(operands, self._sides, pair, strict=True)
                for name, column in side.keys.items()
            }
        )

    def _relate(self, version: _Version, pairs: I64) -> Decided:
        doubles = self._spec.time_kind is TimeKind.DOUBLE
        return relate(self._spec.analysis, doubles, *version.windows, pairs, version.conditions)

    def _compare_with_previous(self, pairs: I64, decided: Decided, final: Bools, reported: Bools) -> None:
        """Update `reported` by what was reported before the last change.

        A pair that held before is reported with its new probability, also if that is 0, and not if it is the same.
        """
        existed = self._existed[0][pairs[:, 0]] & self._existed[1][pairs[:, 1]]
        chosen = np.flatnonzero(existed & ~final)
        if len(chosen):
            previous = self._relate(self._previous, pairs[chosen])
            least = self._spec.analysis.query.least_probability
            held = (previous.probability > 0) & (previous.probability >= least)
            same = decided.is_same(chosen, previous)
            reported[chosen] = (reported[chosen] | held) & ~(held & same)
