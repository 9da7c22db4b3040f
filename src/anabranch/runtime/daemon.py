"""The process that Spark's Python workers are forked from, with the kernels' modules and Numba already loaded.

Loading them takes more than a second; here it happens once, not once per worker. Two more things that a worker does
would take longer than most of its tasks. At its start every importer of Spark's zip file reads the whole zip directory
again: the import cache is cleared to avoid that. After each task it collects garbage among everything that was ever
loaded: objects that outlive a task are excluded (`patches/spark_daemon_gc.py`).
"""

from __future__ import annotations

import gc
import sys

from anabranch.patches import spark_daemon_gc, spark_zip

# Before the first import of PySpark.
sys.path[:] = spark_zip.without_zip(sys.path)

import pyspark.worker  # noqa: E402, F401  (loaded for the workers)
from pyspark import daemon  # noqa: E402

import anabranch.inference.stream  # noqa: E402, F401  (loaded for the workers)
from anabranch.compiled import load_compiler  # noqa: E402
from anabranch.kinds import KINDS, load_kind_module  # noqa: E402

for kind in KINDS:
    load_kind_module(kind, "job")
load_compiler()


if __name__ == "__main__":
    sys.path_importer_cache.clear()
    gc.freeze()
    spark_daemon_gc.install(daemon)
    daemon.manager()
