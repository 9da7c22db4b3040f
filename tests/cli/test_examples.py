"""`anabranch examples`: in a clone and in an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.cli import examples
from anabranch.errors import AnabranchError


def test_the_examples_are_copied_with_their_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    examples.command(folder)
    assert (folder / "coffee.abq").exists() and (folder / "at.csv").exists()
    assert not list(folder.rglob("__pycache__"))
    assert f"anabranch run {folder}/coffee.abq" in capsys.readouterr().err


def test_files_are_never_overwritten(tmp_path: Path) -> None:
    with pytest.raises(AnabranchError, match="exists already; name another folder"):
        examples.command(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_package_without_examples_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_FOLDERS", (tmp_path / "nowhere",))
    with pytest.raises(AnabranchError, match="no examples"):
        examples.command(tmp_path / "mine")
