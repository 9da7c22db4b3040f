"""The process that Spark's Python workers are forked from, with the kernels loaded beforehand.

Loading Numba and the compiled kernels takes most of a second; here it is done once, not once a worker.
"""

from __future__ import annotations

import gc

from pyspark import daemon

import anabranch.constrain.operator
import anabranch.inference.stream
import anabranch.monitor.operator
import anabranch.pattern.archive
import anabranch.relate.operator
import anabranch.sequence.operator  # noqa: F401  (all loaded for the workers to be)

if __name__ == "__main__":
    # A worker collects garbage after each task. What is loaded here is none, and to look through it again takes a
    # tenth of a second.
    gc.freeze()
    daemon.manager()
