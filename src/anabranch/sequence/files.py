"""What `anabranch fit delays` writes and SEQUENCE reads: a folder of CSV files, with a row for each component.

    laws.csv     component, law, first, second, miss, log_likelihood, delays    for DELAY x FITTED 'laws.csv'
    delays.csv   component, delay                                               for DELAY x EMPIRICAL 'delays.csv'
    misses.csv   component, p                                                   how often a reading is lost

Delays and parameters are in the unit of the time column, seconds for timestamps; parameters are in the order of the
language. Whatever is wrong with a file is a `DataError` of one line.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError
from anabranch.sequence.query import FROM_FILE, LAWS, BoundDelay, BoundSequence

if TYPE_CHECKING:
    from anabranch.sequence.fit import ComponentFit

#: The laws that a file can name, with their parameters.
_NAMED = {law: parameters for law, parameters in LAWS.items() if law not in FROM_FILE}


def with_files(query: BoundSequence, folder: str) -> BoundSequence:
    """The query with the laws of its delays read from their files, relative to the folder of its workbook."""
    components = (
        each if each.delay is None else replace(each, delay=read_delay(each.delay, each.name, folder))
        for each in query.components
    )
    return replace(query, components=tuple(components))


def read_delay(delay: BoundDelay, component: str, folder: str) -> BoundDelay:
    """The law of a component with its file read, where it is in one.

    Parameters
    ----------
    delay : BoundDelay
    component : str
        Its name, in any case.
    folder : str
        Of the workbook: what relative paths are relative to.

    Returns
    -------
    BoundDelay
        Of EMPIRICAL with the delays of the component for `atoms`, in order; of FITTED the law that the file names.

    Raises
    ------
    DataError
        One line that says which file is wrong, where, and how.
    """
    if delay.path is None:
        return delay
    path = Path(os.path.join(folder, delay.path))
    if delay.law == "EMPIRICAL":
        return replace(delay, atoms=_atoms(path, component))
    law, parameters = _fitted(path, component)
    return BoundDelay(law, parameters, span=delay.span)


def write_fits(fits: Sequence[ComponentFit], folder: Path) -> None:
    """Write what was learned of the components such that `read_delay` can read it."""
    folder.mkdir(parents=True, exist_ok=True)
    laws = [
        (each.label, best.law, *_padded(best.parameters), _known(each.miss), best.log_likelihood, len(each.delays))
        for each in fits
        for best in each.laws[:1]
    ]
    header = ("component", "law", "first", "second", "miss", "log_likelihood", "delays")
    write_rows(folder / "laws.csv", header, laws)
    delays = ((each.label, delay) for each in fits for delay in sorted(each.delays.tolist()))
    write_rows(folder / "delays.csv", ("component", "delay"), delays)
    misses = ((each.label, each.miss) for each in fits if each.miss is not None)
    write_rows(folder / "misses.csv", ("component", "p"), misses)


def _padded(parameters: tuple[float, ...]) -> tuple[float | str, ...]:
    return (*parameters, *[""] * (2 - len(parameters)))


def _known(number: float | None) -> float | str:
    return "" if number is None else number


def _atoms(path: Path, component: str) -> tuple[float, ...]:
    delays = []
    for line, (text,) in _rows_of(path, component, ["delay"]):
        delay = number_of(path, line, "delay", text)
        if not 0 <= delay < math.inf:
            raise DataError(f"{path}:{line}: delay is {text}; a delay is a number, 0 or more")
        delays.append(delay)
    return tuple(sorted(delays))


def _fitted(path: Path, component: str) -> tuple[str, tuple[float, ...]]:
    (line, (name, *texts)), *again = _rows_of(path, component, ["law", "first", "second"])
    if again:
        raise DataError(f"{path}:{again[0][0]}: component {component!r} has a law already; keep one of them")
    law = name.strip().upper()
    if law not in _NAMED:
        raise DataError(f"{path}:{line}: there is no law {name!r}; the laws are {', '.join(_NAMED)}")
    parameters = []
    for (what, _, (holds, wanted)), column, text in zip(_NAMED[law], ("first", "second"), texts, strict=False):
        value = number_of(path, line, column, text)
        if not math.isfinite(value) or not holds(value):
            raise DataError(f"{path}:{line}: {column} is {text}; the {what} of {law} must be {wanted}")
        parameters.append(value)
    if law == "UNIFORM" and parameters[0] >= parameters[1]:
        raise DataError(f"{path}:{line}: UNIFORM needs first below second; put the smaller first")
    return law, tuple(parameters)


def _rows_of(path: Path, component: str, columns: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The rows of a component: their lines, and the text of these columns."""
    rows = read_rows(path, [{"component"}, *({name} for name in columns)])
    own = [(line, texts) for line, (name, *texts) in rows if name.strip().lower() == component.lower()]
    if not own:
        known = _listed(name.strip() for _, (name, *_) in rows)
        raise DataError(f"{path}: there is no row of component {component!r}; the components are: {known}")
    return own


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
