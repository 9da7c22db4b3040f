"""Standard error of this process and its children, sent to a file for a while; or not, where it is closed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from anabranch.patches.stderr_redirect import stderr_to_file


def test_children_write_to_the_file_and_afterwards_to_stderr_again(capfd: pytest.CaptureFixture[str]) -> None:
    with stderr_to_file() as log:
        subprocess.run(["/bin/sh", "-c", "echo of a child >&2"], check=True)
        os.write(2, b"of this process\n")
    os.write(2, b"afterwards\n")
    assert log.read_text() == "of a child\nof this process\n"
    assert capfd.readouterr().err == "afterwards\n"


def test_stderr_is_restored_after_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="wrong"), stderr_to_file():
        raise ValueError("wrong")
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"


def test_no_descriptor_is_left_open() -> None:
    before = os.listdir("/dev/fd")
    with stderr_to_file():
        pass
    assert os.listdir("/dev/fd") == before


CLOSED = """
import os, sys
assert sys.stderr is None
from anabranch.patches.stderr_redirect import stderr_to_file
with stderr_to_file() as log:
    print(log.read_text() == "")
try:
    os.fstat(2)
except OSError:
    print("still closed")
"""


def test_without_stderr_the_file_stays_empty() -> None:
    command = ["/bin/sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, CLOSED]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "still closed"]
    assert done.returncode == 0


def test_the_file_is_removed_at_the_end_of_python() -> None:
    script = "from anabranch.patches.stderr_redirect import stderr_to_file\nwith stderr_to_file() as log: print(log)"
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip().endswith(".log")
    assert not os.path.exists(done.stdout.strip())
