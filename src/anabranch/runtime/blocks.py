"""Pairings lowered to Spark: rows that may form pairs are brought together in blocks.

Where rows pair by equal columns, equal values share a block, and a row is sent once. Otherwise blocks form a square: a
row is sent to one line of blocks as the first operand and to one column of blocks as the second.
"""

from __future__ import annotations

from math import isqrt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.runtime.spark_mode import parallelism
from anabranch.transport.finishing import BlockSide, Pairing

#: Blocks per core, so that one slow block does not delay the others.
_BLOCKS_PER_CORE = 8

_TARGETS = "array<struct<block: int, side: int>>"


def in_blocks(pairing: Pairing, rows: DataFrame) -> DataFrame:
    """The rows, once for each block and side (0 or 1) that they belong to."""
    n_blocks = _BLOCKS_PER_CORE * parallelism(rows.sparkSession)
    targets = []
    for number, side in enumerate(pairing.sides):
        blocks = F.array(_hash(side, n_blocks)) if pairing.equal else _line(side, number, n_blocks)
        sides = F.array_repeat(F.lit(number), F.size(blocks))
        own = F.when(F.col("stream") == side.stream, F.arrays_zip(blocks.alias("block"), sides.alias("side")))
        targets.append(F.coalesce(own.cast(_TARGETS), F.array().cast(_TARGETS)))
    return rows.withColumn("target", F.explode(F.concat(*targets))).select("target.*", *rows.columns)


def _line(side: BlockSide, number: int, n_blocks: int) -> Column:
    """The line (first operand) or the column (second operand) of blocks that a row belongs to."""
    width = isqrt(n_blocks)
    own = _hash(side, width)
    along = F.sequence(F.lit(0), F.lit(width - 1))
    return F.transform(along, lambda other: own * width + other if number == 0 else other * width + own)


def _hash(side: BlockSide, n_values: int) -> Column:
    columns = [
        F.col(name).cast("double") if as_double else F.col(name)
        for name, as_double in zip(side.columns, side.as_doubles, strict=True)
    ]
    return F.pmod(F.xxhash64(*columns), F.lit(n_values)).cast("int")
