"""An evaluation as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.evaluation.evaluate import Evaluation, WorstBin
from anabranch.evaluation.quality import Quality
from anabranch.text import as_ascii, can_draw, probability_text, short


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print the figures of an evaluation, precision and recall by threshold, and the worst bins with examples."""
    console = console or Console()
    ascii_only = not can_draw(console.encoding)
    text = str(evaluation).replace("±", "+-") if ascii_only else str(evaluation)
    console.print(Text(as_ascii(text) if ascii_only else text))
    console.print(threshold_table(evaluation, ascii_only=ascii_only))
    console.print(worst_table(evaluation, ascii_only=ascii_only))


def threshold_table(evaluation: Evaluation, *, ascii_only: bool = False) -> Table:
    """Return precision, recall and F1 of episodes by threshold, where they change; the best threshold is marked."""
    headings = ("threshold", "episodes", "right", "found", "precision", "recall", "F1")
    table = _table(headings, ascii_only, numeric=headings)
    for quality in evaluation.distinct_qualities():
        table.add_row(*_quality_cells(quality), style="bold" if quality is evaluation.best else None)
    return table


def _quality_cells(quality: Quality) -> list[str]:
    shares = (quality.precision, quality.recall, quality.f1)
    counts = (f"{quality.answers:,}", f"{quality.right:,}", f"{quality.found:,}")
    return [f"{quality.threshold:g}", *counts, *("" if math.isnan(share) else f"{share:.3f}" for share in shares)]


def worst_table(evaluation: Evaluation, *, ascii_only: bool = False) -> Table:
    """Return the bins with the largest part of the calibration error, and answers that they are wrong about."""
    headings = ("worst bins", "answers", "mean", "true", "examples")
    table = _table(headings, ascii_only, numeric=headings[1:4])
    for worst in evaluation.worst:
        examples = "\n".join(_example(example) for example in worst.examples)
        table.add_row(*_bin_cells(worst), Text(as_ascii(examples) if ascii_only else examples))
    return table


def _bin_cells(worst: WorstBin) -> list[str]:
    bin = worst.bin
    return [f"{bin.low:g} to {bin.high:g}", f"{bin.answers:,}", f"{bin.predicted:.3f}", f"{bin.observed:.3f}"]


def _example(example: dict[str, Any]) -> str:
    """An answer on one line: its probability, its keys and times, and the distance of the nearest event."""
    figures = ("probability", "true", "nearest_event")
    keys = ", ".join(f"{name} {short(text, 30)}" for name, text in example.items() if name not in figures)
    line = f"{probability_text(example['probability'])} {'true' if example['true'] else 'false'}  {keys}"
    if "nearest_event" not in example:
        return line
    nearest = example["nearest_event"]
    return f"{line}; " + ("no event" if nearest is None else f"event {nearest:.6g} away")


def _table(headings: Sequence[str], ascii_only: bool, numeric: Iterable[str]) -> Table:
    table = Table(box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD)
    right = set(numeric)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading in right)
    return table
