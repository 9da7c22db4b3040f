"""The scripts of an example as fixtures; `EXAMPLE` in a test module names its folder."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.examples.scripts import load


@pytest.fixture
def prepare(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load(f"{request.module.EXAMPLE}/prepare.py", monkeypatch)


@pytest.fixture
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load(f"{request.module.EXAMPLE}/run.py", monkeypatch)


@pytest.fixture
def draw(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load(f"{request.module.EXAMPLE}/draw.py", monkeypatch)
