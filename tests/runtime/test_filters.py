"""Conditions as Spark columns, compared with their evaluation row by row."""

from __future__ import annotations

import itertools
import random
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types
from tests.drawn import drawn
from tests.oracles import conditions as oracle
from tests.typed_trees import COLUMNS, DOMAIN, RELATIONS, as_python, conditions

from anabranch.binding.typed import Constant, Operation, Reference
from anabranch.language.types import Type
from anabranch.runtime.filters import lower
from anabranch.runtime.sources.schema import SPARK_TYPES

SETS = {relation.name: set(rows) for relation, rows in RELATIONS.items()}
LISTS = {
    relation.name.lower(): [
        tuple(as_python(value, column.type) for value, column in zip(row, relation.columns, strict=True))
        for row in rows
    ]
    for relation, rows in RELATIONS.items()
}


def random_rows(count: int) -> list[dict[str, Any]]:
    """Random rows; every value of every column occurs."""
    rng = random.Random(7)
    return [{name: rng.choice([None, *DOMAIN[kind]]) for name, kind in COLUMNS.items()} for _ in range(count)]


ROWS = random_rows(60)


def test_a_condition_on_spark_equals_its_evaluation_row_by_row(spark: SparkSession) -> None:
    trees = drawn(conditions(2), 100)
    schema = spark_types.StructType(
        [spark_types.StructField(name, SPARK_TYPES[kind]) for name, kind in COLUMNS.items()]
    )
    data = [tuple(as_python(row[name], kind) for name, kind in COLUMNS.items()) for row in ROWS]
    frame = spark.createDataFrame(data, schema)
    columns = {name: frame[name] for name in COLUMNS}
    lowered = [lower(tree, columns, LISTS).alias(str(number)) for number, tree in enumerate(trees)]
    answers = frame.coalesce(1).select(*lowered).collect()
    for number, tree in enumerate(trees):
        expected = [oracle.evaluate(tree, row, SETS) for row in ROWS]
        assert [answer[number] for answer in answers] == expected, tree


def test_integers_that_overflow_become_doubles(spark: SparkSession) -> None:
    most, least = Constant(2**63 - 1, Type.INTEGER), Constant(-(2**63), Type.INTEGER)
    one = Constant(1, Type.INTEGER)
    trees = {
        Operation("+", (most, one), Type.INTEGER): 2.0**63,
        Operation("-", (least, one), Type.INTEGER): -(2.0**63),
        Operation("*", (most, most), Type.INTEGER): 2.0**126,
        Operation("negate", (least,), Type.INTEGER): 2.0**63,
        Operation("abs", (least,), Type.INTEGER): 2.0**63,
    }
    (row,) = spark.range(1).select(*(lower(tree, {}, {}) for tree in trees)).collect()
    assert list(row) == list(trees.values())


def test_a_name_is_never_read_as_sql(spark: SparkSession) -> None:
    hostile = "x' OR 1 = 1 --"
    frame = spark.createDataFrame([(hostile,), ("x",)], ["a name, with; marks"])
    tree = Operation("=", (Reference(None, "v", Type.STRING), Constant(hostile, Type.STRING)), Type.BOOLEAN)
    matching = frame.where(lower(tree, {"v": F.col("`a name, with; marks`")}, {})).collect()
    assert list(itertools.chain.from_iterable(matching)) == [hostile]
