"""The process that Spark's Python workers are forked from, with the kernels' modules loaded beforehand.

Loading them takes most of a second; here it is done once, not once a worker. Two things that a worker does would take
longer than most of its tasks: after each it collects garbage, and looks through everything that was loaded for it; and
at first it lets every importer of Spark's zip file read the whole of its directory again. So what is loaded here is
taken out of the collector's sight, and the importers are forgotten.
"""

from __future__ import annotations

import gc
import sys

import pyspark.worker  # noqa: F401  (as below)
from pyspark import daemon

import anabranch.inference.stream  # noqa: F401  (loaded for the workers to be)
from anabranch.kinds import KINDS, part_of

for kind in KINDS:
    part_of(kind, "job")

if __name__ == "__main__":
    sys.path_importer_cache.clear()
    gc.freeze()
    daemon.manager()
