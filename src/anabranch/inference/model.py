"""Hidden Markov models as they are written down: a folder of CSV files, and the same as arrays.

    initial.csv      location, p                    where a key may be at its first step
    transition.csv   prev_location, location, p     where it goes on to in one step
    detection.csv    reader, location, p            the chance that this reader sees a key there, each on its own
    emission.csv     location, reader, p            or, instead: the one reader that sees a key there

Locations and readers are numbered in the order in which the files name them first. Whatever is wrong with a folder is
a `DataError` of one line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError
from anabranch.inference.kernel import BITS, SMALLEST, Chain, Sensors

SUM_TOLERANCE = 1e-6
"""How far the probabilities of a distribution may be from 1 in total."""


class Sensing(Enum):
    """How locations are read: readers that each see or miss a key, or one reading a step; also the file's name."""

    DETECTION = "detection"
    EMISSION = "emission"


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse table: p of (rows, columns)."""

    rows: I32
    columns: I32
    p: F64


@dataclass(frozen=True, slots=True)
class Hmm:
    """A hidden Markov model with N locations and R readers; tables hold their positive entries alone.

    Attributes
    ----------
    locations, readers : tuple of str
        Their names, by code.
    initial : (N,) array
        P[x_0 = x].
    starts, targets, p : arrays
        The transitions: from x to targets[starts[x]:starts[x + 1]], ascending, with probabilities p.
    sensing : Sensing
        What the readers' table means.
    reader_starts, reader_locations, reader_p : arrays
        The same for readers: r sees reader_locations[reader_starts[r]:reader_starts[r + 1]]. `reader_p` is the chance
        that r sees a key there in one step (DETECTION), or that the step's reading is r (EMISSION).
    silence : (N,) array or None
        EMISSION with an empty reader: the chance that nothing is read at a step. None where a step without readings
        says nothing.
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
    """Check the tables of a model and put them together.

    Parameters
    ----------
    initial : (N,) array
    transition : Entries
        Rows are the locations before, columns those after.
    sensors : Entries
        Rows are readers, columns locations.
    silence : (N,) array, optional
        With EMISSION: what an empty reader has.
    folder : Path, optional
        Where the tables come from, for messages.

    Raises
    ------
    DataError
        One line that says which table is wrong, and where.

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
        raise DataError(f"{named['transition']}: there are no locations")
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
    starts, targets, p = _by_row(transition, n)
    p /= np.repeat(np.add.reduceat(p, starts[:-1]), np.diff(starts))
    return Hmm(
        tuple(locations), tuple(readers), initial / initial.sum(), starts, targets, p, sensing,
        *_by_row(sensors, len(readers)), silence,
    )  # fmt: skip


def _check(where: str, names: Sequence[Sequence[str]], entries: Entries) -> None:
    """Every p is a probability that the kernels can hold, and every entry is given once."""

    def entry(i: int) -> str:
        codes = (entries.rows[i], entries.columns[i])
        return ", ".join(repr(of[code]) for of, code in zip(names, codes, strict=False))

    wrong = np.flatnonzero(~((entries.p >= 0) & (entries.p <= 1)))
    if wrong.size:
        raise DataError(f"{where}: p of {entry(wrong[0])} is {entries.p[wrong[0]]}, it must be between 0 and 1")
    tiny = np.flatnonzero((entries.p > 0) & (entries.p < SMALLEST))
    if tiny.size:
        raise DataError(f"{where}: p of {entry(tiny[0])} is {entries.p[tiny[0]]}, below {SMALLEST}; write 0")
    order = np.lexsort((entries.columns, entries.rows))
    same = (np.diff(entries.rows[order]) == 0) & (np.diff(entries.columns[order]) == 0)
    if same.any():
        raise DataError(f"{where}: {entry(order[1:][same][0])} is given twice")


def _check_total(where: str, what: str, total: float) -> None:
    if abs(total - 1) > SUM_TOLERANCE:
        raise DataError(f"{where}: {what} sums to {total:.9g}, it must be 1")


def _check_totals(where: str, what: str, locations: Sequence[str], of: I32, p: F64) -> None:
    """The p of each location sum to 1."""
    totals = np.bincount(of, weights=p, minlength=len(locations))
    worst = int(np.argmax(abs(totals - 1)))
    _check_total(where, f"{what} {locations[worst]!r}", float(totals[worst]))


def _check_exits(where: str, locations: Sequence[str], transition: Entries) -> None:
    """Every location has a transition."""
    stuck = np.setdiff1d(np.arange(len(locations)), transition.rows)
    if stuck.size:
        raise DataError(f"{where}: there is no transition from location {locations[stuck[0]]!r}, not even to itself")


def _by_row(entries: Entries, n: int) -> tuple[I64, I32, F64]:
    """The positive entries, row by row: where each row starts, the columns (ascending), and p."""
    order = np.lexsort((entries.columns, entries.rows))
    order = order[entries.p[order] > 0]
    starts = np.concatenate([[0], np.cumsum(np.bincount(entries.rows[order], minlength=n))]).astype(np.int64)
    return starts, entries.columns[order].astype(np.int32), entries.p[order].astype(np.float64)


# ------------------------------------------------------------ what the kernels take


def chain_of(hmm: Hmm) -> Chain:
    """How a key moves, for the kernels."""
    n = len(hmm.locations)
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(hmm.starts))
    back = _by_row(Entries(hmm.targets, rows, hmm.p), n)
    # Sums within a row alone: what many rows add up to would eat the digits of the last ones.
    cumulative = np.concatenate([np.cumsum(row) for row in np.split(hmm.p, hmm.starts[1:-1])])
    return Chain(hmm.initial, hmm.starts, hmm.targets, hmm.p, cumulative, *back)


def sensors_of(hmm: Hmm) -> Sensors:
    """The likelihoods of readings, for the kernels.

    With DETECTION the likelihood of the set S in x is the product of d(r, x) over r in S times that of 1 - d(r, x) over
    the others: one number for each x, the product over all readers, times d / (1 - d) for those in S. Readers with
    d(r, x) = 1, which cannot miss, stay out of this product and are counted instead.
    """
    n = len(hmm.locations)
    nothing = np.zeros(n, np.int32)
    if hmm.sensing is Sensing.EMISSION:
        quiet = np.ones(n) if hmm.silence is None else np.ascontiguousarray(hmm.silence)
        sure = np.zeros(len(hmm.reader_p), np.bool_)
        tables = hmm.reader_starts, hmm.reader_locations, hmm.reader_p
        return Sensors(*tables, sure, nothing, np.ones(n), nothing, quiet, nothing)
    sure = hmm.reader_p == 1
    missed = np.where(sure, 1.0, 1.0 - hmm.reader_p)
    log2_base = np.bincount(hmm.reader_locations, weights=np.log2(missed), minlength=n)
    # The sum of logarithms only tells the level: the product itself keeps more digits.
    levels = np.round(log2_base / BITS).astype(np.int32)
    base = _products(hmm.reader_locations, missed, levels)
    n_sure = np.bincount(hmm.reader_locations[sure], minlength=n).astype(np.int32)
    factors = np.where(sure, 1.0, hmm.reader_p / missed)
    quiet = np.where(n_sure == 0, base, 0.0)
    return Sensors(
        hmm.reader_starts, hmm.reader_locations, factors, sure, n_sure, base, levels, quiet, levels,
    )  # fmt: skip


def _products(of: I32, factors: F64, levels: I32) -> F64:
    """The product of the factors of each location, divided by 2^(BITS * level)."""
    mantissas, exponents = np.frexp(factors)
    products, powers = np.ones(len(levels)), -BITS * levels.astype(np.int64)
    for x, mantissa, exponent in zip(of, mantissas, exponents, strict=True):
        product, power = math.frexp(products[x] * mantissa)
        products[x] = product
        powers[x] += power + exponent
    return np.ldexp(products, powers)


# ------------------------------------------------------------ files


def read_hmm(folder: Path, value: str = "location", reader: str = "reader") -> Hmm:
    """Read a model from its folder.

    Parameters
    ----------
    folder : Path
    value, reader : str
        What the columns may be called besides `location` and `reader`; `prev_<value>` in `transition.csv`.

    Raises
    ------
    DataError
        One line that says which file is wrong, and how.
    """
    location = {"location", value.lower()}
    previous = {f"prev_{name}" for name in location}
    seen_by = {"reader", reader.lower()}
    sensing = _sensing(folder)
    first = _read(folder / "initial.csv", [location])
    moves = _read(folder / "transition.csv", [previous, location])
    seen = _read(folder / f"{sensing.value}.csv", [seen_by, location])
    places = _codes([x for x, _ in first], [x for x, _, _ in moves], [y for _, y, _ in moves])
    _check_known(folder, sensing, places, first, moves, seen)
    silent = [(places[x], p) for r, x, p in seen if not r]
    heard = [(r, x, p) for r, x, p in seen if r]
    if silent and sensing is Sensing.DETECTION:
        raise DataError(f"{folder / 'detection.csv'}: a row has no reader")
    readers = _codes([r for r, _, _ in heard])
    return make_hmm(
        list(places), list(readers),
        _vector(folder / "initial.csv", [(places[x], p) for x, p in first], list(places)),
        _entries([(places[x], places[y], p) for x, y, p in moves]),
        sensing, _entries([(readers[r], places[x], p) for r, x, p in heard]),
        _vector(folder / "emission.csv", silent, list(places)) if silent else None,
        folder,
    )  # fmt: skip


def write_hmm(hmm: Hmm, folder: Path, value: str = "location", reader: str = "reader") -> None:
    """Write a model such that `read_hmm` gives it again, with the same codes."""
    folder.mkdir(parents=True, exist_ok=True)
    places, readers = hmm.locations, hmm.readers
    sources = np.repeat(np.arange(len(places)), np.diff(hmm.starts))
    seen_by = np.repeat(np.arange(len(readers)), np.diff(hmm.reader_starts))
    moves = [(places[x], places[y], p) for x, y, p in zip(sources, hmm.targets, hmm.p.tolist(), strict=True)]
    table = zip(seen_by, hmm.reader_locations, hmm.reader_p.tolist(), strict=True)
    seen = [(readers[r], places[x], p) for r, x, p in table]
    write_rows(folder / "initial.csv", (value, "p"), zip(places, hmm.initial.tolist(), strict=True))
    write_rows(folder / "transition.csv", (f"prev_{value}", value, "p"), moves)
    if hmm.sensing is Sensing.DETECTION:
        write_rows(folder / "detection.csv", (reader, value, "p"), seen)
    else:
        silent = [] if hmm.silence is None else zip(places, [""] * len(places), hmm.silence.tolist(), strict=True)
        write_rows(folder / "emission.csv", (value, reader, "p"), [*((x, r, p) for r, x, p in seen), *silent])


def _sensing(folder: Path) -> Sensing:
    """Which of the two files of readers there is."""
    found = [kind for kind in Sensing if (folder / f"{kind.value}.csv").is_file()]
    if len(found) != 1:
        what = "both detection.csv and emission.csv" if found else "neither detection.csv nor emission.csv"
        raise DataError(f"{folder}: there is {what}; a model has one of them")
    return found[0]


def _read(path: Path, columns: list[set[str]]) -> list[tuple[Any, ...]]:
    """The rows of a file: the text of each column, by any of its names, and p."""
    rows = read_rows(path, [*columns, {"p"}])
    return [(*texts, number_of(path, line, "p", p)) for line, (*texts, p) in rows]


def _codes(*names: Iterable[str]) -> dict[str, int]:
    """Names by code, in the order in which they come first."""
    distinct = dict.fromkeys(name for some in names for name in some)
    return {name: code for code, name in enumerate(distinct)}


def _check_known(
    folder: Path,
    sensing: Sensing,
    places: dict[str, int],
    first: list[tuple[Any, ...]],
    moves: list[tuple[Any, ...]],
    seen: list[tuple[Any, ...]],
) -> None:
    """No location is empty, and readers see no location that the other files do not know."""
    if "" in places:
        table = "initial" if any(x == "" for x, _ in first) else "transition"
        raise DataError(f"{folder / table}.csv: a row has no location")
    for _, x, _ in seen:
        if x not in places:
            raise DataError(
                f"{folder / sensing.value}.csv: location {x!r} is in neither initial.csv nor transition.csv"
            )


def _entries(rows: list[tuple[int, int, float]]) -> Entries:
    row, column, p = zip(*rows, strict=True) if rows else ((), (), ())
    return Entries(np.array(row, np.int32), np.array(column, np.int32), np.array(p, np.float64))


def _vector(path: Path, rows: list[tuple[int, float]], names: Sequence[str]) -> F64:
    """The p of each location, 0 where there is none."""
    vector = np.zeros(len(names))
    given: set[int] = set()
    for code, p in rows:
        if code in given:
            raise DataError(f"{path}: {names[code]!r} is given twice")
        given.add(code)
        vector[code] = p
    return vector
