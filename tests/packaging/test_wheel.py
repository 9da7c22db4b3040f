"""The wheel that pip builds from the sources; `make release-check` tests the one with compiled kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scripts import build_wheel

from tests.packaging.wheels import faults

BUILD = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build_wheel.copy_sources(folder / "copy")
    subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], check=True, cwd=folder / "copy", capture_output=True, text=True
    )
    (built,) = folder.glob("*.whl")
    return built


def test_a_wheel_is_complete(wheel: Path) -> None:
    assert faults(wheel, with_kernels=False) == []


def test_pip_builds_no_kernels(wheel: Path) -> None:
    assert faults(wheel, with_kernels=True) == ["there are no compiled kernels"]
    assert wheel.name.endswith("-py3-none-any.whl")


def test_a_wheel_with_kernels_names_its_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_wheel.sys, "platform", "linux")
    monkeypatch.setattr(build_wheel.platform, "machine", lambda: "x86_64")
    assert build_wheel.platform_tag() == "manylinux_2_28_x86_64"
    monkeypatch.setattr(build_wheel.sys, "platform", "darwin")
    monkeypatch.setattr(build_wheel.sysconfig, "get_platform", lambda: "macosx-14.0-arm64")
    assert build_wheel.platform_tag() == "macosx_14_0_arm64"
