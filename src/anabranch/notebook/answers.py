"""Answers as they are shown in a notebook."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anabranch import markup
from anabranch.charts import answers_html
from anabranch.cli.run import first_answers
from anabranch.errors import AnabranchError
from anabranch.plotting import plot

if TYPE_CHECKING:
    import pyarrow as pa

#: The rows of a table, and the answers that are collected for the chart.
ROWS_SHOWN, MOST_COLLECTED = 20, 1_000


class ShownAnswers:
    """Answers of a query, which a notebook displays as a table and, with the extra `plot`, a chart.

    Attributes
    ----------
    name : str
        The name of the query.
    table : pa.Table
        The first answers, by time; at most MOST_COLLECTED.
    total : int
        The number of all answers.
    remarks : sequence of str
        What to know about the inputs.
    """

    def __init__(self, name: str, table: pa.Table, total: int, remarks: Sequence[str] = ()) -> None:
        self.name, self.table, self.total, self.remarks = name, table, total, remarks

    def __repr__(self) -> str:
        return f"<{self.name}: {_count(self.total)}>"

    def _repr_html_(self) -> str:
        shown = min(self.table.num_rows, ROWS_SHOWN)
        note = _count(self.total) if shown == self.total else f"the first {shown} of {_count(self.total)}"
        parts = [answers_html(self.table, limit=ROWS_SHOWN), self._picture()] if self.total else []
        return markup.output(self.name, *parts, *map(markup.remark, self.remarks), note=note)

    def _picture(self) -> markup.Markup:
        """The chart of the answers, in the theme of the reader's system; empty where it cannot be drawn."""
        try:
            chart = plot(self.table)
        except AnabranchError:  # the extra `plot` is not installed, or the answers have no time
            return markup.Markup()
        light, dark = (_data_address(chart.to_svg(theme)) for theme in ("light", "dark"))
        return markup.Markup(
            f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img src="{light}" alt="Chart of the answers"></picture>'
        )


def frame_html(frame: Any) -> str | None:
    """A DataFrame of Spark as HTML: answers as a table, for which their query is run, and others as Spark does it."""
    if "probability" not in frame.columns:
        return frame._repr_html_()
    first = first_answers(frame, ROWS_SHOWN + 1, is_ordered=False).toArrow()
    note = f"the first {ROWS_SHOWN} answers" if first.num_rows > ROWS_SHOWN else _count(first.num_rows)
    return markup.output("Answers", answers_html(first, limit=ROWS_SHOWN), note=note)


def _count(number: int) -> str:
    return "1 answer" if number == 1 else f"{number:,} answers" if number else "no answers"


def _data_address(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
