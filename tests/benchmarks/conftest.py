"""Fixtures of the benchmark tests: folders of their own for charts and for cached files."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import curves, workloads


@pytest.fixture
def chart_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to which charts are written instead of docs/images."""
    folder = tmp_path / "charts"
    folder.mkdir()
    monkeypatch.setattr(curves, "PICTURES", folder)
    return folder


@pytest.fixture
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print tables without line breaks in their cells."""
    monkeypatch.setenv("COLUMNS", "240")


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to which workloads are written instead of the shared one."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(workloads, "cache_folder", lambda: folder)
    return folder
