"""Answers as a table for the terminal; in a notebook it shows itself too."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anabranch.show.text import as_ascii, can_draw, cell, probability_text, safe, short

BAR_WIDTH = 10
EIGHTHS = " ▏▎▍▌▋▊▉█"
PROBABILITY = "probability"


def answers_table(
    answers: pa.Table, *, title: str = "", limit: int = 20, total: int | None = None, ascii_only: bool = False
) -> Table:
    """Lay answers out, the probability with a bar.

    Parameters
    ----------
    answers : pa.Table
        Rows of any query. `lower` and `upper` are shown where they differ from the probability.
    title : str
        Stands above, such as the name of the query.
    limit : int
        How many rows are shown; the rest are counted.
    total : int, optional
        How many answers there are, where `answers` holds only the first of them.
    ascii_only : bool
        For terminals without block characters.
    """
    shown = answers.slice(0, limit).select(_told_columns(answers))
    more = (answers.num_rows if total is None else total) - shown.num_rows
    caption = f"… and {more:,} more" if more > 0 else "no answers" if shown.num_rows == 0 else ""
    table = Table(
        title=Text(safe(short(title), ascii_only=ascii_only), style="bold") if title else None,
        caption=Text(as_ascii(caption) if ascii_only else caption) if caption else None,
        title_justify="left",
        caption_justify="left",
        box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD,
    )
    for field in shown.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(
            _heading(field, ascii_only),
            justify="right" if number and field.name != PROBABILITY else "left",
            overflow="fold",
            # Where the width is short, long names give way before numbers and times do.
            no_wrap=number or pa.types.is_timestamp(field.type),
        )
    for row in range(shown.num_rows):
        table.add_row(*(_cell(shown[name][row], name, ascii_only) for name in shown.column_names))
    return table


def print_answers(
    answers: pa.Table,
    console: Console | None = None,
    *,
    title: str = "",
    limit: int = 20,
    total: int | None = None,
) -> None:
    """Print `answers_table` as the console can show it: no colour where it has none, ASCII where it must be."""
    console = console or Console()
    ascii_only = not can_draw(console.encoding)
    console.print(answers_table(answers, title=title, limit=limit, total=total, ascii_only=ascii_only))


def bar(share: float, width: int = BAR_WIDTH, *, ascii_only: bool = False) -> str:
    """A horizontal bar; any share above 0 leaves a trace, and only 1 fills it.

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
    """A share in whole parts, never rounded to none or all of them."""
    rounded = round(share * of)
    return min(max(rounded, 1), of - 1) if 0 < share < 1 else rounded


def _told_columns(answers: pa.Table) -> list[str]:
    """The columns worth their width: bounds that equal the probability are not, nor the corners of a polygon."""
    names: list[str] = answers.column_names
    if "valid_from" in names:
        names = [name for name in names if name not in ("boundary", "sample")]
    if not {PROBABILITY, "lower", "upper"} <= set(names):
        return names
    differ = [pc.any(pc.not_equal(answers[bound], answers[PROBABILITY])).as_py() for bound in ("lower", "upper")]
    return [name for name in names if any(differ) or name not in ("lower", "upper")]


def _heading(field: pa.Field, ascii_only: bool) -> Text:
    zone = field.type.tz if pa.types.is_timestamp(field.type) else None
    name = short(field.name)
    return Text(safe(f"{name} ({zone})" if zone else name, ascii_only=ascii_only))


def _cell(scalar: pa.Scalar, name: str, ascii_only: bool) -> Text:
    """A cell as `Text`: Rich reads markup in strings, never in these."""
    value = scalar.as_py() if name == PROBABILITY else None
    if not isinstance(value, float) or not math.isfinite(value):
        return Text(cell(scalar, ascii_only=ascii_only))
    return Text.assemble(f"{probability_text(value):>6} ", (bar(value, ascii_only=ascii_only), "cyan"))
