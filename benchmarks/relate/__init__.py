"""RELATE and the algorithms of the SimpMatch paper on the same data: figures 8 to 11 of its section 4, and figure 13.

The data are those of the paper: 500 pairs of segmented intervals whose events follow a Poisson process, and all pairs
of congested sectors of a motorway (`workloads.py`); the journeys of figure 13 are simulated. *Noise* is the share of
lost events. An event is a point event of either entity of a pair, lost or not; an entity in several pairs counts in
each.

The tree of possible worlds is exponential in the lost events, so it is aborted at LIMIT nodes per pair. Its throughput
is then an upper bound, and the true throughput is estimated: the nodes of the complete tree are counted
(`count_nodes`), and each is assumed to cost as much as those that were built. Wherever a tree is complete, its answer
must equal that of Anabranch.

Single-threaded parts are timed by processor time. Without --quick the charts in docs/images are drawn again.
"""

from benchmarks.relate.accuracy import accuracy, sase
from benchmarks.relate.growth import growth
from benchmarks.relate.spark import numbered_pairs, spark_archive
from benchmarks.relate.speed import kernel, lost_events, selectivity, throughput

PARTS = {
    "kernel": kernel,
    "throughput": throughput,
    "accuracy": accuracy,
    "selectivity": selectivity,
    "lost": lost_events,
    "sase": sase,
    "growth": growth,
    "spark": spark_archive,
    "pairs": numbered_pairs,
}
