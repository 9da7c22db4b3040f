"""The algorithms over many pairs: the events of all entities are in flat arrays, and one call processes all pairs."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled
from reproductions.simpmatch.baselines import baseline_ignore, baseline_static
from reproductions.simpmatch.inputs import PairsInput, pair_input
from reproductions.simpmatch.nodes import count_nodes
from reproductions.simpmatch.tree import possible_worlds, sase


@compiled
def possible_worlds_of_pairs(all_pairs: PairsInput, limit: int, stop_early: bool) -> tuple[F64, I64]:
    """Return the probability and the nodes of the tree of each pair; the probability is NaN at the limit."""
    probability, nodes = _empty_results(all_pairs)
    for n in range(len(all_pairs.pairs)):
        probability[n], nodes[n] = possible_worlds(pair_input(all_pairs, n), limit, stop_early)
    return probability, nodes


@compiled
def sase_of_pairs(all_pairs: PairsInput, delta: int, limit: int) -> tuple[F64, I64]:
    """Return the same for the tree with delta timestamps for each lost event."""
    probability, nodes = _empty_results(all_pairs)
    for n in range(len(all_pairs.pairs)):
        probability[n], nodes[n] = sase(pair_input(all_pairs, n), delta, limit)
    return probability, nodes


@compiled
def _empty_results(all_pairs: PairsInput) -> tuple[F64, I64]:
    return np.empty(len(all_pairs.pairs)), np.empty(len(all_pairs.pairs), np.int64)


@compiled
def baselines_of_pairs(all_pairs: PairsInput, static: bool) -> F64:
    """Return 1 or 0 for each pair, by BaselineStatic or by BaselineIgnore."""
    results = np.empty(len(all_pairs.pairs))
    for n in range(len(all_pairs.pairs)):
        pair = pair_input(all_pairs, n)
        results[n] = baseline_static(pair) if static else baseline_ignore(pair)
    return results


@compiled
def nodes_of_pairs(all_pairs: PairsInput, stop_early: bool) -> F64:
    """Return the number of nodes of each pair's tree without building it."""
    nodes = np.empty(len(all_pairs.pairs))
    for n in range(len(all_pairs.pairs)):
        nodes[n] = count_nodes(pair_input(all_pairs, n), stop_early)
    return nodes
