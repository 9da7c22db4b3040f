"""The answers of all algorithms to the same pairs, and the share of pairs that they decide correctly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Options
from benchmarks.relate.algorithms import (
    EARLY_STOP,
    SASE,
    Algorithm,
    Result,
    all_algorithms,
    anabranch,
    check_same,
    is_tree,
    node_counts,
)
from benchmarks.relate.workloads import Workload

LIMIT = 1_000_000
"""The maximum number of nodes of a pair's tree when its answer is used."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of each algorithm to all pairs of all rounds, NaN if there is none, and the truth.

    Attributes
    ----------
    difference : the largest difference between the early-stop tree and Anabranch
    """

    truth: np.ndarray
    by_algorithm: Mapping[str, np.ndarray]
    difference: float

    def accuracy(self, name: str, threshold: float = 0.5, among: str | None = None) -> float:
        """Return the share of pairs that an algorithm decides correctly; `among` limits it to those of another one."""
        probability, used = self.by_algorithm[name], ~np.isnan(self.by_algorithm[among or name])
        decided = (probability > 0) & (probability >= threshold)
        return float(np.mean(decided[used] == self.truth[used]))


def answer_all(rounds: Sequence[Workload], options: Options) -> Answers:
    """Run all algorithms; the early-stop tree only in the first round, SASE+ only if nearly all trees are small."""
    limit = 1_000 if options.quick else LIMIT
    algorithms = all_algorithms(limit)
    answers: dict[str, list[np.ndarray]] = {name: [] for name in algorithms}
    difference = 0.0
    for number, workload in enumerate(rounds):
        for name, algorithm in algorithms.items():
            if not is_tree(name):
                probability = algorithm(workload).probability
            elif name == EARLY_STOP and number == 0:
                probability = _of_small_trees(workload, name, algorithm, limit, least=0.0)
                difference = check_same(Result(probability), anabranch(workload))
            elif name in SASE.values() and workload.at_least > 1:
                probability = _of_small_trees(workload, name, algorithm, limit, least=0.95)
            else:
                probability = np.full(len(workload.pairs), np.nan)
            answers[name].append(probability)
    truth = np.concatenate([workload.truth for workload in rounds])
    return Answers(truth, {name: np.concatenate(parts) for name, parts in answers.items()}, difference)


def _of_small_trees(workload: Workload, name: str, algorithm: Algorithm, limit: int, least: float) -> np.ndarray:
    """Return the answers to the pairs whose trees are below the limit, if their share is at least `least`."""
    probability = np.full(len(workload.pairs), np.nan)
    small = node_counts(workload, name) < limit
    if small.mean() >= least and small.any():
        probability[small] = algorithm(workload.subset(small)).probability
    return probability
