"""Draws answers of any kind of query, or the result of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anabranch.errors import AnabranchError
from anabranch.evaluation import Evaluation
from anabranch.plotting.answers import KINDS, Answers, is_matrix, kind_of, table_of

if TYPE_CHECKING:
    from anabranch.plotting.chart import Chart

LIMITS = {"pattern": 5_000, "lanes": 40, "relate": 40, "matrix": 5_000, "monitor": 5_000, "constrain": 5_000}
"""The answers that a chart shows; fewer where each has a line of its own."""


def plot(
    answers: Any,
    *,
    kind: str | None = None,
    title: str = "",
    threshold: float | None = None,
    limit: int | None = None,
    data: Any = None,
    space: Sequence[str] | None = None,
    time: str | None = None,
    error: float | Mapping[str, float] | None = None,
    period: float | None = None,
) -> Chart:
    """Draw answers as an interactive chart.

    Parameters
    ----------
    answers : DataFrame, Arrow table, path or Evaluation
        Answers as a DataFrame of Spark, pandas or Polars, an Arrow table, a list of dicts, or the file or folder of
        answers (Parquet, CSV, JSON); or the result of `evaluate`.
    kind : str, optional
        'pattern', 'sequence', 'relate', 'monitor' or 'constrain'. By default it is recognised from the columns.
    title : str
        The title of the chart, such as the name of the query.
    threshold : float, optional
        Where the slider of the threshold begins: answers below it are hidden.
    limit : int, optional
        The maximum number of answers; those with the highest probabilities are kept, and the chart says so. The
        default is 40 where each answer has a line of its own, and 5,000 elsewhere.
    data : as `answers`, optional
        The predictions of a MONITOR, for tracks; the rows of the entities of a RELATE, for their intervals.
    space : pair of str, optional
        The columns of locations. By default `lon` and `lat`, `longitude` and `latitude`, or `x` and `y`.
    time : str, optional
        The column with the time of events. By default it is found by its values, or `t`.
    error : float or mapping, optional
        The error of predictions, of all values or by value. Columns such as `x_error` take precedence.
    period : float, optional
        How long a prediction is valid; in seconds for timestamps.

    Returns
    -------
    Chart
        Displays itself in a notebook; `save` writes a page, a picture or the specification.
    """
    require_altair()
    from anabranch.plotting.chart import Chart

    if isinstance(answers, Evaluation):
        return Chart(import_module("anabranch.plotting.evaluation").draw(answers, title), title or "Evaluation")
    table = table_of(answers)
    kind = kind_of(table) if kind is None else _checked(kind)
    if limit is not None and limit < 1:
        raise AnabranchError(f"limit is at least 1, not {limit}")
    if threshold is not None and not 0 <= threshold <= 1:
        raise AnabranchError(f"threshold is between 0 and 1, not {threshold}")
    rows = None if data is None else table_of(data)
    name = _module_of(kind, table.column_names)
    if name == "relate" and rows is None and limit is None and table.num_rows > LIMITS[name] and is_matrix(table):
        name = "matrix"
    shown = Answers.highest(table, limit or LIMITS[name])
    options = {"data": rows, "space": space, "time": time, "error": error, "period": period, "limit": limit}
    drawn = import_module(f"anabranch.plotting.{name}").draw(shown, title, threshold, **options)
    return Chart(drawn, title or f"{kind.upper()} answers")


def require_altair() -> None:
    """Refuse to draw without the extra `plot`."""
    if find_spec("altair") is None or find_spec("vl_convert") is None:
        raise AnabranchError("charts need Altair and vl-convert; install them: pip install 'anabranch[plot]'")


def _module_of(kind: str, columns: Sequence[str]) -> str:
    """Return the module that draws a kind; rows of PER are drawn as bars, whatever their kind."""
    if {"t_from", "t_to"} <= set(columns):
        return "pattern"
    if not {"t", "valid_from"} & set(columns):
        return "relate"
    return "lanes" if kind == "sequence" else kind


def _checked(kind: str) -> str:
    if kind.lower() not in KINDS:
        raise AnabranchError(f"there is no kind {kind}; there are {', '.join(KINDS)}")
    return kind.lower()
