"""The option --data of all examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.scripts import load


@pytest.mark.parametrize("example", ["aircraft", "batteryless", "buoys", "buses", "caviar", "passages"])
def test_missing_data_are_a_one_line_error(example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prepare = load(f"{example}/prepare.py", monkeypatch)
    message = f"there is no {prepare.FOLDER} in .*; use --data to give its parent folder"
    with pytest.raises(SystemExit, match=message):
        prepare.find_data(prepare.options("").parse_args(["--data", str(tmp_path)]).data)
