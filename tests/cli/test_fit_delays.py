"""`anabranch fit delays`: learns clauses for a workbook from its history."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.language.parser import parse
from anabranch.sequence.files import read_delay
from anabranch.sequence.query import BoundDelay, BoundSequence

WORKBOOK = """
CREATE STREAM reads KEY (tag) VALUE (reader) TIME t FROM 'reads.csv';
CREATE RELATION doors (reader STRING);
CREATE QUERY passing AS SEQUENCE (x, y, z) FROM reads
  WHERE x.reader = 'a' AND y.reader = 'b' AND z.reader = 'c' AND x.tag = y.tag AND y.tag = z.tag WITHIN 50;
CREATE QUERY either AS SEQUENCE (x, z) FROM reads
  WHERE (x.reader = 'a' AND z.reader = 'c' OR x.reader = 'b' AND z.reader = 'c') AND x.tag = z.tag;
CREATE QUERY nowhere AS SEQUENCE (x, z) FROM reads WHERE x.reader = 'k' AND z.reader = 'l' AND x.tag = z.tag;
CREATE QUERY mixed AS SEQUENCE (x, z) FROM reads WHERE x.reader = 7 AND z.reader = 'c' AND x.tag = z.tag;
CREATE QUERY listed AS SEQUENCE (x, z) FROM reads WHERE doors(x.reader) AND z.reader = 'c' AND x.tag = z.tag;
CREATE QUERY pattern AS PATTERN reads(x, 'a') THEN reads(x, 'b') GROUP BY x;
"""


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """Five tags at three readers; one is missed at the second, and one at the first."""
    rows = ["1,a,0", "1,b,2", "1,c,9", "2,a,0", "2,c,8", "3,b,3", "3,c,9", "4,a,0", "4,b,4", "5,a,1", "5,b,2", "5,c,7"]
    (tmp_path / "reads.csv").write_text("\n".join(["tag,reader,t", *rows]) + "\n")
    path = tmp_path / "passes.abq"
    path.write_text(WORKBOOK)
    return path


def table(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))


def test_passes_become_files_clauses_and_a_picture(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    out = tmp_path / "learned"
    done = anabranch("fit", "delays", workbook, "--query", "PASSING", "--output", out)
    assert done.status == 0, done.err
    *warnings, last = done.err.splitlines()
    assert last == f"learned from 5 passes; written to {out}; or: DELAY ... FITTED 'learned/laws.csv'"
    assert [warning.split(";")[0] for warning in warnings] == [
        "warning: only 5 passes",
        "warning: y: only 3 passes have a reading before and after it",
        "warning: y: MISS supposes that y always happens (OCCURS 1), which the gaps do not contradict",
    ]
    assert "x: 3 delays seen, 20.0% of 5 readings missed (± 17.9%)" in done.out
    assert "y: 3 delays seen, 25.0% of 4 readings missed (± 27.3%)" in done.out
    assert "z: 3 delays seen\n" in done.out
    assert re.search(r"MISS x 0.2, y 0.25\n +DELAY x \w+\([\d., ]+\), y \w+\([\d., ]+\)\n", done.out)
    assert table(out / "delays.csv")[1:] == [
        *(["x", delay] for delay in ("41.0", "42.0", "44.0")),
        *(["y", delay] for delay in ("1.0", "2.0", "4.0")),
        *(["z", delay] for delay in ("5.0", "6.0", "7.0")),
    ]
    assert table(out / "misses.csv")[1:] == [["x", "0.2"], ["y", "0.25"]]
    assert [row[0] for row in table(out / "laws.csv")[1:]] == ["x", "y", "z"]
    picture = ElementTree.fromstring((out / "delays.svg").read_text())  # noqa: S314 (our own picture)
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 3


def test_the_delays_of_the_shop_are_learned_and_the_clauses_can_be_pasted(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    shop = tmp_path / "shop"
    assert anabranch("simulate", "shop", "--output", shop, "--items", "3000").status == 0
    done = anabranch("fit", "delays", shop / "shop.abq", "--query", "shoplifting", "--output", shop / "learned")
    assert done.status == 0, done.err
    clauses = done.out[done.out.index("MISS x") :]
    assert "SECONDS" in clauses
    catalog = Catalog()
    text = f"""
      CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t TIMESTAMP;
      CREATE QUERY q AS SEQUENCE (x, !y, z) FROM reads
        WHERE x.reader = 'shelf' AND y.reader = 'checkout' AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag
        {clauses} WITHIN 90 MINUTES;
    """
    assert not declare(parse(text), catalog)
    bound = bind(catalog.queries()[0], catalog)
    assert isinstance(bound, BoundSequence)
    x, y, _ = bound.components
    assert (x.miss, y.miss) == pytest.approx((0.1, 0.1), abs=0.05)
    assert y.delay is not None
    shape, scale = y.delay.parameters
    assert y.delay.law == "GAMMA"
    # The simulated delays have mean 16 and deviation 8 minutes.
    assert shape * scale == pytest.approx(16 * 60, rel=0.1)
    assert shape**0.5 * scale == pytest.approx(8 * 60, rel=0.15)
    fitted = read_delay(BoundDelay("FITTED", path="learned/laws.csv"), "y", str(shop))
    assert (fitted.law, fitted.parameters) == ("GAMMA", pytest.approx((shape, scale), rel=1e-4))


def test_a_stated_miss_gives_clauses_with_occurs_that_can_be_run(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    """In half of the passes, y happens: 20 % of its readings are lost."""
    rng = np.random.default_rng(3)
    rows = []
    for tag in range(400):
        happens = tag % 2 == 0
        length = int(rng.integers(30, 45) if happens else rng.integers(2, 8))
        rows += [f"{tag},a,{100 * tag}", f"{tag},c,{100 * tag + length}"]
        rows += [f"{tag},b,{100 * tag + length // 2}"] * (happens and tag % 10 != 0)
    (tmp_path / "reads.csv").write_text("\n".join(["tag,reader,t", *rows]) + "\n")
    fit = ("fit", "delays", workbook, "--query", "passing", "--output", tmp_path / "learned")
    unknown = anabranch(*fit)
    assert "y was read in 40.0% of the passes, and the other gaps differ" in unknown.err
    assert "MISS and OCCURS cannot be separated; MISS is at most" in unknown.err
    done = anabranch(*fit, "--miss", "y=0.2")
    assert done.status == 0, done.err
    assert "y: 160 delays seen, 20.0% of 200 readings missed, happens in 50.0% of the passes (± 3.1%)" in done.out
    assert table(tmp_path / "learned" / "estimates.csv")[3][:3] == ["y", "OCCURS", "0.5"]
    clauses = done.out[done.out.index("  MISS") :]
    text = WORKBOOK.replace("z.tag WITHIN 50;", f"z.tag WITHIN 50 {clauses};")
    assert "OCCURS y 0.5" in text
    workbook.write_text(text)
    asked = anabranch("run", workbook, "--query", "passing", "--output", tmp_path / "answers", "--format", "csv")
    assert asked.status == 0, asked.err
    (answers,) = (tmp_path / "answers" / "passing").glob("*.csv")
    with answers.open() as file:
        scores = {row["x.tag"]: float(row["probability"]) for row in csv.DictReader(file) if not row["y.t"]}
    assert all((score > 0.95) == (int(tag) % 10 == 0) for tag, score in scores.items())
    assert len(scores) >= 40


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--miss", "y"), "--miss y: write NAME=P, such as y=0.1 or y=0.1+-0.02"),
        (("--occurs", "y=0.5+-a"), "--occurs y=0.5+-a: write NAME=P"),
        (("--miss", "y=1"), "--miss y=1: write NAME=P"),
        (("--occurs", "z=0.5"), "--occurs z=0.5: no component between the first and the last is z: y"),
        (("--miss", "y=0.1", "--occurs", "y=0.5"), "--miss and --occurs both state y"),
    ],
)
def test_the_error_of_a_wrong_statement_is_one_line(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command, option: tuple[str, ...], message: str
) -> None:
    wrong = anabranch("fit", "delays", workbook, "--query", "passing", "--output", tmp_path / "learned", *option)
    assert (wrong.status, wrong.out) == (2, ""), wrong.err
    assert message in wrong.first


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("tea", 2, "there is no query tea; the workbook has: passing"),
        ("pattern", 2, "pattern is not a SEQUENCE"),
        ("either", 2, "either has several alternatives (OR), but delays can be learned from one only"),
        ("listed", 2, "listed uses the relation doors; use a query that lists its values instead"),
        ("mixed", 2, "passes.abq:"),
        ("nowhere", 1, "nowhere: no event fits a component, so there is nothing to learn from"),
    ],
)
def test_the_error_of_a_failed_fit_is_one_line(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command, query: str, status: int, message: str
) -> None:
    wrong = anabranch("fit", "delays", workbook, "--query", query, "--output", tmp_path / "learned")
    assert (wrong.status, wrong.out) == (status, ""), wrong.err
    assert message in wrong.first
    assert not (tmp_path / "learned").exists()
