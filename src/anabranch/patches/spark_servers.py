"""The method `handle_error` of `socketserver.BaseServer`: the servers of PySpark print no traceback.

What is patched
    `BaseServer.handle_error`, which prints the traceback of a failed request on standard error.
Why
    PySpark has such servers, for accumulators and for `foreachBatch`. If its JVM is killed, their requests fail, and
    tracebacks are printed in addition to the error that the command reports in one line.
Tried on
    PySpark 4.3.0, Python 3.11.
Where it does not fit
    Without such a method, nothing is patched.
"""

from __future__ import annotations

import socketserver
from typing import Any


def install(server_class: Any = socketserver.BaseServer) -> None:
    """Let all servers of a class ignore failed requests: the other side reports them."""
    if hasattr(server_class, "handle_error"):
        server_class.handle_error = _ignore


def _ignore(self: socketserver.BaseServer, request: Any, client_address: Any) -> None:
    pass
