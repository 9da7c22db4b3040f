"""Collects the results of the tasks and scores them: one row per data set, task and method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import mean

import numpy as np

from anabranch.arrays import F64, Bools
from anabranch.evaluation import Bin, Scores, bins_of, scores
from benchmarks.calibration.results import Result

#: The modules of this package that have a function `results(seeds)`.
TASKS = ("relate", "sequence", "inference", "independent", "locations")


@dataclass(frozen=True, slots=True)
class Row:
    """The scores of one method for one task: of each seed, and the bins of all seeds together."""

    data: str
    task: str
    method: str
    of_seeds: tuple[Scores, ...]
    bins: tuple[Bin, ...]

    def mean(self, figure: str) -> float:
        """The mean of a figure over the seeds."""
        return mean(getattr(score, figure) for score in self.of_seeds)


def collect(task: str, seeds: Sequence[int]) -> list[Row]:
    """The rows of a task. If some of its data are missing, a line says so, and the rest is measured."""
    results: list[Result] = []
    try:
        results.extend(import_module(f"benchmarks.calibration.{task}").results(seeds))
    except FileNotFoundError as error:
        missing = Path(error.filename) if error.filename else error
        print(f"calibration: {task} stopped, because {missing} is missing; the real data belong into ../shared/data")
    return rows_of(results)


def rows_of(results: Iterable[Result]) -> list[Row]:
    """Group results by data set, task and method, in the order in which they came."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.data, result.task, result.method), []).append(result)
    return [Row(*names, _by_seed(group), tuple(bins_of(*_joined(group)))) for names, group in groups.items()]


def _by_seed(group: Sequence[Result]) -> tuple[Scores, ...]:
    """The scores of each seed; the held-out parts of a seed are taken together."""
    seeds = sorted({result.seed for result in group})
    return tuple(scores(*_joined([result for result in group if result.seed == seed])) for seed in seeds)


def _joined(results: Sequence[Result]) -> tuple[F64, Bools]:
    return (
        np.concatenate([result.probabilities for result in results]),
        np.concatenate([result.true for result in results]),
    )
