"""Accelerated predictions on Spark: the optional columns of sources, in batch and live."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.cases import Case
from tests.monitor.compare import assert_same
from tests.monitor.local import accelerated_run, with_numbers
from tests.runtime.test_monitor import in_files, validated

from anabranch import Session
from anabranch.errors import WorkbookError

STREAM = """
CREATE STREAM cars KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE SPACE (x, y)
  MODEL PREDICTED ERROR 1 PERIOD 8;
"""
QUERIES = """
CREATE QUERY near AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 20 AND a.car < b.car SEMANTICS MAY THRESHOLD 0.5;
CREATE QUERY round AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE DISTANCE(a, b) <= 40 AND a.car < b.car SEMANTICS MAY;
CREATE QUERY later AS MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 20 AND a.car < b.car WITHIN 1;
CREATE QUERY flat AS MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.y - b.y) <= 1 AND a.car < b.car WITHIN 1;
"""


def cars() -> pa.Table:
    """The reports of 12 cars; only x is accelerated, and not in every row."""
    rows = []
    for car in range(12):
        for report in range(4):
            t = 6.0 * report + 0.25 * car
            x, rate = 100 * math.sin(car + 2 * report), 20 * math.cos(3 * car + report)
            accel = None if (car + report) % 5 == 0 else -rate / 3
            rows.append({"car": car, "t": t, "x": x, "x_rate": rate, "x_accel": accel, "y": 5.0 * car, "y_rate": 1.0})
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_files(cars(), tmp_path_factory.mktemp("cars"))


def session_of(spark: SparkSession, source: object) -> Session:
    session = Session(spark)
    session.execute(STREAM + QUERIES)
    session.bind("cars", source)
    return session


@pytest.mark.parametrize("name", ["near", "round"])
def test_an_archive_and_a_live_stream_have_the_answers_of_one_bucket(
    spark: SparkSession, source: Path, tmp_path: Path, name: str
) -> None:
    case = Case(STREAM + QUERIES, name, {"cars": cars().to_pylist()}, {})
    expected = accelerated_run(case, [case.rows]).rows()
    assert len(expected) > 20
    session = session_of(spark, str(source))
    rows = session.run(name).toArrow().to_pylist()
    assert_same([with_numbers(row) for row in rows], expected, ["a", "b"])
    assert_same(validated(session, name, tmp_path), expected, ["a", "b"])


def test_different_instants_are_refused_when_the_source_is_known(spark: SparkSession, source: Path) -> None:
    session = session_of(spark, str(source))
    with pytest.raises(WorkbookError, match=r"later: x is accelerated, .*; use WITHIN 0, or a source without x_accel"):
        session.run("later")
    assert session.run("flat").count() > 0  # y has no accelerations


BRAKING = """
CREATE STREAM braking KEY (car) VALUE (pos AS x) TIME t MODEL PREDICTED ERROR 0 PERIOD 10;
CREATE QUERY far AS MONITOR a FROM braking AS a WHERE a.x >= 64;
"""


def valid_from(session: Session) -> list[float]:
    return sorted(row.valid_from for row in session.run("far").collect())


def test_a_renamed_value_renames_its_acceleration(spark: SparkSession) -> None:
    """The second car has no acceleration; the whole column may be NULL, or missing."""
    session = Session(spark)
    session.execute(BRAKING)
    rows = [{"car": "a", "t": 0.0, "pos": 0.0, "pos_rate": 20.0, "pos_accel": -2.0}]
    rows.append({**rows[0], "car": "b", "pos_accel": None})
    session.bind("braking", rows)
    assert valid_from(session) == pytest.approx([3.2, 4.0])
    session.bind("braking", [{**row, "pos_accel": None} for row in rows])
    assert valid_from(session) == pytest.approx([3.2, 3.2])
    session.bind("braking", [{name: cell for name, cell in row.items() if name != "pos_accel"} for row in rows])
    assert valid_from(session) == pytest.approx([3.2, 3.2])


def test_text_files_have_accelerations(spark: SparkSession, tmp_path: Path) -> None:
    """An empty cell is 0, and a cell that is no number is quarantined with its row."""
    path = tmp_path / "braking.csv"
    path.write_text("car,t,pos,pos_rate,pos_accel\na,0,0,20,-2\nb,0,0,20,\nc,0,0,20,fast\nd,0,0,20,-2.5\n")
    session = Session(spark)
    session.execute(BRAKING)
    session.bind("braking", str(path))
    assert valid_from(session) == pytest.approx([3.2, 4.0, 8 - math.sqrt(12.8)])
    assert session.counts("far").quarantined == 1
