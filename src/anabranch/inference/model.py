"""Hidden Markov models as folders of CSV files, and as arrays.

    initial.csv      location, p                    the distribution of the location at the first step
    transition.csv   prev_location, location, p     the distribution of the next location
    detection.csv    reader, location, p            the probability that a reader sees a key there; readers are
                                                    independent of each other
    emission.csv     location, reader, p            or instead: the distribution of the one reading of a step

Locations and readers are numbered in the order of their first appearance in the files. An error in a folder is a
`DataError` with a message of one line.
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

#: The sum of a distribution may differ from 1 by this much.
SUM_TOLERANCE = 1e-6


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
    starts, targets, p = _by_row(transition, n)
    p /= np.repeat(np.add.reduceat(p, starts[:-1]), np.diff(starts))
    return Hmm(
        tuple(locations), tuple(readers), initial / initial.sum(), starts, targets, p, sensing,
        *_by_row(sensors, len(readers)), silence,
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


def _by_row(entries: Entries, n: int) -> tuple[I64, I32, F64]:
    """The positive entries, row by row: the start of each row, the columns (ascending), and p."""
    order = np.lexsort((entries.columns, entries.rows))
    order = order[entries.p[order] > 0]
    starts = np.concatenate([[0], np.cumsum(np.bincount(entries.rows[order], minlength=n))]).astype(np.int64)
    return starts, entries.columns[order].astype(np.int32), entries.p[order].astype(np.float64)


# ------------------------------------------------------------ arrays for the kernels


def chain_of(hmm: Hmm) -> Chain:
    """The initial distribution and the transitions, for the kernels."""
    n = len(hmm.locations)
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(hmm.starts))
    back = _by_row(Entries(hmm.targets, rows, hmm.p), n)
    # Sums within each row: a sum over many rows would lose the last digits of the later ones.
    cumulative = np.concatenate([np.cumsum(row) for row in np.split(hmm.p, hmm.starts[1:-1])])
    return Chain(hmm.initial, hmm.starts, hmm.targets, hmm.p, cumulative, *back)


def sensors_of(hmm: Hmm) -> Sensors:
    """The likelihoods of readings, for the kernels.

    With DETECTION the likelihood of the set S in x is the product of d(r, x) over r in S and of 1 - d(r, x) over the
    other readers. It is computed as one number per x, the product of 1 - d over all readers, times d / (1 - d) for each
    reader in S. Readers with d(r, x) = 1, which cannot miss, are not in this product; they are counted instead.
    """
    n = len(hmm.locations)
    zeros = np.zeros(n, np.int32)
    if hmm.sensing is Sensing.EMISSION:
        quiet = np.ones(n) if hmm.silence is None else np.ascontiguousarray(hmm.silence)
        sure = np.zeros(len(hmm.reader_p), np.bool_)
        tables = hmm.reader_starts, hmm.reader_locations, hmm.reader_p
        return Sensors(*tables, sure, zeros, np.ones(n), zeros, quiet, zeros)
    sure = hmm.reader_p == 1
    missed = np.where(sure, 1.0, 1.0 - hmm.reader_p)
    log2_base = np.bincount(hmm.reader_locations, weights=np.log2(missed), minlength=n)
    # The sum of logarithms determines only the level: the product itself keeps more digits.
    levels = np.round(log2_base / BITS).astype(np.int32)
    base = _products(hmm.reader_locations, missed, levels)
    n_sure = np.bincount(hmm.reader_locations[sure], minlength=n).astype(np.int32)
    factors = np.where(sure, 1.0, hmm.reader_p / missed)
    quiet = np.where(n_sure == 0, base, 0.0)
    return Sensors(
        hmm.reader_starts, hmm.reader_locations, factors, sure, n_sure, base, levels, quiet, levels,
    )  # fmt: skip


def _products(location: I32, factors: F64, levels: I32) -> F64:
    """The product of the factors of each location, divided by 2^(BITS * level)."""
    mantissas, exponents = np.frexp(factors)
    products, powers = np.ones(len(levels)), -BITS * levels.astype(np.int64)
    for x, mantissa, exponent in zip(location, mantissas, exponents, strict=True):
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
        Alternative names of the columns `location` and `reader`; also `prev_<value>` in `transition.csv`.

    Raises
    ------
    DataError
        If a file is wrong; the message is one line with the file and the reason.
    """
    location = {"location", value.lower()}
    previous = {f"prev_{name}" for name in location}
    sensing = _sensing(folder)
    initial = _read(folder / "initial.csv", [location])
    moves = _read(folder / "transition.csv", [previous, location])
    sensed = _read(folder / f"{sensing.value}.csv", [{"reader", reader.lower()}, location])
    codes = _codes([x for x, _ in initial], [x for x, _, _ in moves], [y for _, y, _ in moves])
    _check_locations(folder, sensing, codes, initial, sensed)
    silent = [(codes[x], p) for r, x, p in sensed if not r]
    seen = [(r, x, p) for r, x, p in sensed if r]
    if silent and sensing is Sensing.DETECTION:
        raise DataError(f"{folder / 'detection.csv'}: a row has no reader; name the reader, or remove the row")
    readers = _codes([r for r, _, _ in seen])
    return make_hmm(
        list(codes), list(readers),
        _vector(folder / "initial.csv", [(codes[x], p) for x, p in initial], list(codes)),
        _entries([(codes[x], codes[y], p) for x, y, p in moves]),
        sensing, _entries([(readers[r], codes[x], p) for r, x, p in seen]),
        _vector(folder / "emission.csv", silent, list(codes)) if silent else None,
        folder,
    )  # fmt: skip


