"""Why the rows of an input were quarantined: the column, a value, and what to write in the workbook or the file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anabranch.files.text import NOT_UTF8
from anabranch.language.types import Type
from anabranch.text import safe, short
from anabranch.transport.checks import UNREADABLE

#: Formats of times that files often have, for Python and for Spark.
_TIME_FORMATS = (
    ("%d.%m.%Y", "dd.MM.yyyy"),
    ("%d/%m/%Y", "dd/MM/yyyy"),
    ("%m/%d/%Y", "MM/dd/yyyy"),
    ("%d-%m-%Y", "dd-MM-yyyy"),
    ("%Y/%m/%d", "yyyy/MM/dd"),
    ("%Y%m%d", "yyyyMMdd"),
)
_CLOCK_FORMATS = (
    ("", ""),
    (" %H:%M", " HH:mm"),
    (" %H:%M:%S", " HH:mm:ss"),
    (" %H:%M:%S.%f", " HH:mm:ss.SSS"),
    ("T%H:%M:%S", "'T'HH:mm:ss"),
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d[\d. ]*,\d+")
_INTEGER = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How an input is written: the type of each column in the order of the file, and the options of its reader.

    `name` is the format, such as `csv`; empty for a table or a DataFrame.
    """

    name: str
    types: Mapping[str, Type]
    options: Mapping[str, str]


def explain_rejected(reason: str, row: str, source: TextFormat) -> str:
    """Why a row was quarantined, and the likely fix, in one line.

    Parameters
    ----------
    reason, row : of the quarantine; the row is JSON
    """
    values: dict[str, Any] = json.loads(row)
    if reason == NOT_UTF8:
        return f"{reason}; write OPTIONS (encoding = 'ISO-8859-1') after the path if the file has this encoding"
    if reason != UNREADABLE:
        column = next((name for name in values if reason.startswith(f"{name} ")), None)
        sample = "" if column is None or values[column] is None else f", such as {value_text(values[column])}"
        fix = "; divide percentages by 100" if column is not None and _is_percentage(reason, values[column]) else ""
        return f"{reason}{sample}{fix}"
    text = str(values["text"])
    return _of_json(text, source) if source.name == "json" else _of_csv(text, source)


def _of_csv(text: str, source: TextFormat) -> str:
    separator = source.options.get("sep", source.options.get("delimiter", ",")).replace("\\t", "\t")
    cells = next(csv.reader([text], delimiter=separator[:1] or ","), [])
    if len(cells) != len(source.types):
        fix = "write OPTIONS (sep = ...) if another character separates the cells"
        if quotes := _fix_of_quotes(text, source):
            fix = quotes
        elif text.count('"') % 2:
            fix = "write OPTIONS (multiLine = true) if a quoted cell has line breaks"
        elif len(cells) > len(source.types) and any(map(_DECIMAL_COMMA.fullmatch, _joined(cells))):
            fix = "write decimal points, or put numbers with a decimal comma in quotes"
        return f"the line {value_text(text)} has {len(cells)} cells, but the header has {len(source.types)}; {fix}"
    for (name, kind), cell in zip(source.types.items(), cells, strict=True):
        if not _fits(cell, kind):
            return f"column {name} has {value_text(cell)}, which is no {kind.value}; {_fix(cell, kind)}"
    fix = _fix_of_quotes(text, source)
    return f"the line {value_text(text)} cannot be read{fix and '; ' + fix}"


def _fix_of_quotes(text: str, source: TextFormat) -> str:
    """What to write for a line that has quotes in the notation that the source does not expect."""
    expected = source.options.get("escape", '"')
    if '\\"' in text and expected == '"':
        return r"write OPTIONS (escape = '\') after the path, because a quote in a text is \""
    if '""' in text and expected != '"':
        return "leave out the option escape, because quotes in texts are doubled"
    return ""


def _joined(cells: Sequence[str]) -> list[str]:
    """Each two neighbouring cells, as one cell with a comma."""
    return [f"{left},{right}" for left, right in zip(cells, cells[1:], strict=False)]


def _of_json(text: str, source: TextFormat) -> str:
    try:
        values = json.loads(text)
    except ValueError:
        fix = "write OPTIONS (multiLine = true) if a document has several lines"
        return f"the line {value_text(text)} is no JSON; {fix}"
    if isinstance(values, dict):
        spelled = {name.lower(): value for name, value in values.items()}
        for name, kind in source.types.items():
            value = spelled.get(name.lower())
            if value is not None and not _fits(value if isinstance(value, str) else json.dumps(value), kind):
                return f"column {name} has {value_text(value)}, which is no {kind.value}; {_fix(str(value), kind)}"
    return f"the line {value_text(text)} cannot be read"


def _fits(cell: str, kind: Type) -> bool:
    """Whether Spark reads a cell as this type; an empty cell is NULL."""
    if not cell:
        return True
    if kind is Type.INTEGER:
        return _INTEGER.fullmatch(cell) is not None
    if kind is Type.BOOLEAN:
        return cell.lower() in ("true", "false")
    try:
        if kind is Type.DOUBLE:
            float(cell)
        elif kind in (Type.TIMESTAMP, Type.DATE):
            datetime.fromisoformat(cell.strip())
    except ValueError:
        return False
    return True


def _fix(cell: str, kind: Type) -> str:
    if kind in (Type.TIMESTAMP, Type.DATE):
        if _INTEGER.fullmatch(cell) and len(cell) > 8:
            return "declare it as INTEGER if it counts seconds or milliseconds"
        option = "timestampFormat" if kind is Type.TIMESTAMP else "dateFormat"
        return f"write OPTIONS ({option} = {_quoted_format(_format_of(cell))}) after the path"
    if kind in (Type.INTEGER, Type.DOUBLE) and _DECIMAL_COMMA.fullmatch(cell):
        return "write a decimal point instead of the comma"
    if kind is Type.INTEGER and _fits(cell, Type.DOUBLE):
        return "declare it as DOUBLE"
    return "declare it as STRING, or correct the file"


def _format_of(cell: str) -> str | None:
    """The format of a time in the notation of Spark, if it is a usual one."""
    for day, spark_day in _TIME_FORMATS:
        for clock, spark_clock in _CLOCK_FORMATS:
            try:
                datetime.strptime(cell.strip(), day + clock)  # noqa: DTZ007 - only the format is of interest
            except ValueError:
                continue
            return spark_day + spark_clock
    return None


def _quoted_format(spark_format: str | None) -> str:
    return "..." if spark_format is None else "'" + spark_format.replace("'", "''") + "'"


def _is_percentage(reason: str, value: object) -> bool:
    return reason.endswith("is outside [0, 1]") and isinstance(value, int | float) and 1 < value <= 100


def value_text(value: object) -> str:
    """A value in a message: strings in quotes, and long ones shortened."""
    return "'" + short(safe(value)) + "'" if isinstance(value, str) else short(safe(json.dumps(value, default=str)))
