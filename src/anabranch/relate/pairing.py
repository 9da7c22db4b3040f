"""Who meets whom: entities to blocks, by Spark, and within a block to pairs.

Where WHERE equates columns of the two operands, equal values make a block, and an entity travels once. Else the blocks
are a square: an entity belongs to a row of it as the first operand, and to a column as the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.arrays import I64, Bools
from anabranch.binding.typed import Typed, conjunction, conjuncts
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import encode_tuples
from anabranch.compiled import compiled
from anabranch.language.types import Type
from anabranch.relate.analysis import RelateAnalysis

#: A worker looks at no more than about this many pairs at once.
PAIRS_AT_ONCE = 1_000_000

#: Blocks for each core, so that a block that takes long does not hold up the others.
_BLOCKS_A_CORE = 8


# ---------------------------------------------------------------- blocks


def in_blocks(
    entities: DataFrame, analysis: RelateAnalysis, keys: list[dict[str, str]], streams: list[int]
) -> DataFrame:
    """The entities, once for each block and side (0 or 1) that they take part in.

    Parameters
    ----------
    keys : for each operand, what the entities call the key columns of the workbook
    streams : for each operand, the number of its stream
    """
    n_blocks = _BLOCKS_A_CORE * entities.sparkSession.sparkContext.defaultParallelism
    places = []
    for side, (names, stream) in enumerate(zip(keys, streams, strict=True)):
        blocks = _equal_values(analysis, names, side, n_blocks) if analysis.equalities else _line(names, side, n_blocks)
        sides = F.array_repeat(F.lit(side), F.size(blocks))
        mine = F.when(F.col("stream") == stream, F.arrays_zip(blocks.alias("block"), sides.alias("side")))
        places.append(F.coalesce(mine.cast(_PLACES), F.array().cast(_PLACES)))
    return entities.withColumn("place", F.explode(F.concat(*places))).select("place.*", *entities.columns)


_PLACES = "array<struct<block: int, side: int>>"


def _equal_values(analysis: RelateAnalysis, names: dict[str, str], side: int, n_blocks: int) -> Column:
    columns = []
    for pair in analysis.equalities:
        column = F.col(names[pair[side].name])
        # Numbers that are equal hash the same only if they are of one type.
        columns.append(column.cast("double") if any(each.type is Type.DOUBLE for each in pair) else column)
    return F.array(_share(columns, n_blocks))


def _line(names: dict[str, str], side: int, n_blocks: int) -> Column:
    """The row, or the column, of the square that an entity belongs to."""
    width = isqrt(n_blocks)
    mine = _share([F.col(name) for name in names.values()], width)
    along = F.sequence(F.lit(0), F.lit(width - 1))
    return F.transform(along, lambda each: mine * width + each if side == 0 else each * width + mine)


def _share(columns: list[Column], n_shares: int) -> Column:
    return F.pmod(F.xxhash64(*columns), F.lit(n_shares)).cast("int")


# ---------------------------------------------------------------- pairs


@dataclass(frozen=True, slots=True)
class Side:
    """One operand's entities in a block: their key columns by lower-case name, and what else decides about pairs."""

    keys: dict[str, pa.Array]
    earliest: I64
    latest: I64
    changed: Bools

    def __len__(self) -> int:
        return len(self.changed)


def pairs_of(analysis: RelateAnalysis, first: Side, second: Side, relations: Mapping[str, pa.Table]) -> Iterator[I64]:
    """All pairs (n, 2) of a block that WHERE chooses and that can satisfy the query, some at a time.

    Candidates are found by the equal columns and by time; only they are asked the rest of WHERE.
    """
    codes = _codes(analysis, first, second)
    order = np.lexsort((second.earliest, codes[1]))
    sorted_code, sorted_earliest = codes[1][order], second.earliest[order]
    begin, end = (np.searchsorted(sorted_code, codes[0], side=side) for side in ("left", "right"))
    if not analysis.asks("PRECEDES"):  # then no pair may have the second wholly after the first
        end = _searched(sorted_earliest, begin, end, first.latest)
    must_reach = not analysis.asks("PRECEDED BY")
    rest = conjunction(tuple(part for part in conjuncts(analysis.query.where) if part not in analysis.equated))
    for low, high in _chunks(end - begin):
        pairs = _candidates(
            begin[low:high], end[low:high], low, order, first.earliest, second.latest, first.changed, second.changed,
            must_reach,
        )  # fmt: skip
        chosen = _is_chosen(analysis, first, second, pairs, rest, relations)
        yield pairs[chosen]