def write_hmm(hmm: Hmm, folder: Path, value: str = "location", reader: str = "reader") -> None:
    """Write a model to a folder, so that `read_hmm` returns it with the same codes."""
    folder.mkdir(parents=True, exist_ok=True)
    locations, readers = hmm.locations, hmm.readers
    sources = np.repeat(np.arange(len(locations)), np.diff(hmm.starts))
    seen_by = np.repeat(np.arange(len(readers)), np.diff(hmm.reader_starts))
    moves = [(locations[x], locations[y], p) for x, y, p in zip(sources, hmm.targets, hmm.p.tolist(), strict=True)]
    table = zip(seen_by, hmm.reader_locations, hmm.reader_p.tolist(), strict=True)
    seen = [(readers[r], locations[x], p) for r, x, p in table]
    write_rows(folder / "initial.csv", (value, "p"), zip(locations, hmm.initial.tolist(), strict=True))
    write_rows(folder / "transition.csv", (f"prev_{value}", value, "p"), moves)
    if hmm.sensing is Sensing.DETECTION:
        write_rows(folder / "detection.csv", (reader, value, "p"), seen)
    else:
        silent = [] if hmm.silence is None else zip(locations, [""] * len(locations), hmm.silence.tolist(), strict=True)
        write_rows(folder / "emission.csv", (value, reader, "p"), [*((x, r, p) for r, x, p in seen), *silent])


def _sensing(folder: Path) -> Sensing:
    """The kind of sensing, by the file of readers that the folder has."""
    present = [kind for kind in Sensing if (folder / f"{kind.value}.csv").is_file()]
    if not present:
        raise DataError(f"{folder}: there is neither detection.csv nor emission.csv; add one of them")
    if len(present) > 1:
        raise DataError(f"{folder}: there are both detection.csv and emission.csv; keep one of them")
    return present[0]


def _read(path: Path, columns: list[set[str]]) -> list[tuple[Any, ...]]:
    """The rows of a file: the text of each column, by any of its names, and p."""
    rows = read_rows(path, [*columns, {"p"}])
    return [(*texts, number_of(path, line, "p", p)) for line, (*texts, p) in rows]


def _codes(*columns: Iterable[str]) -> dict[str, int]:
    """The code of each distinct name, in the order of first appearance."""
    distinct = dict.fromkeys(name for column in columns for name in column)
    return {name: code for code, name in enumerate(distinct)}


def _check_locations(
    folder: Path, sensing: Sensing, codes: dict[str, int], initial: list[tuple[Any, ...]], sensed: list[tuple[Any, ...]]
) -> None:
    """Check that no location is empty, and that the file of readers has no other locations than the other files."""
    if "" in codes:
        table = "initial" if any(x == "" for x, _ in initial) else "transition"
        raise DataError(f"{folder / table}.csv: a row has no location; name the location, or remove the row")
    for _, x, _ in sensed:
        if x not in codes:
            raise DataError(
                f"{folder / sensing.value}.csv: location {x!r} is in neither initial.csv nor transition.csv; "
                "add its transitions"
            )


def _entries(rows: list[tuple[int, int, float]]) -> Entries:
    row, column, p = zip(*rows, strict=True) if rows else ((), (), ())
    return Entries(np.array(row, np.int32), np.array(column, np.int32), np.array(p, np.float64))


def _vector(path: Path, rows: list[tuple[int, float]], names: Sequence[str]) -> F64:
    """The p of each location, 0 for locations without a row."""
    vector = np.zeros(len(names))
    codes: set[int] = set()
    for code, p in rows:
        if code in codes:
            raise DataError(f"{path}: there are two rows for {names[code]!r}; keep one of them")
        codes.add(code)
        vector[code] = p
    return vector
