"""`anabranch fit errors`: the clause that it prints, its files, and its errors of one line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

WORKBOOK = """
CREATE STREAM positions KEY (car) VALUE (lon, lat) TIME t SPACE (lon, lat) GEODESIC ORIGIN (8, 47) FROM 'cars.csv';
CREATE STREAM cars KEY (car) VALUE (lon, lat) TIME t PREDICTED FROM positions ERROR 50 PERIOD 20;
CREATE STREAM reports KEY (car) VALUE (x) TIME t MODEL PREDICTED ERROR 1 PERIOD 10 FROM 'reports.csv';
"""


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """Cars that walk at random on the globe, and reports of standing cars with noise of deviation 2."""
    rng = np.random.default_rng(0)
    lines = []
    for car in range(4):
        walk = np.cumsum(rng.normal(0, 1e-4, (200, 2)), axis=0) + [8, 47]
        lines += [f"{car},{lon},{lat},{t}" for t, (lon, lat) in enumerate(walk)]
    (tmp_path / "cars.csv").write_text("\n".join(["car,lon,lat,t", *lines]) + "\n")
    noise = rng.normal(0, 2, 800)
    # With its acceleration, the prediction of t ** 2 is exact.
    rows = [f"{n // 200},{x + (n % 200) ** 2},{2 * (n % 200)},2,{n % 200}" for n, x in enumerate(noise)]
    (tmp_path / "reports.csv").write_text("\n".join(["car,x,x_rate,x_accel,t", *rows]) + "\n")
    path = tmp_path / "cars.abq"
    path.write_text(WORKBOOK)
    return path


def test_the_error_of_reports_is_learned(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    done = anabranch("fit", "errors", workbook, "--stream", "reports", "--output", tmp_path / "learned")
    assert done.status == 0, done.err
    # The difference of two values with deviation 2 has deviation 2.83; nine differences share one report.
    clause = done.out.split()
    assert clause[0] == "ERROR"
    assert float(clause[1]) == pytest.approx(2.576 * 2.83, rel=0.25)
    assert (clause[2], float(clause[3])) == ("NORMAL", pytest.approx(2.83, rel=0.25))
    with (tmp_path / "learned" / "errors.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["value"], row["law"]) == ("x", "NORMAL")
    assert (tmp_path / "learned" / "errors.svg").read_text().startswith("<svg")


def test_the_error_of_geodesic_positions_is_in_metres(spark: SparkSession, workbook: Path, anabranch: Command) -> None:
    done = anabranch("fit", "errors", workbook, "--stream", "cars", "--heartbeats-only")
    assert done.status == 0, done.err
    assert done.out.startswith("  ERROR (lon = ")
    assert 50 < float(done.out.split()[3]) < 5000, "a step of 1e-4 degrees is 8 to 11 metres"
    corrected = anabranch("fit", "errors", workbook, "--stream", "cars")
    assert corrected.out.startswith("  ERROR (lon = 50 NORMAL "), "sensors correct by the declared error"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--stream", "trams"), 2, "there is no stream trams; the workbook has: positions, cars, reports"),
        (("--stream", "positions"), 2, "positions is CERTAIN; only a PREDICTED stream has an ERROR"),
        (("--coverage", "0"), 2, "--coverage is above 0 and at most 1, not 0"),
        (("--input", "reports=one.csv"), 1, "reports has no two rows of a key within its PERIOD; use a longer PERIOD"),
    ],
)
def test_an_error_is_one_line(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command, arguments: tuple[str, str], status: int,
    message: str,
) -> None:  # fmt: skip
    (tmp_path / "one.csv").write_text("car,x,x_rate,t\na,1,0,0\na,1,0,10\n")
    options = {"--stream": "reports"} | {arguments[0]: arguments[1].replace("one.csv", str(tmp_path / "one.csv"))}
    wrong = anabranch("fit", "errors", workbook, *(text for pair in options.items() for text in pair))
    assert (wrong.status, wrong.out, wrong.err.count("\n")) == (status, "", 1), wrong.err
    assert message in wrong.first
