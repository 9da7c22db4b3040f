"""Files that are clustered by key are processed without a shuffle; a wrong CLUSTERED BY is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.office import ANSWERS, ROWS, answers_of, query, same, stream, write_csv, write_parquet

from anabranch.errors import DataError
from anabranch.session import Session

SEQUENCE = (
    "CREATE STREAM reads KEY (person) VALUE (place) TIME t{more} FROM '{source}';\n"
    "CREATE QUERY later AS SEQUENCE (a, b) FROM reads "
    "WHERE a.place = 'hall' AND b.place = 'coffee' AND a.person = b.person WITHIN 5;\n"
)


def shuffles(answers: DataFrame) -> bool:
    return "Exchange" in answers._jdf.queryExecution().executedPlan().toString()


@pytest.fixture
def session(spark: SparkSession) -> Session:
    """A session that makes several tasks of files of any size."""
    return Session(spark, partitions=2)


def by_person(folder: Path) -> Path:
    """Write a CSV file for each person."""
    for person in {row[0] for row in ROWS}:
        write_csv(folder / f"{person}.csv", [row for row in ROWS if row[0] == person])
    return folder


def test_statistics_of_parquet_files_show_clusters(session: Session, tmp_path: Path) -> None:
    in_order = sorted([*ROWS, ("ann", "hall", 4, 1.5)], key=lambda row: row[0])
    write_parquet(tmp_path / "at.parquet", in_order, row_group_size=1)
    write_parquet(tmp_path / "by_time.parquet", sorted(ROWS, key=lambda row: row[2]), row_group_size=3)
    session.execute(stream("at", f"'{tmp_path}/at.parquet'") + query())
    session.execute(stream("later", f"'{tmp_path}/by_time.parquet'") + query("shuffled", "later"))
    answers = session.run("coffee")
    assert not shuffles(answers)
    assert shuffles(session.run("shuffled")), "row groups of other orders have the same keys"
    assert same(answers_of([row.asDict() for row in answers.collect()]), ANSWERS)
    counts = session.counts("coffee")
    assert (counts.read, counts.used, counts.quarantined, counts.answers) == (len(in_order), len(ROWS), 1, len(ANSWERS))


def test_a_declaration_of_clusters_is_used(session: Session, tmp_path: Path) -> None:
    folder = by_person(tmp_path / "at")
    write_csv(folder / "empty.csv", [])
    session.execute(stream("at", f"'{folder}'", person="person STRING", more="CLUSTERED BY (person)") + query())
    answers = session.run("coffee")
    assert not shuffles(answers)
    assert same(answers_of([row.asDict() for row in answers.collect()]), ANSWERS)
    source = {"source": str(folder), "more": " CLUSTERED BY (person)"}
    session.execute(SEQUENCE.format(**source))
    later = session.run("later")
    assert not shuffles(later)
    assert {(row["t"], row["a"]["person"]) for row in later.collect()} == {(t, person) for t, person in ANSWERS}


def test_a_wrong_declaration_is_an_error(session: Session, tmp_path: Path) -> None:
    folder = by_person(tmp_path / "at")
    write_csv(folder / "more.csv", [("bob", "hall", 5, 0.5)])
    session.execute(stream("at", f"'{folder}'", person="person STRING", more="CLUSTERED BY (person)") + query())
    why = r"CLUSTERED BY \(person\) of at is wrong: bob.csv and more.csv have rows of the same key; write all rows"
    with pytest.raises(DataError, match=why):
        session.run("coffee")
