"""File descriptor 2: standard error goes to a file while Spark's JVM starts.

What is patched
    File descriptor 2 of this process, by `os.dup2`, until the block ends. The JVM inherits it and keeps the file.
Why
    PySpark starts the JVM with the standard error of this process and has no setting for another. The JVM prints
    warnings before the log level can be set, and they would be mixed with the output of a command. Replacing
    `sys.stderr` is not enough: a child process does not see it.
Tried on
    PySpark 4.3.0 on Linux.
Where it does not fit
    Where standard error is closed, nothing is redirected, and the file stays empty. A failed start is then reported
    with the exception of PySpark instead of the last line of the JVM.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STDERR = 2


@contextmanager
def stderr_to_file() -> Iterator[Path]:
    """Send standard error, here and in processes started meanwhile, to a file that is removed when Python exits."""
    # sys.stderr is None where Python was started without it.
    with suppress(AttributeError, ValueError):
        sys.stderr.flush()
    # First, while the number of a closed descriptor cannot be taken by the file.
    try:
        original: int | None = os.dup(_STDERR)
    except OSError:
        original = None
    handle, name = tempfile.mkstemp(prefix="anabranch-spark-", suffix=".log")
    atexit.register(Path(name).unlink, missing_ok=True)
    if original is None:
        os.close(handle)
        yield Path(name)
        return
    os.dup2(handle, _STDERR)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        with suppress(AttributeError, ValueError):
            sys.stderr.flush()
        os.dup2(original, _STDERR)
        os.close(original)
