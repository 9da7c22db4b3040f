"""Spark's filters skip rows that cannot be part of an answer, and the answers do not change."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from anabranch import Session

DECLARATIONS = """
CREATE STREAM at KEY (person) VALUE (place) TIME t MODEL INDEPENDENT;
CREATE RELATION staff (person);
"""


def session_with(spark: SparkSession, tmp_path: Path, query: str) -> Session:
    rows = [(f"p{i % 50}", "hall" if i % 2 else "office", i // 50, 0.5) for i in range(500)] + [(None, "hall", 1, 0.5)]
    spark.createDataFrame(rows, "person string, place string, t int, p double").write.parquet(str(tmp_path / "at"))
    session = Session(spark)
    session.execute(f"{DECLARATIONS} CREATE QUERY q AS PATTERN {query};")
    # Bound as a DataFrame, so that Spark's reader pushes the filters down to the files.
    session.bind("at", spark.read.parquet(str(tmp_path / "at")))
    session.bind("staff", spark.createDataFrame([("p7",), ("p8",)], "person string"))
    return session


def test_a_named_key_becomes_a_filter_of_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with(spark, tmp_path, "at('p7', 'hall') THEN at('p7', 'hall')")
    answers = session.run("q")
    plan = answers._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(person,p7)" in plan
    assert {row.t: row.probability for row in answers.collect()}.keys() == set(range(1, 10))
    assert session.counts("q").read == 11  # the ten rows of p7, and the row without a key
    assert session.counts("q").quarantined == 1


def test_a_relation_on_the_key_becomes_a_filter_too(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with(spark, tmp_path, "at(x, 'hall')[staff(x)] GROUP BY x")
    assert {row.x for row in session.run("q").collect()} == {"p7"}
    assert session.counts("q").read == 21


def test_every_row_is_read_if_every_key_can_match(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with(spark, tmp_path, "at('p7', 'hall') THEN at(y, 'office')")
    session.run("q").collect()
    assert session.counts("q").read == 501
