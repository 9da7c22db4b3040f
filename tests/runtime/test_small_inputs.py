"""Small inputs take one Spark job, and unchanged files are not read again to find their columns."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, collect, query, same, stream, write_csv

from anabranch.errors import InputWarning
from anabranch.session import Session

HALL = "CREATE RELATION hall (place) FROM 'hall.csv';\n"
IN_THE_HALL = "CREATE QUERY coffee AS PATTERN at(x, h) THEN at(x, 'coffee') WHERE hall(h) GROUP BY x;\n"


@pytest.fixture
def office(spark: SparkSession, tmp_path: Path) -> Session:
    """A session whose stream and relation are CSV files that were written some time ago."""
    write_csv(tmp_path / "at.csv")
    write_csv(tmp_path / "hall.csv", [("hall",)], "place")
    (tmp_path / "w.abq").write_text(stream("at", "'at.csv'", person="person STRING") + HALL + IN_THE_HALL)
    session = Session(spark)
    session.execute_file(str(tmp_path / "w.abq"))
    return session


@pytest.fixture
def jobs_of(spark: SparkSession) -> Callable[[Callable[[], object]], int]:
    """Counts the Spark jobs of a function."""

    def count(run: Callable[[], object]) -> int:
        context = spark.sparkContext
        group = f"counted-{time.monotonic_ns()}"
        context.setJobGroup(group, "")
        try:
            run()
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        return len(context.statusTracker().getJobIdsForGroup(group))

    return count


def test_the_second_run_over_unchanged_files_is_one_job(office: Session, jobs_of) -> None:
    assert jobs_of(lambda: collect(office.run("coffee"))) > 1, "the types of CSV columns are inferred"
    assert jobs_of(lambda: collect(office.run("coffee"))) == 1
    assert same(collect(office.run("coffee")), ANSWERS)
    assert office.counts("coffee").read == len(ROWS)


def test_a_changed_file_is_read_again(office: Session, tmp_path: Path) -> None:
    assert same(collect(office.run("coffee")), ANSWERS)
    write_csv(tmp_path / "hall.csv", [("yard",)], "place")
    assert collect(office.run("coffee")) == {}
    write_csv(tmp_path / "hall.csv", [("hall",)], "place")
    write_csv(tmp_path / "at.csv", [(person, place, t + 0.5, p) for person, place, t, p in ROWS])
    assert collect(office.run("coffee")) == {(t + 0.5, person): p for (t, person), p in ANSWERS.items()}


def test_a_file_that_changes_at_this_moment_is_not_remembered(office: Session, tmp_path: Path) -> None:
    for place, answers in (("hall", ANSWERS), ("yard", {}), ("hall", ANSWERS)):
        now = time.time()
        (tmp_path / "hall.csv").write_text(f"place\n{place}\n")
        os.utime(tmp_path / "hall.csv", (now, now))
        assert same(collect(office.run("coffee")), answers), place


def test_several_small_streams_and_an_empty_file_take_one_task(spark: SparkSession, tmp_path: Path, jobs_of) -> None:
    write_csv(tmp_path / "a.csv")
    write_csv(tmp_path / "b.csv", [])
    text = stream("a", "'a.csv'", "t INTEGER", "person STRING") + stream("b", "'b.csv'", "t INTEGER", "person STRING")
    session = Session(spark)
    (tmp_path / "w.abq").write_text(text + "CREATE QUERY q AS PATTERN a(x, 'hall') THEN b(x, 'coffee') GROUP BY x;")
    session.execute_file(str(tmp_path / "w.abq"))
    assert collect(session.run("q")) == {}
    assert jobs_of(lambda: collect(session.run("q"))) == 1
    with pytest.warns(InputWarning, match="b has no rows"):
        assert session.counts("q").read == len(ROWS)


def test_a_number_of_partitions_that_is_asked_for_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "at.csv")
    session = Session(spark, partitions=3)
    (tmp_path / "w.abq").write_text(stream("at", "'at.csv'", person="person STRING") + query())
    session.execute_file(str(tmp_path / "w.abq"))
    assert session.run("coffee").rdd.getNumPartitions() == 3
    assert same(collect(session.run("coffee")), ANSWERS)
