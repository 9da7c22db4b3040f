"""Folders that cannot be written to: small file systems, and such that are read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount a file system in memory; the test is skipped where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True)
    if mount.returncode:
        pytest.skip(f"may not mount a file system: {mount.stderr.decode().strip()}")
    try:
        yield
    finally:
        # Lazily: the JVM may have a file open.
        subprocess.run(["umount", "--lazy", folder], check=True)


def remount(folder: Path, options: str) -> None:
    """Change the options of a mounted file system."""
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return
