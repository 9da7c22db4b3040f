"""MONITOR on Spark: the same answers with any number of partitions, live and from an archive, also from positions."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.local import local_job
from tests.monitor.compare import assert_same
from tests.monitor.local import MonitorRun, positions_job, with_numbers
from tests.oracles.monitor import Answer
from tests.oracles.monitor_globe import Plane
from tests.runtime.streams import finish

from anabranch import Session
from anabranch.simulate.vehicles import Options, simulate

STREAM = """
CREATE STREAM cars KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE SPACE (x, y)
  MODEL PREDICTED ERROR 25 PERIOD 30;
"""
QUERIES = """
CREATE QUERY near AS
  MONITOR a, b FROM cars AS a, cars AS b
  WHERE ABS(a.x - b.x) <= 200 AND ABS(a.y - b.y) <= 200 AND a.car < b.car
  WITHIN 3 SEMANTICS MAY THRESHOLD 0.5;
CREATE QUERY diagonal AS
  MONITOR a, b FROM cars AS a, cars AS b
  WHERE ABS(a.x + a.y - b.x - b.y) <= 40 AND a.car < b.car AND a.car < 10 SEMANTICS MAY THRESHOLD 0.25;
CREATE QUERY round AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE DISTANCE(a, b) <= 200 AND a.car < b.car SEMANTICS MAY THRESHOLD 0.5;
CREATE QUERY either AS
  MONITOR a, b FROM cars AS a, cars AS b
  WHERE (ABS(a.x - b.x) <= 40 OR ABS(a.y - b.y) <= 40 OR a.car = 3) AND a.car < b.car AND a.car < 10
    AND ABS(a.x - b.x) <= 300 WITHIN 2 SEMANTICS MAY;
CREATE QUERY windows AS
  MONITOR a, b FROM cars AS a, cars AS b
  WHERE (ABS(a.x - b.x) <= 200 AND ABS(a.y - b.y) <= 40 WITHIN 1 OR ABS(a.y - b.y) <= 200 AND ABS(a.x - b.x) <= 40)
    AND a.car < b.car AND a.car < 10 WITHIN 3;
CREATE QUERY curved AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE DISTANCE(a, b) <= 200 AND a.car < b.car WITHIN 1;
CREATE QUERY nearest AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE DISTANCE(a, b) <= 800 AND a.car < 20 NEAREST 2;
CREATE QUERY zone AS
  MONITOR a FROM cars AS a
  WHERE WITHIN(a, 'POLYGON((500 500, 2900 800, 2700 2800, 500 2500, 500 500), (900 900, 900 2000, 2000 2000, 900 900))')
  SEMANTICS MAY THRESHOLD 0.5;
CREATE QUERY north AS MONITOR a FROM cars AS a WHERE a.y > 2000 SEMANTICS MUST;
CREATE QUERY three AS
  MONITOR a, b, c FROM cars AS a, cars AS b, cars AS c
  WHERE ABS(a.x - b.x) <= 300 AND ABS(b.x - c.x) <= 300 AND ABS(a.y - b.y) <= 300 AND ABS(b.y - c.y) <= 300
    AND a.car < b.car AND b.car < c.car;
"""
LABELS = {
    "near": ["a", "b"],
    "diagonal": ["a", "b"],
    "round": ["a", "b"],
    "curved": ["a", "b"],
    "nearest": ["a", "b"],
    "zone": ["a"],
    "either": ["a", "b"],
    "windows": ["a", "b"],
    "north": ["a"],
    "three": ["a", "b", "c"],
}
FILES = 4


@pytest.fixture(scope="module")
def vehicles() -> object:
    return simulate(Options(objects=40, duration=90), 1)


@pytest.fixture(scope="module")
def folder(vehicles: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports in order of time, in a few files."""
    return in_files(vehicles.cars, tmp_path_factory.mktemp("cars"))


