"""The algorithms of the SimpMatch paper, compiled with Numba as the kernels of Anabranch are.

The paper is "Interval-based Queries over Lossy IoT Event Streams". It describes, and compares itself with:

- `possible_worlds`: its tree of possible worlds, with pruning and caching (Algorithms 1 and 2). Exact.
- `sase`, `sase_around`: the same tree with the discrete timestamps of SASE+ instead of its formula (Algorithm 3).
- `baseline_ignore`, `baseline_static`: lost events are ignored, or some are given a fixed time (section 4.2).

`count_nodes` returns the size of a tree that is too large to build. The functions named `..._of_pairs` process many
pairs in one call (`pairs.py`).

All functions take a `PairInput` (`inputs.py`). The baselines return 0 or 1. The trees return a probability and the
number of nodes that they added; the probability is NaN if that number reached `limit`.

How the paper is interpreted
----------------------------
The probability of an order
    Theorem 1 holds for two runs of lost events that lie entirely between the same two recorded instants. If other
    recorded instants fall between, a run is split over several *gaps*, and the density of its times, m! / L^m, must be
    counted once, not once per gap. So each lost event of a run carries the m-th root of it, c = (m!)^(1/m) / L, and a
    gap of length d with n_a and n_b events, in one order, has weight d^(n_a + n_b) / (n_a + n_b)! c_a^n_a c_b^n_b. The
    product over the gaps is the probability of a world. The weight is cached by (gap, n_a, n_b).
First and last events
    If they are lost, they lie between their recorded neighbour and a known bound. Bounds, and windows that are narrower
    than the recorded neighbours, split time as recorded events do, but add no node. Runs of one entity may not share a
    gap: adjacent lost events have the same window, or windows that do not overlap.
Ties
    Two recorded events with the same time may follow each other in either order by the paper's CHECKORDER, which would
    count every world twice. Here they happen together, and the tie decides between relations such as MEETS and
    PRECEDES.
MATCHESQUERY
    A branch ends as soon as the order so far leaves too few segments of a that can still be satisfied. These are the
    satisfied segments, the open one and the future ones, the latter two only if enough segments of b can have the
    relation to them. Algorithm 2 continues to the leaves even if the query is already certain to hold; the text on
    selectivity (section 4.3) mentions pruning there. `stop_early=True` does so, and adds all completions in closed
    form.
Algorithm 3
    As printed it returns 0 for two or more lost events (its last test is never met), and its density, one over the
    *sum* of the domains' sizes, is not a density. Here every nondecreasing choice of timestamps for the events of a run
    is equally likely, which converges to order statistics as timestamps get dense. Paths are counted for each timestamp
    they end at instead of being built one by one, and a domain has no timestamp outside the event's window: both are
    faster than the printed algorithm. As printed, equal timestamps fit either order, so the probabilities of all worlds
    sum to slightly more than 1. Nothing is cached, because the weight depends on the order. See `sase` for its limit.
BaselineStatic
    By the text a lost end is placed at the *earlier* of "begin + mean duration" and the next observed event; the
    paper's example places it after that event. The text is followed. A segment that has lost both ends is left out.

The Numba cache of a function notices only changes in the function's own file. Run `make clean` after a change in a
module that others import.
"""

from reproductions.simpmatch.baselines import baseline_ignore, baseline_static, ignore_lost, reconstruct
from reproductions.simpmatch.inputs import PairInput, PairsInput
from reproductions.simpmatch.nodes import count_nodes
from reproductions.simpmatch.pairs import baselines_of_pairs, nodes_of_pairs, possible_worlds_of_pairs, sase_of_pairs
from reproductions.simpmatch.relations import ANY, INTERSECTS, holds, relation, relation_mask
from reproductions.simpmatch.timestamps import expected_times
from reproductions.simpmatch.tree import NO_LIMIT, possible_worlds, sase, sase_around

__all__ = [
    "ANY",
    "INTERSECTS",
    "NO_LIMIT",
    "PairInput",
    "PairsInput",
    "baseline_ignore",
    "baseline_static",
    "baselines_of_pairs",
    "count_nodes",
    "expected_times",
    "holds",
    "ignore_lost",
    "nodes_of_pairs",
    "possible_worlds",
    "possible_worlds_of_pairs",
    "reconstruct",
    "relation",
    "relation_mask",
    "sase",
    "sase_around",
    "sase_of_pairs",
]
