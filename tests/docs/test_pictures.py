"""The pictures show real answers: those of the demo, and those of the queries behind docs/concepts.md."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from anabranch.cli.demo import DEMOS
from anabranch.simulate import SCENARIOS

IMAGES = Path(__file__).parents[2] / "docs" / "images"


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated data of the demo."""
    folder = tmp_path_factory.mktemp("worlds")
    for demo in DEMOS:
        SCENARIOS[demo.scenario].write(folder / demo.scenario, 0, **demo.options)
    return folder


def test_the_excerpts_of_queries_are_in_the_workbooks(worlds: Path) -> None:
    kinds = SimpleNamespace(**runpy.run_path(str(IMAGES / "five.py"))).KINDS
    assert [(kind.scenario, kind.query) for kind in kinds] == [(demo.scenario, demo.queries[0]) for demo in DEMOS]
    for kind in kinds:
        text = (worlds / kind.scenario / f"{kind.scenario}.abq").read_text(encoding="utf-8")
        query = " ".join(text.partition(f"CREATE QUERY {kind.query} AS")[2].partition(";")[0].split())
        for part in " ".join(kind.heart).split("…"):
            assert " ".join(part.split()) in query, kind.name


def test_the_pictures_of_the_kinds_are_drawn_from_real_answers(
    spark, worlds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["five.py", str(worlds), str(tmp_path)])
    assert pictures_drawn_by("five.py", tmp_path) == 1 + len(DEMOS)


def test_the_pictures_of_the_concepts_are_drawn_from_real_answers(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["concepts.py", str(tmp_path)])
    assert pictures_drawn_by("concepts.py", tmp_path) == 5


def pictures_drawn_by(script: str, folder: Path) -> int:
    """Run a script that draws into a folder, and return how many pictures it drew, all equal to those of the docs."""
    runpy.run_path(str(IMAGES / script), run_name="__main__")
    drawn = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")}
    for name, picture in drawn.items():
        assert picture == (IMAGES / name).read_text(encoding="utf-8"), f"draw {name} again, see docs/images/{script}"
    return len(drawn)
