"""Validation of an input on Spark, without a query: all rows of a key are checked together, for any source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch import AnabranchError, Session

WORKBOOK = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT FROM 'at.csv';
CREATE STREAM visits KEY (room) TIME t ORDER seq MODEL INTERVALS;
"""


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Session:
    rows = [
        "ann,hall,1,0.5",
        "ann,hall,1,0.5",
        "ann,desk,1,0.4",
        "ben,hall,1,0.7",
        "ben,desk,1,0.7",
        "cy,hall,soon,1.0",
    ]
    (tmp_path / "at.csv").write_text("\n".join(["person,place,t,p", *rows]))
    (tmp_path / "book.abq").write_text(WORKBOOK)
    session = Session(spark)
    session.execute_file(str(tmp_path / "book.abq"))
    visits = [("a", 1.0, 1), ("a", None, 2), ("a", 3.0, 3), ("a", 4.0, 4), ("b", 5.0, 1), ("b", 4.0, 2)]
    session.bind("visits", spark.createDataFrame(visits, "room string, t double, seq int"))
    return session


def test_rows_and_groups_that_break_the_model_are_found(session: Session) -> None:
    rejected_rows = sorted((row.reason, row.row) for row in session.validate("at").collect())
    assert [reason for reason, _ in rejected_rows] == [
        "a cell does not fit its column's type",
        "the probabilities of its group sum above 1",
        "the probabilities of its group sum above 1",
    ]
    assert {json.loads(row)["place"] for _, row in rejected_rows[1:]} == {"hall", "desk"}


def test_all_rows_of_an_entity_with_decreasing_times_are_rejected(session: Session) -> None:
    rejected_rows = session.validate("visits").collect()
    assert [json.loads(row.row)["room"] for row in rejected_rows] == ["b", "b"]
    assert {row.reason for row in rejected_rows} == {"the times of its entity do not increase with the position"}


def test_an_unknown_stream_is_an_error(session: Session) -> None:
    with pytest.raises(AnabranchError, match="there is no stream ate; declared are: at, visits"):
        session.validate("ate")


def test_rows_returns_usable_and_rejected_rows(session: Session) -> None:
    rows, rejected = session.checked_rows("AT")
    assert rows.column_names == ["person", "place", "t", "p"]
    assert sorted(rows["person"].to_pylist()) == ["ann", "ann", "ann", "ben", "ben"], "only single rows are checked"
    assert [json.loads(row)["text"] for row in rejected["row"].to_pylist()] == ["cy,hall,soon,1.0"]


def test_validating_an_inferred_stream_checks_its_readings(session: Session, spark: SparkSession) -> None:
    session.execute(
        "CREATE STREAM seen KEY (tag) VALUE (reader) TIME t;"
        "CREATE STREAM inferred KEY (tag) VALUE (place) TIME t INFERRED FROM seen USING HMM 'm/' METHOD SMOOTH"
    )
    session.bind(
        "seen", spark.createDataFrame([("a", "east", 1), (None, "east", 1)], "tag string, reader string, t int")
    )
    assert [row.reason for row in session.validate("inferred").collect()] == ["tag is NULL"]
    with pytest.raises(AnabranchError, match="inferred is inferred, so it has no input; Session.rows derives its rows"):
        session.checked_rows("inferred")
