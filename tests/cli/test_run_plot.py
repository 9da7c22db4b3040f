"""Charts of what was run: `Session.plot` and `anabranch run --plot`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.plotting.specifications import rows
from tests.runtime.office import ANSWERS, query, stream, write_parquet

import anabranch as ab


def test_a_session_draws_its_queries_and_the_rows_of_their_streams(spark: SparkSession) -> None:
    s = ab.Session(spark)
    s.execute("""
    CREATE STREAM cars KEY (car) VALUE (x) TIME t MODEL PREDICTED ERROR 5 PERIOD 30;
    CREATE QUERY near AS MONITOR a, b FROM cars AS a, cars AS b
      WHERE ABS(a.x - b.x) <= 20 AND a.car < b.car SEMANTICS MAY THRESHOLD 0.5;
    """)
    cars = [("a", 0.0, 0.0, 10.0), ("b", 0.0, 100.0, 0.0)]
    s.bind("cars", spark.createDataFrame(cars, "car string, t double, x double, x_rate double"))
    chart = s.plot("near", data="cars", error=5)
    assert chart.title == "near"
    (answer,) = rows(chart, "valid_to")
    assert [answer[name] for name in ("t", "certain_from", "certain_to", "valid_to")] == [7.0, 8.0, 12.0, 13.0]
    assert {row["key"] for row in rows(chart, "part")} == {"a", "b"}


@pytest.mark.parametrize("several", [False, True])
def test_run_draws_a_chart_of_each_query_and_delivers_the_answers_as_without(
    several: bool, spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    write_parquet(tmp_path / "at.parquet")
    workbook = tmp_path / "office.abq"
    workbook.write_text(stream("at", "'at.parquet'") + query() + (query("anyone", "at", "") if several else ""))
    options = ("--output", "-", "--format", "jsonl")
    without = anabranch("run", workbook, *options)
    done = anabranch("run", workbook, *options, "--plot", tmp_path / "out.json")
    assert (done.status, done.out) == (0, without.out)
    assert "coffee: 3 answers; 6 rows read" in done.err
    names = ["out-anyone.json", "out-coffee.json"] if several else ["out.json"]
    assert sorted(path.name for path in tmp_path.glob("out*")) == names
    spec = json.loads((tmp_path / names[-1]).read_text())
    assert spec["title"]["text"] == "coffee"
    drawn = [row for values in spec["datasets"].values() for row in values if "group" in row]
    assert {(row["t"], row["group"]): row["probability"] for row in drawn} == pytest.approx(ANSWERS)


def test_a_file_that_is_no_chart_is_refused_before_the_run(tmp_path: Path, anabranch: Command) -> None:
    write_parquet(tmp_path / "at.parquet")
    workbook = tmp_path / "office.abq"
    workbook.write_text(stream("at", "'at.parquet'") + query())
    done = anabranch("run", workbook, "--plot", tmp_path / "out.pdf")
    assert done.status == 2
    assert "--plot ends with .html, .png, .svg, .json, not out.pdf" in done.first
