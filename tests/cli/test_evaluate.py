"""`anabranch evaluate` and `anabranch holdout`: from a file to figures, a chart and a map, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.command import Command
from tests.drawing.pictures import texts


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Answers about 40 cases, of which every fourth is true, and the truth."""
    answers = [f"{case},{case * 100},{0.9 if case % 4 == 0 else 0.6}" for case in range(40)]
    (tmp_path / "answers.csv").write_text("\n".join(["case,t,probability", *answers]) + "\n")
    truth = [f"{case},{case * 100 + 30}" for case in range(0, 40, 4)]
    (tmp_path / "truth.csv").write_text("\n".join(["case,t", *truth]) + "\n")
    return tmp_path


def test_figures_chart_and_map(files: Path, anabranch: Command) -> None:
    outputs = ("--output", files / "e.json", "--plot", files / "e.svg", "--learn", files / "map.csv")
    done = anabranch(
        "evaluate", files / "answers.csv", "--truth", files / "truth.csv", "--tolerance", "1 minute", *outputs
    )
    assert done.status == 0
    assert "40, 10 of them true; matched by case and time, within 60" in done.out
    assert "best threshold     0.9: precision 1.000, recall 1.000, F1 1.000" in done.out
    assert done.err.splitlines()[-1].startswith(f"written to {files / 'map.csv'}; next: CALIBRATED BY")
    document = json.loads((files / "e.json").read_text())
    assert document["best"]["f1"] == 1.0
    assert "Reliability of answers.csv" in texts((files / "e.svg").read_text())
    assert (files / "map.csv").read_text().startswith("probability,calibrated\n")


def test_a_page_also_has_the_thresholds(files: Path, anabranch: Command) -> None:
    options = ("--truth", files / "truth.csv", "--tolerance", "60", "--plot")
    assert anabranch("evaluate", files / "answers.csv", *options, files / "e.html").status == 0
    page = (files / "e.html").read_text()
    assert "Evaluation of answers.csv" in page
    assert '"measure":"recall"' in page
    refused = anabranch("evaluate", files / "answers.csv", *options, files / "e.pdf")
    assert refused.status == 2
    assert "--plot ends with .html, .png, .svg, .json, not e.pdf" in refused.first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tolerance", "soon"), "--tolerance takes a duration such as 30 or '5 MINUTES', not soon"),
        (("--gap", "-1"), "--gap takes a duration such as 30 or '5 MINUTES', not -1"),
        (("--gap", "5 parsecs"), "--gap takes a duration such as 30 or '5 MINUTES', not 5 parsecs"),
        (("--bins", "0"), "--bins is at least 1, not 0"),
    ],
)
def test_wrong_options_are_one_line(files: Path, anabranch: Command, options: tuple[str, str], message: str) -> None:
    done = anabranch("evaluate", files / "answers.csv", "--truth", files / "truth.csv", *options)
    assert (done.status, done.err) == (2, f"anabranch: Invalid value: {message}; see anabranch --help\n")


def test_held_out_rows_are_the_truth(files: Path, anabranch: Command) -> None:
    options = ("--share", "0.2", "--seed", "3", "--output", files / "kept.csv", "--truth", files / "lost.csv")
    done = anabranch("holdout", files / "answers.csv", *options)
    assert (done.status, done.out) == (0, "")
    assert done.err.splitlines() == [
        "8 of 40 rows held out, in 8 of 40 rows",
        f"written to {files / 'kept.csv'} and {files / 'lost.csv'}",
    ]
    assert len((files / "lost.csv").read_text().splitlines()) == 9
    for changed, message in (
        (("--share", "1"), "--share is above 0 and below 1, not 1"),
        (("--seed", "-1"), "--seed is at least 0, not -1"),
        (("--truth", files / "lost.parquet"), "has another format than"),
        (("--truth", files / "answers.csv"), "FILE, --output and --truth must be three different files"),
    ):
        refused = anabranch("holdout", files / "answers.csv", *options, *changed)
        assert refused.status == 2
        assert message in refused.first


def test_neither_command_loads_spark(files: Path) -> None:
    """Also not for the error of a file that does not exist."""
    script = (
        "import sys; sys.argv = ['anabranch', 'evaluate', 'answers.csv', '--truth', 'truth.csv']\n"
        "from threading import Event\n"
        "from anabranch.cli.main import _status\n"
        "status = _status(Event())\n"
        "assert not {'pyspark', 'numba'} & set(sys.modules), 'loaded'\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
