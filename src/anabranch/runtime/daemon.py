"""The process that Spark's Python workers are forked from, with the kernels loaded beforehand.

Loading Numba and the compiled kernels takes most of a second; here it is done once, not once a worker.
"""

from __future__ import annotations

import gc

from pyspark import daemon

import anabranch.inference.stream  # noqa: F401  (loaded for the workers to be)
from anabranch.kinds import KINDS, part_of

for kind in KINDS:
    part_of(kind, "job")

if __name__ == "__main__":
    # A worker collects garbage after each task. What is loaded here is none, and to look through it again takes a
    # tenth of a second.
    gc.freeze()
    daemon.manager()
