"""Anabranch and other systems over the same files, each through its own interface, on two cores.

Only questions that a peer can express: sequences and negation without lost events, pairs and intervals without
uncertainty, hidden Markov models, and one probabilistic query that ProbLog can answer. The answers are compared before
times are reported: their number, and sums of their columns. A time is from the file to these sums, in a process that
has answered once before; the first answer is given too. Memory is the peak of the resident memory of all processes.
Peers are installed on demand (`environments.py`), and skipped where that fails.
"""

from benchmarks.peers.models import inference, probability
from benchmarks.peers.relations import intervals, pairs
from benchmarks.peers.sequences import matches, negated, next_match

PARTS = {
    "next": next_match,
    "negated": negated,
    "matches": matches,
    "pairs": pairs,
    "intervals": intervals,
    "inference": inference,
    "probability": probability,
}
