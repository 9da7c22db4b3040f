"""The patch that lets a command that was interrupted end with its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED = """
import sys
from anabranch.patches import python_interrupts

try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    {forget}
    sys.exit(130)
"""


@pytest.mark.parametrize(("forget", "status"), [("python_interrupts.forget()", 130), ("pass", -2)])
def test_a_caught_interrupt_leaves_the_exit_status(forget: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED.format(forget=forget))
    assert subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, check=False).returncode == status
