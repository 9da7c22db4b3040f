"""`anabranch fit durations`: learns clauses for a workbook from the recorded segments of a stream."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

WORKBOOK = """
CREATE STREAM visits KEY (person) VALUE (room) TIME t MODEL INTERVALS ORDER seq HORIZON [0, 100000] FROM 'visits.csv';
CREATE STREAM reads KEY (person) TIME t FROM 'visits.csv';
"""


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """Forty people: short visits to the hall, long ones to the office; every eighth end is lost."""
    random = np.random.default_rng(2)
    lines = ["person,seq,t,room"]
    for person in range(40):
        t = 10.0
        for seq in range(1, 9):
            room = ("hall", "office")[(seq - 1) // 2 % 2]
            lost = (person + seq) % 8 == 0
            lines.append(f"{person},{seq},{'' if lost else round(t, 3)},{room}")
            t += random.gamma(3, (2.0 if room == "hall" else 200.0) / 3) if seq % 2 else random.exponential(30.0)
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "visits.abq"
    path.write_text(WORKBOOK)
    return path


def test_segments_become_a_file_clauses_and_a_picture(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    out = tmp_path / "learned"
    done = anabranch("fit", "durations", workbook, "--stream", "VISITS", "--by", "room", "--output", out)
    assert done.status == 0, done.err
    assert "written to" in done.err
    clauses = [line.strip() for line in done.out.splitlines() if line.startswith("  ")]
    assert clauses[-2:] == [
        "DURATION FITTED 'learned/durations.csv' BY room",
        "GAP FITTED 'learned/durations.csv' BY room",
    ]
    with (out / "durations.csv").open() as file:
        rows = {(row["clause"], row["class"]): row for row in csv.DictReader(file)}
    for room, mean in (("hall", 2.0), ("office", 200.0)):
        assert 2 <= int(rows["DURATION", room]["k"]) <= 5
        assert float(rows["DURATION", room]["mean"]) == pytest.approx(mean, rel=0.2)
        assert int(rows["DURATION", room]["censored"]) > 0
    picture = ElementTree.fromstring((out / "durations.svg").read_text())  # noqa: S314 (our own picture)
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == len(rows)
    # The clauses can be pasted.
    workbook.write_text(WORKBOOK.replace("FROM", f"{clauses[-2]} {clauses[-1]} FROM", 1))
    assert anabranch("check", workbook).status == 0


def test_the_clauses_of_one_class_are_printed(
    spark: SparkSession, workbook: Path, tmp_path: Path, anabranch: Command
) -> None:
    done = anabranch("fit", "durations", workbook, "--stream", "visits", "--output", tmp_path, "--most-k", "1")
    assert done.status == 0, done.err
    assert [line.split("(")[0].strip() for line in done.out.splitlines()[-2:]] == [
        "DURATION EXPONENTIAL",
        "GAP EXPONENTIAL",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stream", "nothing"), "there is no stream nothing; the workbook has: visits, reads"),
        (("--stream", "reads"), "reads is CERTAIN; only an INTERVALS stream has segments"),
        (("--stream", "visits", "--by", "floor"), "visits has no column floor; add it to VALUE, or use one of: person"),
        (("--stream", "visits", "--most-k", "0"), "--most-k is from 1 to 100, not 0"),
    ],
)
def test_what_cannot_be_learned_is_refused(
    workbook: Path, tmp_path: Path, anabranch: Command, arguments: tuple[str, ...], message: str
) -> None:
    done = anabranch("fit", "durations", workbook, "--output", tmp_path, *arguments)
    assert done.status == 2
    assert message in done.err
