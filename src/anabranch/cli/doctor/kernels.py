"""The check of the compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path

import anabranch
from anabranch.cli.doctor.checks import is_writable
from anabranch.cli.doctor.result import Result, fails, ok, slow


def kernels() -> Result:
    """Where compiled kernels are stored, and whether there are any."""
    package = Path(anabranch.__path__[0])
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(chosen) if chosen else package
    if not is_writable(folder):
        return fails(f"{folder} is not writable", "set NUMBA_CACHE_DIR to a writable folder")
    n_files = sum(1 for _ in folder.rglob("*.nbi"))
    if not n_files:
        return slow(f"none in {folder}", "the first query of each kind compiles its kernels, for 10 to 80 s")
    return ok(f"{n_files} functions in {folder}")
