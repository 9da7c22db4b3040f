"""The contestants of the RELATE benchmark: the algorithms of the SimpMatch paper, compiled as the product's kernel is.

The paper is "Interval-based Queries over Lossy IoT Event Streams". What it describes, and what it compares itself with:

- `possible_worlds`: its tree of possible worlds, with pruning and caching (Algorithms 1 and 2). Exact.
- `sase`, `sase_around`: the same tree with SASE+'s discrete timestamps in the place of its formula (Algorithm 3).
- `baseline_ignore`, `baseline_static`: lost events passed over, or some of them put at a fixed place (section 4.2).

`count_nodes` says how large the tree would be where it cannot be built. What is called `..._of_pairs` does the same for
many pairs in one call (`many.py`).

All take what is asked (`asked.py`). The baselines return 0 or 1; the trees a probability and the number of nodes they
added, with NaN for the probability where that number reached `limit`.

How the paper is read
---------------------
The probability of an order
    Theorem 1 holds for two runs of lost events that lie whole between the same two recorded instants. Where other
    recorded instants fall between, a run is split over several *gaps*, and the density of its times, m! / L^m, must be
    counted once, not once a gap. So each lost event of a run carries the m-th part of it, c = (m!)^(1/m) / L, and a gap
    d long with n_a and n_b events, in one order, has weight d^(n_a + n_b) / (n_a + n_b)! c_a^n_a c_b^n_b. The product
    over the gaps is the probability of a world. The weight is cached by (gap, n_a, n_b).
First and last events
    Lost ones lie between their recorded neighbour and a known bound. Bounds, and windows that are narrower than the
    recorded neighbours, cut time like recorded events do, but add no node. Runs of one entity may not share a gap:
    neighbouring lost events have one window, or windows that do not overlap.
Ties
    Two recorded events of one time may follow each other either way by the paper's CHECKORDER, which would count every
    world twice. Here they happen together, and the tie decides between MEETS and PRECEDES and the like.
MATCHESQUERY
    A branch ends as soon as the order so far leaves too few segments of a that can still be satisfied: closed ones that
    are not, the open one and those to come if too few segments of b can stand in the relation to them. Algorithm 2 goes
    on to the leaves where the query already holds for sure; the text on selectivity (section 4.3) speaks of pruning
    there. `sure=True` does so, and adds all completions in closed form.
Algorithm 3
    As printed it returns 0 for two or more lost events (its last test is never met), and its density, one over the
    *sum* of the domains' sizes, is none. Here every nondecreasing choice of timestamps for the events of a run is
    equally likely: what becomes order statistics as timestamps get dense. Paths are counted for each timestamp they
    end at rather than made one by one, and a domain holds no timestamp outside the event's window: both are kinder than
    printed. As printed, equal timestamps fit either order, so that the probabilities of all worlds add up to somewhat
    more than 1. Nothing is cached, because the weight now depends on the order. See `sase` for what it tends to.
BaselineStatic
    By the text a lost end is put at the *earlier* of "begin + mean duration" and the next observed event; the paper's
    example has it later than that event. The text is followed. Where a segment has lost both ends it is left out.

Numba's cache of a function notices a change in the function's own file alone: `make clean` after a change in a module
that others import.
"""

from benchmarks.relate_paper.asked import Asked, ManyAsked
from benchmarks.relate_paper.baselines import baseline_ignore, baseline_static, ignored, reconstructed
from benchmarks.relate_paper.many import baselines_of_pairs, nodes_of_pairs, possible_worlds_of_pairs, sase_of_pairs
from benchmarks.relate_paper.nodes import count_nodes
from benchmarks.relate_paper.relations import ANY, holds, relation
from benchmarks.relate_paper.stamps import expected_times
from benchmarks.relate_paper.tree import NO_LIMIT, possible_worlds, sase, sase_around

__all__ = [
    "ANY",
    "Asked",
    "ManyAsked",
    "NO_LIMIT",
    "baseline_ignore",
    "baseline_static",
    "baselines_of_pairs",
    "count_nodes",
    "expected_times",
    "holds",
    "ignored",
    "nodes_of_pairs",
    "possible_worlds",
    "possible_worlds_of_pairs",
    "reconstructed",
    "relation",
    "sase",
    "sase_around",
    "sase_of_pairs",
]
