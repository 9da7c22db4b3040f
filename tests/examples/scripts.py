"""Loads the scripts of `examples/` and finds the real data that they read."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


def load(script: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the names of a script, which is not run as a program but can import the modules in its folder."""
    path = ROOT / "examples" / script
    monkeypatch.syspath_prepend(str(path.parent))
    # All examples have modules with these names.
    for name in ("prepare", "run"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return SimpleNamespace(**runpy.run_path(str(path)))


def real(folder: str) -> Path:
    """Return a folder of real data, or skip the test if it does not exist."""
    if not (DATA / folder).is_dir():
        pytest.skip(f"there is no {folder} in {DATA}")
    return DATA / folder
