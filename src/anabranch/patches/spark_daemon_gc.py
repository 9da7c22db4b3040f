"""The name `gc` in `pyspark.daemon`: a worker's garbage collection after each task skips what was loaded before.

What is patched
    The module attribute `pyspark.daemon.gc`. The loop over the tasks of a worker looks it up and calls `gc.collect()`
    after each task. Spark has no setting for this.
Why
    A worker has many modules and the compiled kernels loaded. A full collection scans all of them, which takes longer
    than most tasks. Objects that outlive a task are excluded from later collections (`gc.freeze`).
Tried on
    PySpark 4.3.0.
Where it does not fit
    A daemon module whose `manager` does not use a global `gc` is left as it is. Each task then ends with a full
    collection: slower, with the same results.
"""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any


class TaskGarbageCollector:
    """Replaces the module `gc` in the loop over the tasks of a worker; everything but `collect` is that of `gc`."""

    #: After this many tasks a collection covers all objects: those that outlived a task may be garbage by now.
    FULL_COLLECTION_EVERY = 200

    def __init__(self) -> None:
        self._tasks = 0

    def collect(self) -> int:
        """Collect the garbage of one task, and return how many objects were unreachable."""
        self._tasks += 1
        if self._tasks % self.FULL_COLLECTION_EVERY == 0:
            gc.unfreeze()
        unreachable = gc.collect()
        gc.freeze()
        return unreachable

    def __getattr__(self, name: str) -> Any:
        return getattr(gc, name)


def install(daemon: Any) -> bool:
    """Give a daemon module a `TaskGarbageCollector` for its `gc`; return whether it was patched."""
    manager_code = getattr(getattr(daemon, "manager", None), "__code__", None)
    if not isinstance(getattr(daemon, "gc", None), ModuleType) or "gc" not in getattr(manager_code, "co_names", ()):
        return False
    daemon.gc = TaskGarbageCollector()
    return True
