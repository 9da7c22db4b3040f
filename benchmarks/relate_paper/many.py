"""The contestants over many pairs: entities end to end in flat arrays, and one call for all pairs."""

from __future__ import annotations

import numpy as np

from anabranch.compiled import compiled
from benchmarks.relate_paper.asked import F64, I64, ManyAsked, asked_of
from benchmarks.relate_paper.baselines import baseline_ignore, baseline_static
from benchmarks.relate_paper.nodes import count_nodes
from benchmarks.relate_paper.tree import possible_worlds, sase


@compiled
def possible_worlds_of_pairs(many: ManyAsked, limit: int, sure: bool) -> tuple[F64, I64]:
    """The probability of each pair by the tree, and its nodes; NaN where they reach the limit."""
    probability, nodes = np.empty(len(many.pairs)), np.empty(len(many.pairs), np.int64)
    for n in range(len(many.pairs)):
        probability[n], nodes[n] = possible_worlds(asked_of(many, n), limit, sure)
    return probability, nodes


@compiled
def sase_of_pairs(many: ManyAsked, delta: int, limit: int) -> tuple[F64, I64]:
    """The same with delta timestamps for each lost event."""
    probability, nodes = np.empty(len(many.pairs)), np.empty(len(many.pairs), np.int64)
    for n in range(len(many.pairs)):
        probability[n], nodes[n] = sase(asked_of(many, n), delta, limit)
    return probability, nodes


@compiled
def baselines_of_pairs(many: ManyAsked, static: bool) -> F64:
    """1 or 0 for each pair, by BaselineStatic or by BaselineIgnore."""
    found = np.empty(len(many.pairs))
    for n in range(len(many.pairs)):
        asked = asked_of(many, n)
        found[n] = baseline_static(asked) if static else baseline_ignore(asked)
    return found


@compiled
def nodes_of_pairs(many: ManyAsked, sure: bool) -> F64:
    """How many nodes the tree of each pair has, without making them."""
    nodes = np.empty(len(many.pairs))
    for n in range(len(many.pairs)):
        nodes[n] = count_nodes(asked_of(many, n), sure)
    return nodes
