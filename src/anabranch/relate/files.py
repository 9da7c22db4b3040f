"""The file that `anabranch fit durations` writes and `DURATION FITTED` and `GAP FITTED` read.

    durations.csv   clause, class, law, k, mean, log_likelihood, recorded, censored

A row is the distribution of one class of segments, or of gaps. The class is empty in the row for all classes together.
Means are in the unit of the time column, seconds for timestamps. Errors in a file are reported as a `DataError` of one
line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.binding.segment_laws import MOST_PHASES
from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError

if TYPE_CHECKING:
    from anabranch.relate.fit import SegmentFit

FILE = "durations.csv"


def write_laws(fits: Iterable[SegmentFit], folder: Path) -> None:
    """Write the fitted distributions, for `read_laws`."""
    folder.mkdir(parents=True, exist_ok=True)
    header = ("clause", "class", "law", "k", "mean", "log_likelihood", "recorded", "censored")
    rows = [
        (fit.clause, fit.name, fit.law, fit.k, fit.mean, fit.log_likelihood, len(fit.recorded), fit.n_censored)
        for fit in fits
    ]
    write_rows(folder / FILE, header, rows)


def read_laws(path: Path, clause: str, per_unit: float, by_class: bool) -> tuple[tuple[str, int, float], ...]:
    """The distributions of a clause: the name, the phases and the mean of each class.

    Parameters
    ----------
    path : Path
    clause : str
        DURATION or GAP.
    per_unit : float
        Means are multiplied by it.
    by_class : bool
        Whether all classes are needed; otherwise only the row without a class is.
    """
    rows = [
        (line, texts)
        for line, (of_clause, *texts) in read_rows(path, [{"clause"}, {"class"}, {"k"}, {"mean"}])
        if of_clause.strip().upper() == clause and (by_class or not texts[0])
    ]
    if not rows:
        raise DataError(f"{path}: there is no row of {clause}{'' if by_class else ' without a class'}")
    laws: dict[str, tuple[str, int, float]] = {}
    for line, (name, k_text, mean_text) in rows:
        if name in laws:
            raise DataError(f"{path}:{line}: {clause} has the class {name!r} already; keep one")
        k, mean = number_of(path, line, "k", k_text), number_of(path, line, "mean", mean_text)
        if k % 1 or not 1 <= k <= MOST_PHASES:
            raise DataError(f"{path}:{line}: k is {k_text}; it must be a whole number from 1 to {MOST_PHASES}")
        if not 0 < mean < math.inf:
            raise DataError(f"{path}:{line}: mean is {mean_text}; it must be above 0")
        laws[name] = (name, int(k), mean * per_unit)
    return tuple(laws.values())
