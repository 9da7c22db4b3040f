"""An input held against its model on Spark, without any question: all rows of a key meet, whatever the source."""

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
    visits = [("a", 1.0, 1), ("a", None, 2), ("a", 3.0, 3), ("b", 5.0, 1), ("b", 4.0, 2)]
    session.bind("visits", spark.createDataFrame(visits, "room string, t double, seq int"))
    return session


def test_rows_and_groups_that_break_the_model_are_found(session: Session) -> None:
    found = sorted((row.reason, row.row) for row in session.validate("at").collect())
    assert [reason for reason, _ in found] == [
        "a cell does not fit its column's type",
        "the probabilities of its group sum above 1",
        "the probabilities of its group sum above 1",
    ]
    assert {json.loads(row)["place"] for _, row in found[1:]} == {"hall", "desk"}


def test_an_entity_whose_times_decrease_is_set_aside_whole(session: Session) -> None:
    found = session.validate("visits").collect()
    assert [json.loads(row.row)["room"] for row in found] == ["b", "b"]
    assert {row.reason for row in found} == {"the times of its entity decrease"}


def test_there_must_be_such_a_stream(session: Session) -> None:
    with pytest.raises(AnabranchError, match="there is no stream ate; declared are: at, visits"):
        session.validate("ate")
