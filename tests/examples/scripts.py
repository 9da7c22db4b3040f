"""The scripts of `examples/`, and the real data that they read."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


def load(script: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The names of a script, which finds the modules beside it and is not run as a program."""
    path = ROOT / "examples" / script
    monkeypatch.syspath_prepend(str(path.parent))
    # Examples have modules of the same names.
    for name in ("prepare", "run"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return SimpleNamespace(**runpy.run_path(str(path)))


def real(folder: str) -> Path:
    """A folder of real data; without it, the test is skipped."""
    if not (DATA / folder).is_dir():
        pytest.skip(f"there is no {folder} in {DATA}")
    return DATA / folder
