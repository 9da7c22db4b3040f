"""Checks a release as its users will meet it: `make release-check`.

Builds the wheel, checks its content as a package index does, installs it into a new environment and runs the README's
commands there. Nothing may be compiled: all kernels must come with the wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.build_wheel import build_wheel

from tests.packaging.wheels import faults


class Environment:
    """A new virtual environment, with caches of its own, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)

    def run(self, *command: str) -> str:
        """Run a command of the environment, print how long it took, and return what it printed."""
        begin = time.monotonic()
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        finished = subprocess.run(
            [str(self.folder / "venv" / "bin" / command[0]), *command[1:]],
            cwd=self.folder, env={**kept, "ANABRANCH_CACHE": str(self.cache)}, capture_output=True, text=True,
        )  # fmt: skip
        _say(f"{time.monotonic() - begin:6.1f} s  {' '.join(command)}")
        if finished.returncode:
            raise SystemExit(f"{finished.stdout}{finished.stderr}\n{' '.join(command)} failed")
        return finished.stdout


def check(folder: Path) -> None:
    """Build and check a release in a folder."""
    wheel = build_wheel(folder)
    _say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    found = faults(wheel, with_kernels=True)
    if found:
        raise SystemExit("\n".join(found))
    environment = Environment(folder)
    environment.run("pip", "install", "--quiet", "twine")
    environment.run("twine", "check", "--strict", str(wheel))
    environment.run("pip", "install", "--quiet", str(wheel))
    environment.run("anabranch", "--version")
    environment.run("anabranch", "examples", "examples")
    answers = environment.run("anabranch", "run", "examples/coffee.abq")
    if "0.456" not in answers:
        raise SystemExit(f"the coffee example has other answers:\n{answers}")
    environment.run("anabranch", "demo")
    compiled = sorted(path.name for path in environment.cache.rglob("*.kernel"))
    if compiled:
        raise SystemExit(f"these kernels are not in the wheel: {', '.join(compiled)}")
    _say("complete")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="anabranch-release-") as name:
        check(Path(name))