def in_files(table: pa.Table, folder: Path) -> Path:
    ordered = table.sort_by("t")
    size = -(-len(ordered) // FILES)
    for number in range(FILES):
        path = folder / f"{number}.parquet"
        pq.write_table(ordered.slice(number * size, size), path)
        # Spark reads files in the order of their times; the order of files with the same millisecond is undefined.
        os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
    return folder


@pytest.fixture(scope="module")
def expected(vehicles: object) -> dict[str, list[Answer]]:
    """The answers of one bucket in this process, which other tests compare with exact polygons."""
    answers = {}
    for name in LABELS:
        run = MonitorRun(local_job(STREAM + QUERIES, name), 1)
        run.step({"cars": vehicles.cars.to_pylist()}, end=True)
        answers[name] = run.rows()
    assert all(len(rows) > 20 for rows in answers.values())
    return answers


def session_of(spark: SparkSession, source: Path, partitions: int | None = None) -> Session:
    session = Session(spark, partitions=partitions)
    session.execute(STREAM + QUERIES)
    session.bind("cars", str(source))
    return session


@pytest.mark.parametrize("n_partitions", [1, 2, 7])
def test_each_answer_is_found_once_with_any_number_of_partitions(
    spark: SparkSession, folder: Path, expected: dict, n_partitions: int
) -> None:
    session = session_of(spark, folder, n_partitions)
    for name in LABELS if n_partitions == 7 else ["near"]:
        frame = session.run(name)
        assert "status" not in frame.columns
        assert_same([with_numbers(row) for row in frame.toArrow().to_pylist()], expected[name], LABELS[name])
        counts = session.counts(name)
        assert counts.read == counts.used == pq.ParquetDataset(folder).read(["t"]).num_rows


def validated(session: Session, name: str, folder: Path) -> list[Answer]:
    """The validated answers of a stream."""
    checkpoint, output = str(folder / "checkpoint"), folder / name
    finish(session.start(name, checkpoint, str(output), max_files=1), session, checkpoint)
    rows = pa.concat_tables(pq.read_table(path) for path in sorted(output.glob("*.parquet"))).to_pylist()
    assert {row["status"] for row in rows} == {"validated"}
    return [with_numbers(row) for row in rows]


@pytest.mark.parametrize("name", ["near", "diagonal", "round", "curved", "nearest", "zone", "either", "windows"])
def test_a_live_stream_validates_the_answers_of_the_archive(
    spark: SparkSession, folder: Path, tmp_path: Path, expected: dict, name: str
) -> None:
    session = session_of(spark, folder)
    assert_same(validated(session, name, tmp_path), expected[name], LABELS[name])
    output = tmp_path / name
    provisional = pa.concat_tables(pq.read_table(path) for path in sorted((output / "_provisional").glob("*.parquet")))
    assert set(pc.unique(provisional["status"]).to_pylist()) == {"tentative", "invalidated"}
    assert 0 < session.counts(name).kept < session.counts(name).read


def test_positions_are_reported_as_the_simulated_sensors_report_them(
    spark: SparkSession, vehicles: object, tmp_path: Path, expected: dict
) -> None:
    positions = in_files(vehicles.positions, tmp_path)
    session = Session(spark)
    session.execute(
        "CREATE STREAM positions KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE;"
        + STREAM.replace("MODEL PREDICTED", "PREDICTED FROM positions")
        + QUERIES
    )
    session.bind("positions", str(positions))
    rows = session.run("near").toArrow().to_pylist()
    assert_same([with_numbers(row) for row in rows], expected["near"], LABELS["near"])
    counts = session.counts("near")
    assert counts.used == len(vehicles.positions)
    assert counts.reported == len(vehicles.cars)


GLOBE = """
CREATE STREAM fixes KEY (car INTEGER) VALUE (lon DOUBLE, lat DOUBLE) TIME t DOUBLE SPACE (lon, lat) GEODESIC;
CREATE STREAM cars KEY (car INTEGER) VALUE (lon DOUBLE, lat DOUBLE) TIME t DOUBLE
  SPACE (lon, lat) GEODESIC ORIGIN (8.25, 46.5) PREDICTED FROM fixes ERROR 25 PERIOD 30;
CREATE QUERY round AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE DISTANCE(a, b) <= 300 AND a.car < b.car SEMANTICS MAY THRESHOLD 0.5;
"""


def test_distances_on_the_globe_live_and_from_an_archive(spark: SparkSession, vehicles: object, tmp_path: Path) -> None:
    """The vehicles drive 400 km north-east of the origin."""
    plane = Plane(8.25, 46.5)
    measured = vehicles.positions.filter(pc.less(vehicles.positions["car"], 15))
    points = [plane.to_globe(3e5 + row["x"], 3e5 + row["y"]) for row in measured.to_pylist()]
    fixes = pa.table({
        "car": measured["car"],
        "t": measured["t"],
        "lon": [math.degrees(math.atan2(y, x)) for x, y, _ in points],
        "lat": [math.degrees(math.asin(z)) for _, _, z in points],
    })  # fmt: skip
    expected = MonitorRun(positions_job(GLOBE, "round"), 1)
    expected.run([{"fixes": fixes.to_pylist()}])
    assert len(expected.rows()) > 20
    session = Session(spark)
    session.execute(GLOBE)
    session.bind("fixes", str(in_files(fixes, tmp_path)))
    rows = session.run("round").toArrow().to_pylist()
    assert_same([with_numbers(row) for row in rows], expected.rows(), ["a", "b"])
    (tmp_path / "live").mkdir()
    assert_same(validated(session, "round", tmp_path / "live"), expected.rows(), ["a", "b"])
