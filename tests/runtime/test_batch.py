"""Batch runs: the answers equal those of the operators without Spark, every row is counted, errors are one line."""

from __future__ import annotations

import json
import math

import pytest
from pyspark.sql import SparkSession
from tests.runtime.cases import cases, local_run, session_of, tables_of
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, collect, query, same, stream

from anabranch import Session
from anabranch.errors import AnabranchError, DataError
from anabranch.runtime.failures import translate


def office(spark: SparkSession, rows: list[tuple], more: str = "GROUP BY x") -> Session:
    session = Session(spark)
    session.execute(stream("at") + query("coffee", "at", more))
    session.bind("at", spark.createDataFrame(rows, "person string, place string, t long, p double"))
    return session


def failure(session: Session, name: str, strict: bool = False) -> AnabranchError:
    """The error of a failed run."""
    with pytest.raises(Exception) as failed:
        session.run(name, strict).collect()
    error = translate(failed.value)
    assert "\n" not in str(error)
    return error


def test_spark_gives_the_answers_and_counts_of_the_operators_without_spark(spark: SparkSession) -> None:
    for case in cases(2):
        session = session_of(spark, case)
        for name, table in tables_of(case).items():
            session.bind(name, spark.createDataFrame(table).repartition(3))
        local = local_run(case)
        assert same(collect(session.run(case.query)), local.answers()), case.workbook
        counts = session.counts(case.query)
        # Spark may have skipped rows whose key cannot match; the operators count such rows as used.
        skipped = local.counts.read - counts.read
        assert skipped >= 0
        assert (counts.used + skipped, counts.duplicate) == (local.counts.used, local.counts.duplicate)
        assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined


BAD = [
    ((None, "coffee", 2, 0.5), "person is NULL"),
    (("ann", "coffee", None, 0.5), "t is NULL"),
    (("ann", "coffee", 2, None), "p is NULL"),
    (("ann", "coffee", 2, math.nan), "p is not a number"),
    (("ann", "coffee", 2, -0.5), "p is outside [0, 1]"),
    (("ann", "coffee", 2, math.inf), "p is outside [0, 1]"),
    (("eve", "hall", 1, 0.7), "the probabilities of its group sum above 1"),
    (("eve", "coffee", 1, 0.7), "the probabilities of its group sum above 1"),
]


def test_bad_rows_are_quarantined_with_the_reason_and_every_row_is_counted(spark: SparkSession) -> None:
    duplicates = [ROWS[0], ROWS[0]]
    session = office(spark, [*ROWS, *(row for row, _ in BAD), *duplicates, ("eve", "coffee", 2, 1.0)])
    assert same(collect(session.run("coffee")), ANSWERS), "eve was never in the hall: her whole group is quarantined"
    counts = session.counts("coffee")
    assert (counts.read, counts.used, counts.duplicate, counts.late, counts.quarantined) == (17, 7, 2, 0, 8)
    quarantined = [
        (json.loads(row["row"]), row["reason"], row["stream"]) for row in session.quarantine("coffee").collect()
    ]
    reported = sorted((str(tuple(row[name] for name in SCHEMA.names)), reason) for row, reason, _ in quarantined)
    as_text = {math.inf: "Infinity"}
    expected = [
        (str(tuple("NaN" if value != value else as_text.get(value, value) for value in row)), reason)
        for row, reason in BAD
    ]
    assert reported == sorted(expected)
    assert {name for *_, name in quarantined} == {"at"}


def test_a_group_whose_sum_exceeds_one_by_rounding_is_used(spark: SparkSession) -> None:
    tenths = [("ann", f"place {n}", 1, 0.1) for n in range(9)]
    session = office(spark, [*tenths, ("ann", "hall", 1, 0.1 + 5e-7), ("ann", "coffee", 2, 1.0)])
    assert collect(session.run("coffee")) == pytest.approx({(2, "ann"): 0.1}, abs=1e-6)
    assert session.counts("coffee").quarantined == 0


