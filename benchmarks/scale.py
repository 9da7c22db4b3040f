"""`python -m benchmarks.scale [RESULTS]`: what more cores would do, from a cost model of each kind.

The model has the costs of a run, of a row and of a key (`whole.cost`), the cost of a row in the kernel
(`whole.stages`), and the bytes that a row has in the shuffle. It assumes that a run cannot be divided, that everything
else is divided evenly among the cores, and that a key is processed by one core. It knows nothing of a slow network or
disk.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cost import KEY, ROW, RUN, SIZES
from benchmarks.harness import format_value
from benchmarks.results import RESULTS, Results
from benchmarks.stages import DECODE, KERNEL

CORES = (2, 10, 100, 1_000)

ROWS, KEYS = 1_000_000_000, 1_000_000
"""Of the archive for which times are predicted."""

HOT = 0.01
"""The share of the rows that the hottest key has, where there is one."""


@dataclass(frozen=True, slots=True)
class Model:
    """The costs of a kind in processor seconds: of a run, of a row, of a key, and of a row after the shuffle.

    Attributes
    ----------
    error : the largest relative error of the fit
    shuffled : bytes of a row in the shuffle
    """

    kind: str
    run: float
    row: float
    key: float
    kernel: float
    error: float
    shuffled: float

    def seconds(self, rows: float, keys: float, cores: int, hottest: float = 0.0) -> float:
        """Return the time of a run; `hottest` is the share of the rows that one key has."""
        divided = (rows * self.row + keys * self.key) / cores
        return self.run + max(divided, hottest * rows * self.kernel)

    def useful_cores(self, hottest: float) -> float:
        """Return the number of cores above which the hottest key is the limit."""
        return self.row / (hottest * self.kernel)


def models(results: Results) -> list[Model]:
    """Return the model of each kind that was measured."""
    found = []
    for kind in SIZES:
        cost, stages = results.of("whole.cost", f"{kind}:"), results.of("whole.stages", f"{kind}:")
        if not cost or not stages:
            continue
        (workload,) = stages.by_workload()
        rows = float(workload.rsplit("; ", 1)[1].split()[0].replace(",", ""))
        values = [cost.value(name, "CPU s") or 0.0 for name in (RUN, ROW, KEY)]
        kernel = sum(stages.value(stage) or 0.0 for stage in (DECODE, KERNEL)) / rows
        error = (cost.value("largest error of the fit") or 0.0) / 100
        shuffled = 1e6 * (stages.value("Spark: shuffled", "MB") or 0.0) / rows
        found.append(Model(kind, values[0], values[1] / 1e6, values[2] / 1e6, kernel, error, shuffled))
    return found


def cost_table(results: Results) -> list[list[str]]:
    """Return the costs of each kind, with a header."""
    header = [
        "kind",
        "a run, s",
        "a million rows, s",
        "a million keys, s",
        "error of the fit",
        "shuffled bytes per row",
    ]
    return [
        header,
        *(
            [
                model.kind,
                *(format_value(value) for value in (model.run, 1e6 * model.row, 1e6 * model.key)),
                f"{model.error:.0%}",
                format_value(model.shuffled),
            ]
            for model in models(results)
        ),
    ]


def scale_table(results: Results) -> list[list[str]]:
    """Return the predicted seconds by the number of cores, and with a hot key, with a header."""
    names = [f"{cores:,} cores" for cores in CORES]
    header = ["kind", *names, f"{CORES[-1]:,} cores, hot key", "cores that a hot key allows"]
    return [
        header,
        *(
            [
                model.kind,
                *(format_value(model.seconds(ROWS, KEYS, cores)) for cores in CORES),
                format_value(model.seconds(ROWS, KEYS, CORES[-1], HOT)),
                format_value(model.useful_cores(HOT)),
            ]
            for model in models(results)
        ),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("results", type=Path, nargs="*", default=[RESULTS], help="files or folders of measurements")
    results = Results.read(parser.parse_args(arguments).results)
    if not models(results):
        parser.error(
            "whole.cost and whole.stages are not measured: python -m benchmarks whole.cost whole.stages --save"
        )
    for rows in (cost_table(results), scale_table(results)):
        print_columns(rows)
    return 0


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    print()


if __name__ == "__main__":
    sys.exit(main())
