"""Small CSV files that people edit: columns by name, in any order; an error is one line with its location."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from anabranch.errors import DataError


def read_rows(path: Path, columns: Sequence[set[str]]) -> list[tuple[int, list[str]]]:
    """The rows of a file: the line number and the text of each column. A column may have one of several names.

    Raises
    ------
    DataError
        One line with the location and the reason.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = [name.strip().lower() for name in next(lines, [])]
            at = [_column(path, header, names) for names in columns]
            rows = [(lines.line_num, _texts(path, lines.line_num, line, at)) for line in lines if line]
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not rows:
        raise DataError(f"{path}: there are no rows")
    return rows


def number_of(path: Path, line: int, name: str, text: str) -> float:
    """The number in a column of a row."""
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{path}:{line}: {name} is {text!r}, not a number") from None


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a file that `read_rows` can read."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _column(path: Path, header: list[str], names: set[str]) -> int:
    """The index of the column that has one of the names."""
    indexes = [index for index, name in enumerate(header) if name in names]
    if len(indexes) != 1:
        wanted = " or ".join(sorted(names))
        raise DataError(f"{path}: one column {wanted} is needed; the columns are: {', '.join(header) or 'none'}")
    return indexes[0]


def _texts(path: Path, number: int, line: list[str], at: list[int]) -> list[str]:
    if len(line) <= max(at):
        raise DataError(f"{path}:{number}: the row has {len(line)} columns, fewer than the header")
    return [line[index] for index in at]
