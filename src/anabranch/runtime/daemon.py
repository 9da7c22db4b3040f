"""The process that Spark's Python workers are forked from, with the kernels' modules and Numba loaded beforehand.

Loading them takes more than a second; here it is done once, not once a worker. Two things that a worker does would take
longer than most of its tasks. At first it lets every importer of Spark's zip file read the whole of its directory
again: the importers are forgotten. And after each task it collects garbage, and looks for it through everything that
was ever loaded: what outlives a task, such as a kernel, is taken out of the collector's sight (`TaskGarbage`).
"""

from __future__ import annotations

import gc
import sys

import pyspark.worker  # noqa: F401  (as below)
from pyspark import daemon

import anabranch.inference.stream  # noqa: F401  (loaded for the workers to be)
from anabranch.compiled import load_compiler
from anabranch.kinds import KINDS, load_kind_module

for kind in KINDS:
    load_kind_module(kind, "job")
load_compiler()


class TaskGarbage:
    """What Spark's loop over the tasks of a worker is given as its `gc`."""

    #: After so many tasks all is looked at again: what had outlived a task may have become garbage since.
    EVERYTHING = 200

    def __init__(self) -> None:
        self._tasks = 0

    def collect(self) -> None:
        """Collect what a task has left behind."""
        self._tasks += 1
        if self._tasks % self.EVERYTHING == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()


if __name__ == "__main__":
    sys.path_importer_cache.clear()
    gc.freeze()
    # Spark has no setting for this; its loop looks `gc` up in the module.
    daemon.gc = TaskGarbage()  # type: ignore[assignment]
    daemon.manager()
