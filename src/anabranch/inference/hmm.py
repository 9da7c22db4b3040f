"""Hidden Markov models as arrays, and the checks of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.errors import DataError
from anabranch.inference.kernel import SMALLEST

#: The sum of a distribution may differ from 1 by this much.
SUM_TOLERANCE = 1e-6

#: The largest number of stages of a location.
MOST_STAGES = 50


class Sensing(Enum):
    """How keys are sensed: each reader sees or misses a key, or a step has one reading. The value names the file."""

    DETECTION = "detection"
    EMISSION = "emission"


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse table: entry i is p[i], at row rows[i] and column columns[i]."""

    rows: I32
    columns: I32
    p: F64

    @classmethod
    def of_dense(cls, table: F64) -> Entries:
        """The entries of a dense table that are not 0."""
        rows, columns = np.nonzero(table)
        return cls(rows.astype(np.int32), columns.astype(np.int32), table[rows, columns])


@dataclass(frozen=True, slots=True)
class Gaussians:
    """What readings measure besides the reader, such as the signal strength: normal, given the reader and the location.

    Attributes
    ----------
    quantities : tuple of str
        The names of the Q measured quantities.
    mean, deviation : (Q, E) array
        For each quantity and each entry of the readers' table of the model.
    """

    quantities: tuple[str, ...]
    mean: F64
    deviation: F64


@dataclass(frozen=True, slots=True)
class Hmm:
    """A hidden Markov model with N locations and R readers; tables have only their positive entries.

    Attributes
    ----------
    locations, readers : tuple of str
        Their names, by code.
    initial : (N,) array
        P[x_0 = x].
    starts, targets, p : arrays
        The transitions: from x to targets[starts[x]:starts[x + 1]], ascending, with probabilities p.
    sensing : Sensing
        The meaning of the readers' table.
    reader_starts, reader_locations, reader_p : arrays
        The same for readers: r sees reader_locations[reader_starts[r]:reader_starts[r + 1]]. `reader_p` is the
        probability that r sees a key there in one step (DETECTION), or that the reading of the step is r (EMISSION).
    silence : (N,) array or None
        EMISSION with an empty reader: the probability of a step without readings. None if a step without readings is
        no evidence.
    stages : (N,) array or None
        The number of stages of a stay at each location (see `states.py`). None if all are 1.
    exponent : float
        The power of the likelihood of the readings of a step: above 0, at most 1.
    exponent_so_far : float or None
        The same for the methods that use the readings so far; None if it is equal.
    gaussians : Gaussians or None
        The distributions of measured quantities.
    """

    locations: tuple[str, ...]
    readers: tuple[str, ...]
    initial: F64
    starts: I64
    targets: I32
    p: F64
    sensing: Sensing
    reader_starts: I64
    reader_locations: I32
    reader_p: F64
    silence: F64 | None = None
    stages: I32 | None = None
    exponent: float = 1.0
    exponent_so_far: float | None = None
    gaussians: Gaussians | None = None


# ------------------------------------------------------------ from tables to a model


