"""SEQUENCE: the quality of its answers as readings are lost, the calibration of its scores, and its speed.

`quality` and `calibration` run over simulated shops, whose truth is known; they depend only on the seed. `kernel`,
`pruning`, `window` and `growth` run in this process over the events of `workloads.py`, and are timed by processor
time. A rate counts all events, also those of kinds that no query uses. `spark` goes from one CSV file to discarded
answers, by wall-clock time, and compares with Flink SQL if it is installed (`flink.py`). Without --quick the charts in
docs/images are drawn again.
"""

from benchmarks.sequence.growth import growth
from benchmarks.sequence.scores import calibration, quality
from benchmarks.sequence.spark import spark_large, spark_million
from benchmarks.sequence.speed import kernel, pruning, window

PARTS = {
    "quality": quality,
    "calibration": calibration,
    "kernel": kernel,
    "pruning": pruning,
    "window": window,
    "growth": growth,
    "spark": spark_million,
    "spark_large": spark_large,
}
