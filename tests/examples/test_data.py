"""The option --data of all examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.scripts import DATA, load

EXAMPLES = pytest.mark.parametrize("example", ["aircraft", "batteryless", "buoys", "buses", "caviar", "passages"])


@EXAMPLES
def test_missing_data_are_an_error(
    example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["prepare.py", "--data", str(tmp_path)])
    prepare = load(f"{example}/prepare.py", monkeypatch)
    with pytest.raises(SystemExit):
        prepare.main()
    assert f"error: argument --data: there is no {prepare.FOLDER} in {tmp_path}\n" in capsys.readouterr().err


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shared = load("shared.py", monkeypatch)
    assert Path(shared.DATA) == DATA
    (tmp_path / "data").mkdir()
    assert shared.options("", "data").parse_args(["--data", str(tmp_path)]).data == tmp_path / "data"
