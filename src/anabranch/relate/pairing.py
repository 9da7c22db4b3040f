"""Candidate pairs of the entities of a block.

Possible partners share a bucket, which is a block then, or Spark brings them together in blocks (`Pairing`,
`runtime/blocks.py`). This module forms the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.binding.typed import Typed, conjunction
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.language.types import Type
from anabranch.relate import kernel
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.placement import Parts
from anabranch.relate.spec import RelateSpec
from anabranch.transport.parts import parts_of_keys

#: A worker processes about this many pairs at a time.
PAIRS_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Side:
    """The entities of one operand in a block: key columns by lower-case name, time limits, and whether each changed."""

    keys: dict[str, pa.Array]
    earliest: I64
    latest: I64
    changed: Bools

    def __len__(self) -> int:
        return len(self.changed)


def side_of(spec: RelateSpec, number: int, entities: pa.Table) -> Side:
    """The entities of operand 0 or 1 of a block."""
    names = spec.key_names(spec.streams[number])
    keys = {name: flat(entities[column]) for name, column in names.items()}
    earliest, latest = (entities[name].to_numpy() for name in ("earliest", "latest"))
    return Side(keys, earliest, latest, flat(entities["changed"]).to_numpy(zero_copy_only=False))


def pairs_of(
    analysis: RelateAnalysis, first: Side, second: Side, relations: Mapping[str, pa.Table], parts: Parts | None = None
) -> Iterator[I64]:
    """All pairs (n, 2) of a block that satisfy WHERE and can satisfy the query, in chunks.

    Candidates are found by the equated columns and by time. The rest of WHERE is evaluated on the candidates only. With
    the parts of a bucket, a pair has an entity of each.
    """
    codes = _codes(analysis, first, second, parts)
    order = np.lexsort((second.earliest, codes[1]))
    sorted_code, sorted_earliest = codes[1][order], second.earliest[order]
    begin, end = (np.searchsorted(sorted_code, codes[0], side=side) for side in ("left", "right"))
    if not analysis.holds_apart("PRECEDES"):  # then the second entity must not begin after the end of the first
        end = kernel.upper_bounds(sorted_earliest, begin, end, first.latest)
    must_reach = not analysis.holds_apart("PRECEDED BY")
    rest = conjunction(analysis.joined)
    for low, high in chunks(end - begin, PAIRS_AT_ONCE):
        pairs = kernel.candidate_pairs(
            begin[low:high], end[low:high], low, order, first.earliest, second.latest, first.changed, second.changed,
            must_reach,
        )  # fmt: skip
        chosen = _is_chosen(analysis, first, second, pairs, rest, relations)
        yield pairs[chosen]


def _codes(analysis: RelateAnalysis, first: Side, second: Side, parts: Parts | None) -> tuple[I64, I64]:
    """Codes of the equated columns: two entities have the same code if the equalities of WHERE hold.

    Parts are one more such column: that of the first entity equals the one of the bucket that the second is not in.
    """
    columns = []
    if parts is not None and not parts.is_repeated:
        own, partner = (parts_of_keys([*side.keys.values()], len(side), parts.of) for side in (first, second))
        columns.append(pa.chunked_array([pa.array(own), pa.array(parts.one + parts.other - partner)]))
    for one, other in analysis.equalities:
        left, right = first.keys[one.name], second.keys[other.name]
        if Type.DOUBLE in (one.type, other.type):
            left, right = as_doubles(left), as_doubles(right)
        columns.append(pa.chunked_array([left, right.cast(left.type)]))
    if not columns:
        return np.zeros(len(first), np.int64), np.zeros(len(second), np.int64)
    codes = encode_tuples(columns, len(first) + len(second))[0].astype(np.int64)
    return codes[: len(first)], codes[len(first) :]


def as_doubles(column: pa.Array) -> pa.Array:
    """Numbers as doubles, for comparison with doubles: each is rounded to the nearest, and -0.0 becomes 0.0."""
    return pc.add(column.cast(pa.float64(), safe=False), 0.0)


def chunks(sizes: I64, at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of items whose sizes add up to about `at_once`, at least one item per range."""
    if not len(sizes):
        return
    filled = np.cumsum(sizes) // at_once
    cuts = np.flatnonzero(np.diff(filled)) + 1
    yield from zip([0, *cuts.tolist()], [*cuts.tolist(), len(sizes)], strict=True)


def _is_chosen(
    analysis: RelateAnalysis,
    first: Side,
    second: Side,
    pairs: I64,
    rest: Typed | None,
    relations: Mapping[str, pa.Table],
) -> Bools:
    """Which pairs satisfy the rest of WHERE, and do not pair a key with itself."""
    columns = {
        f"{operand.name}.{name}": column.take(pa.array(pairs[:, number]))
        for number, (operand, side) in enumerate(zip(analysis.query.operands, (first, second), strict=True))
        for name, column in side.keys.items()
    }
    chosen = holds(rest, columns, relations, len(pairs))
    if analysis.same_stream:
        a, b = (operand.name for operand in analysis.query.operands)
        equal = [pc.equal(columns[f"{a}.{name}"], columns[f"{b}.{name}"]) for name in first.keys]
        chosen &= ~np.logical_and.reduce([column.to_numpy(zero_copy_only=False) for column in equal])
    return chosen
