"""`anabranch plot`: from answers in files to a page, a picture or GeoJSON, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.command import Command
from tests.drawing.pictures import texts
from tests.plotting import answers as given


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """A folder of answers, as `run --output` writes it."""
    folder = tmp_path / "storms"
    folder.mkdir()
    pq.write_table(given.storms(), folder / "part-0.parquet")
    return folder


def test_a_page_a_picture_and_geojson(answers: Path, tmp_path: Path, anabranch: Command) -> None:
    for suffix in ("html", "png", "svg", "json", "geojson"):
        target = tmp_path / f"chart.{suffix}"
        done = anabranch("plot", answers, "--output", target)
        assert (done.status, done.out, done.err) == (0, "", f"written to {target}\n")
        assert target.stat().st_size > 500
    assert "storms" in texts((tmp_path / "chart.svg").read_text()), "the title is the name of the folder"
    assert len(json.loads((tmp_path / "chart.geojson").read_text())["features"]) == 3


def test_options(answers: Path, tmp_path: Path, anabranch: Command) -> None:
    target = tmp_path / "chart.json"
    options = ("--title", "Storms", "--threshold", "0.5", "--limit", "2", "--space", "lon, lat", "--theme", "dark")
    assert anabranch("plot", answers, "--output", target, *options).status == 0
    spec = json.loads(target.read_text())
    assert spec["title"]["text"] == "Storms"
    assert "2 of 3 answers: those with the highest probabilities" in spec["title"]["subtitle"]
    assert [parameter["value"] for parameter in spec["params"] if parameter["name"] == "threshold"] == [0.5]
    assert spec["config"]["background"] == "#14171b"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--output", "x.pdf"), 2, "--output ends with .html, .png, .svg, .json, not x.pdf"),
        (("--output", "nowhere/x.html"), 2, "--output: there is no folder nowhere"),
        (("--output", "x.html", "--kind", "map"), 1, "there is no kind map"),
    ],
)
def test_wrong_options_are_one_line(
    answers: Path, anabranch: Command, options: tuple[str, ...], status: int, message: str
) -> None:
    done = anabranch("plot", answers, *options)
    assert done.status == status
    assert message in done.first
    assert len(done.err.splitlines()) == 1


def test_spark_is_not_loaded(answers: Path) -> None:
    script = (
        "import sys; sys.argv = ['anabranch', 'plot', 'storms', '--output', 'x.html']\n"
        "from threading import Event\n"
        "from anabranch.cli.main import _status\n"
        "status = _status(Event())\n"
        "assert not {'pyspark', 'numba'} & set(sys.modules), 'loaded'\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=answers.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
