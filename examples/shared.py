"""Functions that all examples share: the option --data, and lines of reports."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from anabranch.evaluation import Bin, Quality

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

WIDTH = 32
"""Characters for the name at the beginning of a line."""


def options(description: str, folder: str) -> argparse.ArgumentParser:
    """Return a parser with the option --data; `arguments.data` is the folder with this name in it."""

    def find_data(parent: str) -> Path:
        if not Path(parent, folder).is_dir():
            raise argparse.ArgumentTypeError(f"there is no {folder} in {parent}")
        return Path(parent, folder)

    parser = argparse.ArgumentParser(description=description)
    # The default is text, so that argparse checks it like a given value.
    parser.add_argument("--data", type=find_data, default=str(DATA), help=f"the folder that contains {folder}")
    return parser


def quality_header(width: int = WIDTH) -> str:
    """Return the column names of lines by `quality_line`."""
    return f"  {'':<{width}}{'answers':>9}{'precision':>11}{'recall':>9}{'F1':>8}"


def quality_line(name: str, quality: Quality, width: int = WIDTH) -> str:
    """Return a line with the precision, recall and F1 of answers."""
    figures = f"{quality.answers:>9,}{quality.precision:>11.3f}{quality.recall:>9.3f}{quality.f1:>8.3f}"
    return f"  {name:<{width}}{figures}"


def calibration_lines(bins: Iterable[Bin]) -> Iterator[str]:
    """Yield the mean probability and the share of true answers of each bin."""
    yield f"  {'probability':<18}{'answers':>9}{'mean':>8}{'true':>8}"
    for bin in bins:
        yield f"  {bin.low:.1f} to {bin.high:<11.1f}{bin.answers:>9,}{bin.predicted:>8.3f}{bin.observed:>8.3f}"
