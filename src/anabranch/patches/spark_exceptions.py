"""The name `recover_python_exception` in `pyspark.errors.exceptions`: errors of Anabranch on a worker arrive as such.

What is patched
    The module attribute `recover_python_exception` of `pyspark.errors.exceptions.captured` (classic) and `.connect`
    (Connect). Both call it with every exception that they are about to raise, and raise what it returns.
Why
    The answers of a run are a lazy DataFrame: a worker fails during an action of the user, outside of any function of
    ours. Spark has no hook for the exceptions of an action. Without the patch, a DataError of a worker is a
    PythonException with a trace of 25 lines.
Tried on
    PySpark 4.1.4, 4.2.1 and 4.3.0.
Where it does not fit
    A module without this function is left as it is. The user then gets Spark's exception with the whole trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NAME = "recover_python_exception"


def install(module: Any, translate: Callable[[Exception], Exception | None]) -> bool:
    """Let a module raise what `translate` returns; None leaves an exception to Spark. Returns whether it is patched."""
    recover = getattr(module, _NAME, None)
    if not callable(recover):
        return False
    if not hasattr(recover, "by_anabranch"):

        def recover_or_translate(error: Exception) -> Exception:
            return translate(error) or recover(error)

        recover_or_translate.by_anabranch = True  # type: ignore[attr-defined]  # marks a module that is patched
        setattr(module, _NAME, recover_or_translate)
    return True
