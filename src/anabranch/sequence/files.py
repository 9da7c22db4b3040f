"""The CSV files that `anabranch fit delays` writes and SEQUENCE reads.

Rows name their component, or a component WITH or WITHOUT others: `z WITHOUT y1 y2`.

    laws.csv     component, law, first, second, miss, log_likelihood, delays    for DELAY x FITTED 'laws.csv'
    delays.csv   component, delay                                               for DELAY x EMPIRICAL 'delays.csv'
    misses.csv   component, p                                                   the probability that a reading is lost
    estimates.csv  component, clause, p, standard_error                         MISS and OCCURS with standard errors

Delays and parameters are in the unit of the time column, seconds for timestamps; parameters are in the order of the
language. Errors in a file are reported as a `DataError` of one line.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.columns.csv_files import number_of, read_rows, write_rows
from anabranch.errors import DataError
from anabranch.sequence.query import FROM_FILE, LAWS, BoundComponent, BoundDelay, BoundSequence

if TYPE_CHECKING:
    from anabranch.sequence.fit import ComponentFit

#: The distributions that a file can name, with their parameters.
_NAMED = {law: parameters for law, parameters in LAWS.items() if law not in FROM_FILE}


def with_files(query: BoundSequence, folder: str) -> BoundSequence:
    """Read the delay distributions of a query from their files, relative to the folder of its workbook."""
    return replace(query, components=tuple(_with_files(component, folder) for component in query.components))


def _with_files(component: BoundComponent, folder: str) -> BoundComponent:
    delay = component.delay
    given = (
        replace(law, delay=read_delay(law.delay, given_name(component.name, law.happened, law.components), folder))
        for law in component.given
    )
    return replace(
        component,
        delay=None if delay is None else read_delay(delay, component.name, folder),
        given=tuple(given),
    )


def given_name(component: str, happened: bool, others: Iterable[str]) -> str:
    """The name in a file of the delay of a component WITH or WITHOUT others: `z WITHOUT y1 y2`."""
    return f"{component} {'WITH' if happened else 'WITHOUT'} {' '.join(sorted(others))}"


def read_delay(delay: BoundDelay, component: str, folder: str) -> BoundDelay:
    """The delay distribution of a component, read from its file if it has one.

    Parameters
    ----------
    delay : BoundDelay
    component : str
        The name of the component; upper and lower case are equal.
    folder : str
        The folder of the workbook: relative paths are relative to it.

    Returns
    -------
    BoundDelay
        For EMPIRICAL, with the delays of the component as `atoms`, ascending; for FITTED, the distribution in the file.

    Raises
    ------
    DataError
        With the file, the line and the problem.
    """
    if delay.path is None:
        return delay
    path = Path(os.path.join(folder, delay.path))
    if delay.law == "EMPIRICAL":
        return replace(delay, atoms=_atoms(path, component))
    law, parameters = _fitted(path, component)
    return BoundDelay(law, parameters, span=delay.span)


def write_fits(fits: Sequence[ComponentFit], folder: Path) -> None:
    """Write the fits of components, for `read_delay`."""
    folder.mkdir(parents=True, exist_ok=True)
    laws = [
        (fit.label, best.law, *_padded(best.parameters), _known(fit.miss), best.log_likelihood, len(fit.delays))
        for fit in fits
        for best in fit.distributions[:1]
    ]
    delays = [(fit.label, delay) for fit in fits for delay in sorted(fit.delays.tolist())]
    for fit in fits:
        if fit.occurrence is None:
            continue
        for happened, lengths, best in fit.occurrence.laws():
            name = given_name(fit.occurrence.end, happened, [fit.label])
            delays += [(name, length) for length in sorted(lengths.tolist())]
            laws.append((name, best.law, *_padded(best.parameters), "", best.log_likelihood, len(lengths)))
    header = ("component", "law", "first", "second", "miss", "log_likelihood", "delays")
    write_rows(folder / "laws.csv", header, laws)
    write_rows(folder / "delays.csv", ("component", "delay"), delays)
    write_rows(
        folder / "misses.csv", ("component", "p"), ((fit.label, fit.miss) for fit in fits if fit.miss is not None)
    )
    write_rows(folder / "estimates.csv", ("component", "clause", "p", "standard_error"), _estimates(fits))


def _estimates(fits: Sequence[ComponentFit]) -> Iterator[tuple[str, str, float, float]]:
    """The estimates that have a standard error; it is 0 for what was stated."""
    for fit in fits:
        if fit.miss is not None and fit.miss_error is not None:
            yield fit.label, "MISS", fit.miss, fit.miss_error
        if fit.occurrence is not None and fit.occurrence.occurs is not None and not fit.occurrence.always:
            yield fit.label, "OCCURS", fit.occurrence.occurs, fit.occurrence.occurs_error


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
    for (parameter, _, (is_allowed, allowed)), column, text in zip(
        _NAMED[law], ("first", "second"), texts, strict=False
    ):
        value = number_of(path, line, column, text)
        if not math.isfinite(value) or not is_allowed(value):
            raise DataError(f"{path}:{line}: {column} is {text}; the {parameter} of {law} must be {allowed}")
        parameters.append(value)
    if law == "UNIFORM" and parameters[0] >= parameters[1]:
        raise DataError(f"{path}:{line}: UNIFORM needs first below second; put the smaller first")
    return law, tuple(parameters)


def _rows_of(path: Path, component: str, columns: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The rows of a component: the line number, and the text of these columns."""
    rows = read_rows(path, [{"component"}, *({name} for name in columns)])
    component_rows = [(line, texts) for line, (name, *texts) in rows if name.strip().lower() == component.lower()]
    if not component_rows:
        known = _listed(name.strip() for _, (name, *_) in rows)
        raise DataError(f"{path}: there is no row of component {component!r}; the components are: {known}")
    return component_rows


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