def test_strict_fails_at_the_first_invalid_row(spark: SparkSession) -> None:
    for row, reason in (BAD[3], BAD[-1]):
        error = failure(office(spark, [*ROWS, ("eve", "hall", 1, 0.7), row]), "coffee", strict=True)
        assert isinstance(error, DataError)
        assert f"invalid row of at: {reason}: " in str(error)
    assert same(collect(office(spark, ROWS).run("coffee", strict=True)), ANSWERS)


def test_a_joint_state_that_is_too_large_is_sampled(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM at KEY (person) VALUE (place) TIME t MODEL MARKOV;"
        "CREATE QUERY q AS PATTERN at(_, 'hall') THEN at(_, 'coffee') ACCURACY 0.02 SEED 5;"
    )
    rows = [(f"p{n}", place, None, t, 0.02) for n in range(40) for t, place in ((1, "hall"), (2, "coffee"))]
    session.bind("at", spark.createDataFrame(rows, "person string, place string, prev_place string, t int, p double"))
    (row,) = session.run("q").toArrow().to_pylist()
    # A person in the hall at 1 has no location at 2.
    no_hall, no_coffee, neither = 0.98**40, (0.02 + 0.98 * 0.98) ** 40, (0.98 * 0.98) ** 40
    assert row["method"] == "sampling"
    assert row["lower"] <= 1 - no_hall - no_coffee + neither <= row["upper"]
    assert row["upper"] - row["lower"] <= 0.04
    again = session.run("q").toArrow().to_pylist()
    assert again == [row]


def test_without_group_by_the_groups_are_combined(spark: SparkSession) -> None:
    session = office(spark, ROWS, more="")
    assert same(collect(session.run("coffee")), {(2,): 1 - 0.6 * 0.75, (3,): 0.25})
    assert same(collect(office(spark, ROWS, "THRESHOLD 0.3").run("coffee")), {(2,): 1 - 0.6 * 0.75})


def test_queries_that_route_rows_differently_share_a_pass(spark: SparkSession) -> None:
    queries = {
        "by_person": "PATTERN at(x, 'coffee') GROUP BY x",
        "by_place": "PATTERN at(_, y) GROUP BY y",
        "anybody": "PATTERN at(_, 'hall') THEN at(_, 'coffee')",
        "episodes": "PATTERN at(x, 'coffee') GROUP BY x PER EPISODE",
    }
    together, alone = Session(spark, partitions=3), Session(spark, partitions=3)
    for session in (together, alone):
        session.execute(stream("at") + "".join(f"CREATE QUERY {name} AS {text};" for name, text in queries.items()))
        session.bind("at", spark.createDataFrame(ROWS, "person string, place string, t long, p double"))
    assert len(together.groups(together.catalog.queries())) == 1
    for name, answers in together.run_all().items():
        expected = alone.run(name).toArrow().to_pylist()
        assert expected
        assert sorted(map(repr, answers.toArrow().to_pylist())) == sorted(map(repr, expected)), name


def test_a_run_is_lazy_and_a_counter_sees_every_row(spark: SparkSession) -> None:
    session = office(spark, ROWS)
    with pytest.raises(AnabranchError, match="coffee has not been run yet"):
        session.counts("coffee")
    counter = spark.sparkContext.accumulator(0)
    answers = session.run("coffee", counter=counter)
    assert session.has_run("COFFEE")
    assert counter.value == 0, "nothing is read before an action"
    assert answers.columns == ["t", "x", "probability", "lower", "upper", "method"]
    assert answers.where("x = 'ann'").count() == 1
    assert counter.value == len(ROWS)


def test_the_error_for_an_unknown_query_lists_the_declared_queries(spark: SparkSession) -> None:
    with pytest.raises(AnabranchError, match="there is no query tea; declared are: coffee"):
        office(spark, ROWS).run("tea")


def test_a_session_needs_a_partition() -> None:
    with pytest.raises(AnabranchError, match="at least 1 partition, not 0"):
        Session(partitions=0)
