"""Answers as a table for the terminal and for notebooks."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.text import LONGEST, as_ascii, can_draw, cell, probability_text, safe, short

BAR_WIDTH = 10
EIGHTHS = " ▏▎▍▌▋▊▉█"
PROBABILITY = "probability"

#: The maximum length of a value of a record, which has lines of its own.
_LONGEST_OF_RECORD = 500
#: A table is measured as if the terminal were this wide.
_WIDEST = 10_000


def answers_table(
    answers: pa.Table, *, title: str = "", limit: int = 20, total: int | None = None, ascii_only: bool = False
) -> Table:
    """Return answers as a table, with a bar for the probability.

    Parameters
    ----------
    answers : pa.Table
        The answers of any query. `lower` and `upper` are shown if they differ from the probability.
    title : str
        The title of the table, such as the name of the query.
    limit : int
        The maximum number of rows; the rest is counted.
    total : int, optional
        The number of all answers, if `answers` has only the first of them.
    ascii_only : bool
        For terminals without block characters.
    """
    shown = answers.slice(0, limit).select(useful_columns(answers))
    n_answers = answers.num_rows if total is None else total
    table = _empty_table(title, shown.num_rows, n_answers, ascii_only)
    table.box = box.ASCII2 if ascii_only else box.SIMPLE_HEAD
    for field in shown.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(
            _heading(field, ascii_only),
            justify="right" if number and field.name != PROBABILITY else "left",
            overflow="fold",
            # In a narrow terminal, long names are folded before numbers and times are.
            no_wrap=number or pa.types.is_timestamp(field.type),
        )
    for row in range(shown.num_rows):
        table.add_row(*(_cell(shown[name][row], name, ascii_only) for name in shown.column_names))
    return table


def answer_records(
    answers: pa.Table, *, title: str = "", limit: int = 20, total: int | None = None, ascii_only: bool = False
) -> Table:
    """Return answers as records, with a line for each value; the parameters are those of `answers_table`."""
    shown = answers.slice(0, limit).select(useful_columns(answers))
    n_answers = answers.num_rows if total is None else total
    table = _empty_table(title, shown.num_rows, n_answers, ascii_only)
    table.show_header = False
    for justify in ("right", "left", "left"):
        table.add_column(justify=justify, overflow="fold")
    for row in range(shown.num_rows):
        table.add_row()
        for number, field in enumerate(shown.schema):
            value = _cell(shown[field.name][row], field.name, ascii_only, _LONGEST_OF_RECORD)
            table.add_row("" if number else str(row + 1), _heading(field, ascii_only), value)
    table.add_row()
    return table


def print_answers(
    answers: pa.Table,
    console: Console | None = None,
    *,
    title: str = "",
    limit: int = 20,
    total: int | None = None,
) -> None:
    """Print answers with the characters and colours that the console has.

    Answers with events are printed as records where they are too wide for a table.
    """
    console = console or Console()
    ascii_only = not can_draw(console.encoding)
    table = answers_table(answers, title=title, limit=limit, total=total, ascii_only=ascii_only)
    has_events = any(pa.types.is_nested(field.type) for field in answers.schema)
    if has_events and console.measure(table, options=console.options.update(width=_WIDEST)).maximum > console.width:
        table = answer_records(answers, title=title, limit=limit, total=total, ascii_only=ascii_only)
    console.print(table)


def bar(share: float, width: int = BAR_WIDTH, *, ascii_only: bool = False) -> str:
    """Return a horizontal bar; every share above 0 is visible, and only 1 fills the bar.

    Examples
    --------
    >>> [bar(share, 4) for share in (0.0, 0.01, 0.5, 1.0)]
    ['    ', '▏   ', '██  ', '████']
    """
    share = min(max(share, 0.0), 1.0)
    if ascii_only:
        return ("#" * _parts(share, width)).ljust(width)
    full, rest = divmod(_parts(share, 8 * width), 8)
    return ("█" * full + EIGHTHS[rest].strip()).ljust(width)


def _parts(share: float, of: int) -> int:
    """Return a share in whole parts; a share between 0 and 1 is never rounded to none or all of them."""
    rounded = round(share * of)
    return min(max(rounded, 1), of - 1) if 0 < share < 1 else rounded


def useful_columns(answers: pa.Table) -> list[str]:
    """Return the columns to show: not bounds that equal the probability, nor the corners of a polygon.

    Without a THRESHOLD, the certain range of a MONITOR is always NULL.
    """
    names: list[str] = answers.column_names
    if "valid_from" in names:
        unknown = {name for name in names if answers[name].null_count == answers.num_rows}
        hidden = {"boundary", "sample"} | (unknown & {"certain_from", "certain_to"})
        names = [name for name in names if name not in hidden]
    if not {PROBABILITY, "lower", "upper"} <= set(names):
        return names
    differ = [pc.any(pc.not_equal(answers[bound], answers[PROBABILITY])).as_py() for bound in ("lower", "upper")]
    return [name for name in names if any(differ) or name not in ("lower", "upper")]


def _empty_table(title: str, n_shown: int, n_answers: int, ascii_only: bool) -> Table:
    """Return a table without columns; below it is the number of answers that are not shown."""
    hidden = n_answers - n_shown
    caption = f"… and {hidden:,} more" if hidden > 0 else "no answers" if n_shown == 0 else ""
    return Table(
        title=Text(safe(short(title), ascii_only=ascii_only), style="bold") if title else None,
        caption=Text(as_ascii(caption) if ascii_only else caption) if caption else None,
        title_justify="left",
        caption_justify="left",
        box=None,
    )


def _heading(field: pa.Field, ascii_only: bool) -> Text:
    zone = field.type.tz if pa.types.is_timestamp(field.type) else None
    name = short(field.name)
    return Text(safe(f"{name} ({zone})" if zone else name, ascii_only=ascii_only))


def _cell(scalar: pa.Scalar, name: str, ascii_only: bool, longest: int = LONGEST) -> Text:
    """Return a cell as `Text`: Rich interprets markup in strings, but not in `Text`."""
    value = scalar.as_py() if name == PROBABILITY else None
    if not isinstance(value, float) or not math.isfinite(value):
        return Text(cell(scalar, longest, ascii_only=ascii_only))
    return Text.assemble(f"{probability_text(value):>6} ", (bar(value, ascii_only=ascii_only), "cyan"))
