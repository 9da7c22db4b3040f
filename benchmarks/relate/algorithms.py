"""The algorithms that the RELATE benchmark compares: Anabranch, and those of the SimpMatch paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from reproductions import simpmatch

from anabranch.relate.pairs import relate
from benchmarks.engines import TOLERANCE
from benchmarks.relate.workloads import Workload

ANABRANCH, TREE, EARLY_STOP = "Anabranch", "tree", "early-stop tree"
"""The early-stop tree also ends a branch where the query is certain to hold."""

IGNORE, STATIC = "BaselineIgnore", "BaselineStatic"

DELTAS = (30, 60)
SASE = {delta: f"SASE+ ({delta})" for delta in DELTAS}


@dataclass(frozen=True, slots=True)
class Result:
    """The probability of each pair, NaN where the tree got too large, and the number of nodes that were built."""

    probability: np.ndarray
    nodes: np.ndarray | None = None

    @property
    def complete(self) -> np.ndarray:
        """Which pairs have an answer."""
        return ~np.isnan(self.probability)


Algorithm = Callable[[Workload], Result]


def all_algorithms(limit: int) -> dict[str, Algorithm]:
    """Return all algorithms by name; trees abort a pair at a limit of nodes."""
    return {
        ANABRANCH: anabranch,
        TREE: partial(tree, limit=limit),
        EARLY_STOP: partial(tree, limit=limit, stop_early=True),
        **{name: partial(discrete, delta=delta, limit=limit) for delta, name in SASE.items()},
        IGNORE: partial(baseline, static=False),
        STATIC: partial(baseline, static=True),
    }


def anabranch(workload: Workload) -> Result:
    """Run the package, from windows to probabilities."""
    windows = workload.windows
    return Result(relate(workload.analysis, True, windows, windows, workload.pairs).probability)


def tree(workload: Workload, limit: int, stop_early: bool = False) -> Result:
    """Run the tree of the paper."""
    return Result(*simpmatch.possible_worlds_of_pairs(workload.paper_input, limit, stop_early))


def discrete(workload: Workload, delta: int, limit: int) -> Result:
    """Run the tree with the timestamps of SASE+."""
    return Result(*simpmatch.sase_of_pairs(workload.paper_input, delta, limit))


def baseline(workload: Workload, static: bool) -> Result:
    """Run one of the two baselines, which give no probabilities."""
    return Result(simpmatch.baselines_of_pairs(workload.paper_input, static))


def node_counts(workload: Workload, name: str) -> np.ndarray:
    """Return the number of nodes of each pair's complete tree."""
    return simpmatch.nodes_of_pairs(workload.paper_input, name == EARLY_STOP)


def check_same(result: Result, expected: Result) -> float:
    """Return the largest difference between an exact algorithm and Anabranch, over the pairs that it completed."""
    both = result.complete
    difference = float(abs(result.probability[both] - expected.probability[both]).max(initial=0.0))
    if not difference <= TOLERANCE:
        raise AssertionError(f"the tree and the kernel differ by {difference}")
    return difference


def is_tree(name: str) -> bool:
    """Return whether an algorithm may be aborted."""
    return name in (TREE, EARLY_STOP, *SASE.values())
