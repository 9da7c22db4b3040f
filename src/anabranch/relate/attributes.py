"""The attributes of segments, and the conditions of WHERE on them.

The attributes of a segment are the VALUE columns of the row of its opening event. They are *unknown* if that event has
no row; then no condition that uses them is satisfied. Operators send them as lists, one struct for each segment.

In a block, conditions are evaluated once for each two distinct tuples of the columns that they use, not for each two
segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.binding.typed import Typed, references
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import Dictionary, encode_tuples
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.windows import Windows

#: The most pairs of distinct tuples for which a condition is evaluated in advance.
MOST_IN_ADVANCE = 1 << 22


def to_lists(windows: Windows, values: Dictionary, list_type: pa.DataType) -> pa.Array:
    """The attributes of the segments of each entity, as one list per entity; see `RelateSpec.attribute_type`."""
    if windows.attributes is None:
        raise LookupError("the entities have no attributes")
    numbers = windows.attributes[::2]  # an entity has an even number of events
    known = numbers >= 0
    columns = values.take(np.maximum(numbers, 0).astype(np.int32)) if known.any() else []
    fields = list(list_type.value_type)
    arrays = columns or [pa.nulls(len(numbers), field.type) for field in fields]
    structs = pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(~known))
    return pa.ListArray.from_arrays(pa.array((windows.events // 2).astype(np.int32)), structs, type=list_type)


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of the entities of one operand in a block, one entity after the other.

    Attributes
    ----------
    first : the index of each entity's first segment; one entry more than entities
    columns : attributes and keys of each segment, by lower-case name
    known : whether the attributes of each segment are known
    """

    first: I64
    columns: dict[str, pa.Array]
    known: Bools

    @staticmethod
    def of(windows: Windows, keys: Mapping[str, pa.Array], lists: pa.Array | None) -> Segments:
        """The segments of entities with these keys and attributes; `lists` is None if no attributes are used."""
        counts = windows.lengths // 2
        n_segments = int(counts.sum())
        entity = pa.array(np.repeat(np.arange(len(counts)), counts))
        columns = {name: column.take(entity) for name, column in keys.items()}
        known = np.zeros(n_segments, np.bool_)
        if lists is not None:
            structs = lists.flatten()
            known = structs.is_valid().to_numpy(zero_copy_only=False)
            columns |= {field.name: pc.struct_field(structs, field.name) for field in structs.type}
        return Segments(windows.events // 2, columns, known)


class _Condition:
    """A condition on a segment of the first operand and one of the second."""

    def __init__(
        self,
        condition: Typed,
        names: tuple[str, str],
        operands: tuple[Segments, Segments],
        relations: Mapping[str, pa.Table],
    ) -> None:
        self._condition, self._relations = condition, relations
        used = references(condition)
        self._tuples: list[dict[str, pa.Array]] = []
        self._codes: list[I64] = []
        for name, segments in zip(names, operands, strict=True):
            columns = {
                f"{name}.{column}": pa.chunked_array([values])
                for column, values in segments.columns.items()
                if (name, column) in used
            }
            codes, distinct = encode_tuples(list(columns.values()), len(segments.known))
            self._codes.append(codes.astype(np.int64))
            self._tuples.append(
                dict(zip(columns, (column.combine_chunks() for column in distinct.columns), strict=False))
            )
        self._sizes = [int(codes.max(initial=-1)) + 1 for codes in self._codes]
        self._table: Bools | None = None
        if self._sizes[0] * self._sizes[1] <= MOST_IN_ADVANCE:
            first, second = (axis.ravel() for axis in np.indices(self._sizes))
            self._table = self._evaluate(first, second)

    def holds(self, first: I64, second: I64) -> Bools:
        """Whether the condition holds for segments of the first operand with segments of the second."""
        first, second = self._codes[0][first], self._codes[1][second]
        if self._table is None:
            return self._evaluate(first, second)
        return self._table[first * self._sizes[1] + second]

    def _evaluate(self, first: I64, second: I64) -> Bools:
        columns = {
            name: column.take(pa.array(chosen))
            for tuples, chosen in zip(self._tuples, (first, second), strict=True)
            for name, column in tuples.items()
        }
        return holds(self._condition, columns, self._relations, len(first))


@dataclass(frozen=True, slots=True)
class Partners:
    """Which segments of some pairs of entities are compared with each other.

    Attributes
    ----------
    counts : whether each segment of the first entity counts; one pair after the other
    n_partners : the number of segments of the second entity that count, for each pair
    compared : for each segment of the first entity, for each one of the second, whether the two are compared; a segment
        that does not count is compared with none
    """

    counts: Bools
    n_partners: I64
    compared: Bools


class SegmentConditions:
    """The conditions of a query on the segments of the entities of a block."""

    def __init__(
        self,
        analysis: RelateAnalysis,
        operands: tuple[Segments, Segments],
        relations: Mapping[str, pa.Table],
    ) -> None:
        first, second = (operand.name for operand in analysis.query.operands)
        self._operands = operands
        self._counted, self._compared = (
            [None if tree is None else _Condition(tree, (first, second), operands, relations) for tree in trees]
            for trees in (analysis.counted, (analysis.compared,))
        )

    def partners(self, pairs: I64) -> Partners:
        """The segments that are compared with each other, for pairs (n, 2) of entity numbers."""
        first, second = (operand.first for operand in self._operands)
        a, b = pairs[:, 0], pairs[:, 1]
        n_first, n_second = np.diff(first)[a], np.diff(second)[b]
        pair_of_first, number_of_first = numbered(n_first)
        pair_of_second, number_of_second = numbered(n_second)
        segment_of_first = first[a][pair_of_first] + number_of_first
        segment_of_second = second[b][pair_of_second] + number_of_second
        counts_first = self._counts(0, segment_of_first, second[b][pair_of_first])
        counts_second = self._counts(1, first[a][pair_of_second], segment_of_second)
        # One cell for each segment of the first entity and each one of the second.
        row, number = numbered(n_second[pair_of_first])
        column = (np.cumsum(n_second) - n_second)[pair_of_first][row] + number
        compared = counts_first[row] & counts_second[column]
        (condition,) = self._compared
        if condition is not None:
            x, y = segment_of_first[row], segment_of_second[column]
            compared &= condition.holds(x, y) & self._operands[0].known[x] & self._operands[1].known[y]
        n_partners = np.bincount(pair_of_second, counts_second, len(pairs)).astype(np.int64)
        return Partners(counts_first, n_partners, compared)

    def _counts(self, side: int, first: I64, second: I64) -> Bools:
        """Whether segments of one operand count; the other segments give the keys of their entities."""
        condition = self._counted[side]
        if condition is None:
            return np.ones(len(first), np.bool_)
        return condition.holds(first, second) & self._operands[side].known[(first, second)[side]]


def numbered(sizes: I64) -> tuple[I64, I64]:
    """The group of each item, and its number in the group, for groups of these sizes."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group]