def make_hmm(
    locations: Sequence[str],
    readers: Sequence[str],
    initial: F64,
    transition: Entries,
    sensing: Sensing,
    sensors: Entries,
    silence: F64 | None = None,
    folder: Path | None = None,
) -> Hmm:
    """Check the tables of a model, and make the model.

    Parameters
    ----------
    initial : (N,) array
    transition : Entries
        Rows are previous locations, columns are next locations.
    sensors : Entries
        Rows are readers, columns are locations.
    silence : (N,) array, optional
        With EMISSION: the probabilities of the empty reader.
    folder : Path, optional
        The folder of the tables, for messages.

    Raises
    ------
    DataError
        If a table is wrong; the message is one line with the table and the entry.

    Examples
    --------
    >>> one = np.array([0, 1], np.int32)
    >>> hmm = make_hmm(
    ...     ["hall", "office"], ["antenna"], np.array([0.5, 0.5]),
    ...     Entries(one, one, np.ones(2)), Sensing.DETECTION, Entries(one[:1], one[:1], np.array([0.6])),
    ... )
    >>> hmm.targets.tolist(), hmm.reader_p.tolist()
    ([0, 1], [0.6])
    """
    n = len(locations)
    named = {table: f"{folder / table}.csv" if folder else table for table in ("initial", "transition", sensing.value)}
    if n == 0:
        raise DataError(f"{named['transition']}: the model has no locations; add a transition for each")
    every = np.arange(n, dtype=np.int32)
    _check(named["initial"], [locations], Entries(every, every, initial))
    _check(named["transition"], [locations, locations], transition)
    _check(named[sensing.value], [readers, locations], sensors)
    silent = np.zeros(n) if silence is None else silence
    _check(named[sensing.value], [locations], Entries(every, every, silent))
    _check_total(named["initial"], "p", float(initial.sum()))
    _check_exits(named["transition"], locations, transition)
    _check_totals(named["transition"], "p from location", locations, transition.rows, transition.p)
    if sensing is Sensing.EMISSION:
        columns, p = np.concatenate([sensors.columns, every]), np.concatenate([sensors.p, silent])
        _check_totals(named[sensing.value], "p at location", locations, columns, p)
    starts, targets, p = by_row(transition, n)
    p /= np.repeat(np.add.reduceat(p, starts[:-1]), np.diff(starts))
    return Hmm(
        tuple(locations), tuple(readers), initial / initial.sum(), starts, targets, p, sensing,
        *by_row(sensors, len(readers)), silence,
    )  # fmt: skip


def _check(table: str, names: Sequence[Sequence[str]], entries: Entries) -> None:
    """Check that every p is a probability that the kernels can represent, and that no entry is repeated."""

    def entry(i: int) -> str:
        codes = (entries.rows[i], entries.columns[i])
        return ", ".join(repr(axis_names[code]) for axis_names, code in zip(names, codes, strict=False))

    invalid = np.flatnonzero(~((entries.p >= 0) & (entries.p <= 1)))
    if invalid.size:
        raise DataError(f"{table}: p of {entry(invalid[0])} is {entries.p[invalid[0]]}; it must be between 0 and 1")
    tiny = np.flatnonzero((entries.p > 0) & (entries.p < SMALLEST))
    if tiny.size:
        raise DataError(f"{table}: p of {entry(tiny[0])} is {entries.p[tiny[0]]}; write 0, or {SMALLEST} or more")
    order = np.lexsort((entries.columns, entries.rows))
    repeated = (np.diff(entries.rows[order]) == 0) & (np.diff(entries.columns[order]) == 0)
    if repeated.any():
        raise DataError(f"{table}: there are two rows for {entry(order[1:][repeated][0])}; keep one of them")


def _check_total(table: str, subject: str, total: float) -> None:
    if abs(total - 1) > SUM_TOLERANCE:
        raise DataError(f"{table}: {subject} sums to {total:.9g}; it must sum to 1")


def _check_totals(table: str, subject: str, locations: Sequence[str], location: I32, p: F64) -> None:
    """Check that the p of each location sum to 1."""
    totals = np.bincount(location, weights=p, minlength=len(locations))
    worst = int(np.argmax(abs(totals - 1)))
    _check_total(table, f"{subject} {locations[worst]!r}", float(totals[worst]))


def _check_exits(table: str, locations: Sequence[str], transition: Entries) -> None:
    """Check that every location has a transition."""
    without = np.setdiff1d(np.arange(len(locations)), transition.rows)
    if without.size:
        name = locations[without[0]]
        raise DataError(f"{table}: there is no transition from location {name!r}; add one, for example to itself")


def by_row(entries: Entries, n: int) -> tuple[I64, I32, F64]:
    """The positive entries, row by row: the start of each row, the columns (ascending), and p."""
    order = np.lexsort((entries.columns, entries.rows))
    order = order[entries.p[order] > 0]
    starts = np.concatenate([[0], np.cumsum(np.bincount(entries.rows[order], minlength=n))]).astype(np.int64)
    return starts, entries.columns[order].astype(np.int32), entries.p[order].astype(np.float64)
