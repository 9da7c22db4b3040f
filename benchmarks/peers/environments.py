"""Python environments with the packages of peers, made on demand in the temporary folder of the system.

A peer that cannot be installed on this machine is skipped, also by later runs: some compile for a quarter of an hour
before they fail. Removing the folder tries again. The package and its tests need none of the peers.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

FOLDER = Path(tempfile.gettempdir()) / "anabranch-peers"

TIMEOUT = 900
"""Seconds for an installation."""


@cache
def python_with(*packages: str) -> Path | None:
    """Return a Python that has these packages; None, with a line that says why, if they cannot be installed."""
    digest = hashlib.sha256(" ".join((sys.version, *packages)).encode()).hexdigest()[:8]
    folder = FOLDER / f"{packages[0].partition('=')[0]}-{digest}"
    python = folder / "bin" / "python"
    if python.exists():
        return python
    failed = folder.with_suffix(".failed")
    failure = failed.read_text() if failed.exists() else _install(folder, packages)
    if failure is None:
        return python
    # A venv cannot be moved, so a failed one is removed instead of being made elsewhere first.
    shutil.rmtree(folder, ignore_errors=True)
    failed.parent.mkdir(parents=True, exist_ok=True)
    failed.write_text(failure)
    print(f"{packages[0]} is skipped: it cannot be installed ({failure})")
    return None


def _install(folder: Path, packages: tuple[str, ...]) -> str | None:
    """Make an environment; returns the last line of the first command that fails."""
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--prefer-binary", *packages],
    ):
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return f"no result after {TIMEOUT} seconds"
        except OSError as error:
            return str(error)
        if process.returncode:
            return (process.stderr.strip() or process.stdout.strip() or "no message").splitlines()[-1]
    return None