def _codes(analysis: RelateAnalysis, first: Side, second: Side) -> tuple[I64, I64]:
    """Numbers that are the same where WHERE's equalities hold."""
    if not analysis.equalities:
        return np.zeros(len(first), np.int64), np.zeros(len(second), np.int64)
    columns = []
    for one, other in analysis.equalities:
        left, right = first.keys[one.name], second.keys[other.name]
        if Type.DOUBLE in (one.type, other.type):
            left, right = as_doubles(left), as_doubles(right)
        columns.append(pa.chunked_array([left, right.cast(left.type)]))
    codes = encode_tuples(columns, len(first) + len(second))[0].astype(np.int64)
    return codes[: len(first)], codes[len(first) :]


def as_doubles(column: pa.Array) -> pa.Array:
    """Numbers as they are compared with doubles: the nearest of them, and one zero."""
    return pc.add(column.cast(pa.float64(), safe=False), 0.0)


@compiled
def _searched(values: I64, begin: I64, end: I64, limit: I64) -> I64:
    """For each range of sorted values, where those above its limit begin."""
    result = np.empty_like(end)
    for k in range(len(begin)):
        result[k] = begin[k] + np.searchsorted(values[begin[k] : end[k]], limit[k], side="right")
    return result


def _chunks(sizes: I64) -> Iterator[tuple[int, int]]:
    """Runs of entities with about PAIRS_AT_ONCE candidates together, at least one entity each."""
    if not len(sizes):
        return
    filled = np.cumsum(sizes) // PAIRS_AT_ONCE
    cuts = np.flatnonzero(np.diff(filled)) + 1
    yield from zip([0, *cuts.tolist()], [*cuts.tolist(), len(sizes)], strict=True)


@compiled
def _candidates(
    begin: I64,
    end: I64,
    offset: int,
    order: I64,
    earliest: I64,
    latest: I64,
    changed_first: Bools,
    changed_second: Bools,
    must_reach: bool,
) -> I64:
    """Pairs in the given ranges of which either changed, and that overlap if they must."""
    total = 0
    for k in range(len(begin)):
        total += end[k] - begin[k]
    pairs = np.empty((total, 2), np.int64)
    count = 0
    for k in range(len(begin)):
        a = offset + k
        for place in range(begin[k], end[k]):
            b = order[place]
            if (changed_first[a] or changed_second[b]) and (not must_reach or latest[b] >= earliest[a]):
                pairs[count, 0], pairs[count, 1] = a, b
                count += 1
    return pairs[:count]


def _is_chosen(
    analysis: RelateAnalysis,
    first: Side,
    second: Side,
    pairs: I64,
    rest: Typed | None,
    relations: Mapping[str, pa.Table],
) -> Bools:
    """Which pairs meet the rest of WHERE, and are not one key twice."""
    columns = {
        f"{operand.name}.{name}": column.take(pa.array(pairs[:, place]))
        for place, (operand, side) in enumerate(zip(analysis.query.operands, (first, second), strict=True))
        for name, column in side.keys.items()
    }
    chosen = holds(rest, columns, relations, len(pairs))
    if analysis.same_stream:
        a, b = (operand.name for operand in analysis.query.operands)
        equal = [pc.equal(columns[f"{a}.{name}"], columns[f"{b}.{name}"]) for name in first.keys]
        chosen &= ~np.logical_and.reduce([column.to_numpy(zero_copy_only=False) for column in equal])
    return chosen
