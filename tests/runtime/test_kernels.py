"""The driver compiles what this machine lacks before work fans out, and says so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anabranch.compiled import build
from anabranch.monitor.job import MonitorJob
from anabranch.runtime import kernels
from anabranch.runtime.kernels import ensure_kernels


def monitor_job(derivation: object = None) -> Any:
    """A job of MONITOR, as far as the choice of kernels looks at it."""
    layouts = (SimpleNamespace(derivation=derivation),)
    return type("Job", (), {"__module__": MonitorJob.__module__, "layouts": layouts})()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[list[str], Path]]:
    """What would be compiled, and where."""
    calls: list[tuple[list[str], Path]] = []
    monkeypatch.setattr(kernels, "writable_cache_folder", lambda name: tmp_path)
    monkeypatch.setattr(kernels, "compile_families", lambda families, folder, report: calls.append((families, folder)))
    return calls


def test_nothing_is_compiled_where_everything_is_there(compiled, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.missing_families(build.all_families()) == [], "run `make kernels` first"
    ensure_kernels([monitor_job()])
    assert compiled == [] and capsys.readouterr().err == ""


def test_the_families_of_a_job_are_compiled_with_a_message(
    compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "missing_families", lambda families: [name for name in families if name == "monitor"])
    ensure_kernels([monitor_job()])
    assert compiled == [(["monitor"], tmp_path)]
    duration = f"about {build.SECONDS['monitor']} s"
    assert capsys.readouterr().err == f"compiling the MONITOR kernels for this machine, once: {duration}\n"


def test_a_derived_stream_needs_the_kernels_of_inference(compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(kernels, "missing_families", lambda families: asked.append(families) or [])
    ensure_kernels([monitor_job(), monitor_job(derivation="a model")])
    ensure_kernels([monitor_job()])
    assert ["inference" in families for families in asked] == [True, False]
    assert all({"monitor", "columns", "transport"} <= set(families) for families in asked)


def test_where_nothing_is_writable_the_workers_compile(compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "missing_families", lambda families: ["monitor"])
    monkeypatch.setattr(kernels, "writable_cache_folder", lambda name: None)
    ensure_kernels([monitor_job()])
    assert compiled == []
