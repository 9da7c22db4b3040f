"""The joint probability of a chain of values (`a - b`, `b - c`, `c - d`): value by value, and by nested integrals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from tests.monitor.arrays import no_shapes

from anabranch.arrays import F64
from anabranch.compiled import compiled
from anabranch.monitor.kernel.probabilities import Constraints, joint_probability
from anabranch.monitor.kernel.trees import group_probability
from benchmarks.harness import Options, Record, processor_seconds, recorder

#: Names, and whether the errors are normal; and how many instants the slower method takes in about a second.
CHAINS = {(3, False): 10_000, (4, False): 300, (3, True): 300}


def probabilities_of_chains(options: Options) -> Iterator[Record]:
    """The time per probability at an instant, for three and four names in a chain."""
    random = np.random.default_rng(options.seed)
    for (names, is_normal), count in CHAINS.items():
        constraints = _chain(names, 0.4 if is_normal else 0.0)
        centers = random.uniform(-1.0, 1.0, (count // (100 if options.quick else 1) + 1, names))
        methods: dict[str, Callable[..., F64]] = {"value by value": by_tree, "nested integrals": by_nested_integrals}
        results = {name: method(centers, constraints, np.ones(names)) for name, method in methods.items()}
        check_same(results["value by value"], results["nested integrals"])
        runs = {name: partial(method, centers, constraints, np.ones(names)) for name, method in methods.items()}
        seconds = processor_seconds(runs, options.rounds)
        workload = f"{names} names in a chain, {'normal' if is_normal else 'uniform'} errors"
        record = recorder("monitor.chains", workload, options)
        ratio = seconds["nested integrals"] / seconds["value by value"]
        scale = 1e6 / len(centers)
        yield record("nested integrals", seconds["nested integrals"] * scale, "us per instant")
        yield record("value by value", seconds["value by value"] * scale, "us per instant", "nested integrals", ratio)


def check_same(one: F64, other: F64) -> None:
    """Raise AssertionError unless two methods give the same probabilities."""
    if np.abs(one - other).max() > 1e-8:
        raise AssertionError(f"the methods differ by {np.abs(one - other).max():g}")


def _chain(names: int, spread: float) -> Constraints:
    """Each value is within 1 of the next."""
    forms = np.array([(name, name + 1) for name in range(names - 1)], np.int64)
    return Constraints(
        forms, np.arange(names, dtype=np.int64), np.tile([-1.0, 1.0], (names - 1, 1)),
        np.ones((1, names - 1), np.bool_), np.ones((names, 1)), np.full((names, 1), spread),
        np.zeros(names, np.int64), no_shapes(),
    )  # fmt: skip


@compiled
def by_tree(centers: F64, constraints: Any, errors: F64) -> F64:
    """The probability at each row of predictions, integrated value by value."""
    result = np.empty(len(centers))
    for k in range(len(centers)):
        result[k] = group_probability(0, centers[k], constraints, errors)
    return result


@compiled
def by_nested_integrals(centers: F64, constraints: Any, errors: F64) -> F64:
    """The same by nested integrals."""
    result = np.empty(len(centers))
    for k in range(len(centers)):
        result[k] = joint_probability(0, centers[k], constraints, errors)
    return result
