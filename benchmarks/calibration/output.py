"""The table and the charts of the calibration benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.calibration.collecting import TASKS, Row, collect
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, grid_svg, save_chart
from benchmarks.harness import Options, Record

MIN_ANSWERS = 20
"""Bins with fewer answers are not drawn: the share of true ones would mean little."""

COLOURS = (BASELINE, FIRST, SECOND, "#5b8c5a", "#b08a3c", "#2b3a67", "#d48ab0")
"""The first method of a task is the one that the others are to improve."""

NAME_WIDTH = 30
"""Characters of a line above a panel."""


def measure(options: Options) -> Iterator[Record]:
    """Print the table of all tasks, with one round per seed, and draw a chart per task unless the run is quick.

    There are no records: the table is complete, and docs/quality.md has it.
    """
    seeds = range(1 if options.quick else options.rounds)
    rows = {task: collect(task, seeds) for task in TASKS}
    everything = [row for task_rows in rows.values() for row in task_rows]
    Console(width=240, markup=False, highlight=False).print(table_of(everything))
    for task, task_rows in rows.items():
        if task_rows and not options.quick:
            draw(task, task_rows)
    yield from ()


def table_of(rows: Sequence[Row]) -> Table:
    """The table of docs/quality.md: means over the seeds."""
    names = ("data", "task", "method")
    table = Table(box=box.MARKDOWN)
    for heading in (*names, "answers", "true", "Brier", "constant", "ECE ± standard error", "resolution"):
        table.add_column(heading, justify="left" if heading in names else "right")
    for row in rows:
        error = f"{row.mean('calibration_error'):.3f} ± {row.mean('standard_error'):.3f}"
        counts = (f"{row.mean('count'):,.0f}", f"{row.mean('share'):.3f}")
        brier = (f"{row.mean(figure):.4f}" for figure in ("brier", "constant"))
        table.add_row(row.data, row.task, row.method, *counts, *brier, error, f"{row.mean('resolution'):.4f}")
    return table


def draw(task: str, rows: Sequence[Row]) -> None:
    """Draw the reliability of every method of a task: a panel per data set and question."""
    colours = dict(zip(dict.fromkeys(row.method for row in rows), COLOURS, strict=False))
    panels: dict[str, list[Curve]] = {}
    for row in rows:
        diagonal = Curve(PALE, [(0.0, 0.0), (1.0, 1.0)], dashed=True)
        points = [(bin.predicted, bin.observed) for bin in row.bins if bin.answers >= MIN_ANSWERS]
        # The lines are not broken before a per cent sign.
        question = fill(row.task.replace(" %", "%"), NAME_WIDTH).replace("%", " %")
        curves = panels.setdefault(f"{row.data}\n{question}", [diagonal])
        curves.append(Curve(colours[row.method], points))
    axis = Axis(0.0, 1.0, ticks=(0.0, 0.5, 1.0), name="probability")
    legend = [(colour, method) for method, colour in colours.items()]
    kinds = {
        "inference": "Inference",
        "independent": "Events with probabilities",
        "locations": "Locations with an error",
    }
    kind = kinds.get(task, task.upper())
    title = f"{kind}: share of true answers by probability"
    save_chart(f"calibration-{task}", grid_svg(title, panels, axis, legend))
