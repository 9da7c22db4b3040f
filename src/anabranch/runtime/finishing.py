"""Finishing rules lowered to Spark: the same rules as `transport/finishing.py`, as expressions over a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.binding.bound import CALIBRATED
from anabranch.columns.calibration import Piece
from anabranch.runtime.blocks import in_blocks
from anabranch.runtime.per import quoted, rows_of_frame
from anabranch.transport.dependence import bounded_batches
from anabranch.transport.finishing import (
    QUERY,
    REST,
    AnyOf,
    Finishing,
    Pairing,
    ResultColumn,
    StructColumn,
    SumOf,
)


def finish_frame(rules: Finishing, answers: DataFrame, instants: DataFrame | None = None) -> DataFrame:
    """Apply the rules to the operators' answers; `instants` are those of the streams, where a rule needs them."""
    if rules.query is not None:
        answers = answers.where(F.col(QUERY) == rules.query)
    if rules.prefix:
        own = [name for name in answers.columns if name.startswith(rules.prefix)]
        answers = answers.selectExpr(*(f"{quoted(name)} AS {quoted(name.removeprefix(rules.prefix))}" for name in own))
    if rules.pairing is not None:
        answers = _pairs(rules.pairing, answers)
    if rules.any_of is not None:
        answers = _combine(rules.any_of, answers)
    if rules.sum_of is not None:
        answers = _add(rules.sum_of, answers)
    if rules.columns is not None:
        answers = answers.selectExpr(*map(_column, rules.columns))
    if rules.bounds is not None:
        bounds = rules.bounds
        # A lambda instead of a partial: Spark inspects type hints.
        answers = answers.mapInArrow(lambda batches: bounded_batches(bounds, batches), answers.schema)
    if rules.per is not None:
        answers = rows_of_frame(rules.per, answers, instants)
    if rules.calibration is not None:
        # `least` and `greatest` ignore NULL, so the probability is tested before.
        mapped = f"IF(probability IS NULL, NULL, {_calibrated(rules.calibration.pieces)})"
        answers = answers.selectExpr("*", f"{mapped} AS {CALIBRATED}")
    if rules.limit is not None:
        others = (quoted(name) for name in answers.columns if name != "probability")
        answers = answers.orderBy(F.desc("probability"), *others).limit(rules.limit)
    return answers


def to_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table as a DataFrame.

    The table is one chunk, because Spark stops at an empty chunk and loses the rows behind it.
    """
    whole = table.combine_chunks() if table.num_rows else table.schema.empty_table()
    return spark.createDataFrame(whole, schema=from_arrow_schema(table.schema))


def _pairs(rule: Pairing, rows: DataFrame) -> DataFrame:
    decide, result = rule.decide, _applied_schema(rows.sparkSession, rule.schema)
    # A lambda instead of the function: Spark inspects type hints, and fails on those of a partial.
    return (
        in_blocks(rule, rows)
        .groupBy("block")
        .applyInArrow(lambda members: decide(members).cast(result), from_arrow_schema(rule.schema))
    )


def _applied_schema(spark: SparkSession, schema: pa.Schema) -> pa.Schema:
    """The Arrow types that `applyInArrow` accepts for a schema; it converts none.

    Before 4.3, Spark accepts large types only as its input, whatever the setting says.
    """
    large = spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    if not large or tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        return schema
    return pa.schema([field.with_type(_with_large_types(field.type)) for field in schema])


def _with_large_types(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_large_types(field.type)) for field in kind])
    if pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) else kind


def _combine(rule: AnyOf, answers: DataFrame) -> DataFrame:
    by = [f"`{name}`" for name in rule.by]
    combined = answers.groupBy(*by).agg(F.expr("sum(log_none) AS log_none"))
    probability = combined.selectExpr(*by, "-expm1(log_none) AS probability")
    return probability.where((F.col("probability") > 0) & (F.col("probability") >= rule.least))


def _add(rule: SumOf, answers: DataFrame) -> DataFrame:
    """The sum of independent counts: a convolution of their distributions, stopped at the limit."""
    by = [f"`{name}`" for name in rule.by]
    last = rule.limit
    below = f"aggregate(sequence(0, {last} - 1), 0D, (s, i) -> s + IF(i <= k, a[i] * b[greatest(k - i, 0)], 0D))"
    reached = (
        f"aggregate(sequence(0, {last}), 0D, "
        f"(s, i) -> s + a[i] * aggregate(slice(b, {last} - i + 1, i + 1), 0D, (u, v) -> u + v))"
    )
    added = f"(a, b) -> transform(sequence(0, {last}), k -> IF(k < {last}, {below}, {reached}))"
    none = f"transform(sequence(0, {last}), k -> IF(k = 0, 1D, 0D))"
    sums = answers.groupBy(*by).agg(F.expr("collect_list(counts) AS counts"), F.expr("sum(expected) AS expected"))
    probability = sums.selectExpr(*by, f"aggregate(counts, {none}, {added})[{last}] AS probability", "expected")
    return probability.where((F.col("probability") > 0) & (F.col("probability") >= rule.least))


def _column(column: ResultColumn | StructColumn) -> str:
    """A result column as text: one call to the JVM for all columns, instead of several per column."""
    if isinstance(column, StructColumn):
        expression = f"struct({', '.join(map(_column, column.fields))})"
    elif column.source is None:
        expression = f"{column.constant}L" if isinstance(column.constant, int) else f"'{column.constant}'"
    elif column.index is None:
        expression = quoted(column.source)
    elif column.count is None:
        expression = f"get({quoted(column.source)}, {column.index})"
    else:
        source = quoted(column.source)
        count = f"size({source})" if column.count == REST else column.count
        expression = f"slice({source}, {column.index + 1}, {count})"
    return f"{expression} AS {quoted(column.name)}"


def _calibrated(pieces: Sequence[Piece]) -> str:
    """A calibration map as text: nested IFs search the piece of a probability by bisection."""
    if len(pieces) > 1:
        middle = len(pieces) // 2
        below, above = _calibrated(pieces[:middle]), _calibrated(pieces[middle:])
        return f"IF(probability < {pieces[middle].start!r}D, {below}, {above})"
    (piece,) = pieces
    rise = f"greatest(probability - {piece.start!r}D, 0D) * {piece.slope!r}D"
    return f"least({piece.low!r}D + {rise}, {piece.high!r}D)"
