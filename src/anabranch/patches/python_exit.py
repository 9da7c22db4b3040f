"""The end of the process while threads of PySpark are running.

What is patched
    Nothing is replaced. `threading._shutdown` and `atexit._run_exitfuncs` are called, which CPython calls at its end;
    then the process ends without the rest of that.
Why
    The threads in which PySpark calls `foreachBatch` go on when the main thread ends, for instance because the JVM was
    killed. If one of them is in C++, such as Arrow that reads a table from Spark, CPython ends it there while it shuts
    down, and the process is aborted (SIGABRT, -6) instead of ending with its exit status.
Tried on
    Python 3.11, PyArrow 26.
Where it does not fit
    Without these functions, CPython ends the process as usual.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn


def leave(status: int, threads: Any = threading, exits: Any = atexit) -> NoReturn:
    """End the process with an exit status, also while daemon threads are running."""
    last_steps = [getattr(threads, "_shutdown", None), getattr(exits, "_run_exitfuncs", None)]
    if any(thread.daemon for thread in threads.enumerate()) and all(map(callable, last_steps)):
        for step in filter(None, last_steps):
            step()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # of a pipe or file that is closed
                stream.flush()
        os._exit(status)
    sys.exit(status)
