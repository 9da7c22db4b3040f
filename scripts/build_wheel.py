"""Builds the wheel with compiled kernels for this platform: `make wheel`.

The wheel is built from a copy of the sources, with portable kernels instead of those that `make install` compiled for
this machine. Its name has the version of Python and the platform, because the kernels are compiled for both.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: What a wheel is built from.
SOURCES = ("LICENSE", "README.md", "examples", "pyproject.toml", "setup.py", "src")

#: The kernels call nothing of the C library; Numba and Arrow need glibc 2.28.
LINUX_PLATFORM = "manylinux_2_28"


def platform_tag() -> str:
    """The platform in the name of the wheel."""
    if sys.platform == "linux":
        return f"{LINUX_PLATFORM}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build_wheel(target: Path) -> Path:
    """Build the wheel into a folder, and return its path."""
    with tempfile.TemporaryDirectory(prefix="anabranch-wheel-") as folder:
        copy = Path(folder) / "anabranch"
        copy_sources(copy)
        compile_kernels = [sys.executable, "-m", "anabranch.compiled.build", "--portable", "--folder"]
        kernels = copy / "src" / "anabranch" / "compiled" / "kernels"
        subprocess.run([*compile_kernels, str(kernels)], check=True, cwd=copy / "src")
        for lock in kernels.glob("*.lock"):
            lock.unlink()
        tags = ["--python-tag", f"cp{sys.version_info[0]}{sys.version_info[1]}", "--plat-name", platform_tag()]
        build = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1], {'--build-option': "
        built = Path(folder) / "built"
        built.mkdir()
        subprocess.run(
            [sys.executable, "-c", f"{build}{tags!r}}})", str(built)], check=True, cwd=copy, stdout=sys.stderr
        )
        (wheel,) = built.glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy2(wheel, target))


def copy_sources(copy: Path) -> None:
    """Copy what a wheel is built from, without what tools have written."""
    copy.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", "*.kernel", "*.lock")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignored)
        else:
            shutil.copy2(source, copy / name)


def main() -> None:
    """Build the wheel and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="default: dist")
    sys.stdout.write(f"{build_wheel(parser.parse_args().folder)}\n")


if __name__ == "__main__":
    main()
