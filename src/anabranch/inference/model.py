"""Hidden Markov models as folders of CSV files.

    initial.csv      location, p                    the distribution of the location at the first step
    transition.csv   prev_location, location, p     the distribution of the next location
    detection.csv    reader, location, p            the probability that a reader sees a key there; readers are
                                                    independent of each other
    emission.csv     location, reader, p            or instead: the distribution of the one reading of a step

and, if the model has them:

    stages.csv       location, stages               how many stages a stay at the location has; 1 if it is not listed
    gaussian.csv     quantity, location, reader,    the normal distribution of what a reading measures; an empty reader
                     mean, deviation                stands for all readers that have no row for this location
    tempering.csv    exponent                       the likelihood of the readings of a step is raised to this power

Locations and readers are numbered in the order of their first appearance in the files. An error in a folder is a
`DataError` with a message of one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anabranch.arrays import F64
from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError
from anabranch.inference.extras import with_extras, write_extras
from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm


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
    hmm = make_hmm(
        list(codes), list(readers),
        _vector(folder / "initial.csv", [(codes[x], p) for x, p in initial], list(codes)),
        _entries([(codes[x], codes[y], p) for x, y, p in moves]),
        sensing, _entries([(readers[r], codes[x], p) for r, x, p in seen]),
        _vector(folder / "emission.csv", silent, list(codes)) if silent else None,
        folder,
    )  # fmt: skip
    return with_extras(hmm, folder, location, {"reader", reader.lower()})


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
    write_extras(hmm, folder, value, reader)


def _sensing(folder: Path) -> Sensing:
    """The kind of sensing, by the file of readers that the folder has."""
    present = [kind for kind in Sensing if (folder / f"{kind.value}.csv").is_file()]
    if not present:
        if not folder.is_dir():
            raise DataError(f"{folder}: there is no such folder")
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
