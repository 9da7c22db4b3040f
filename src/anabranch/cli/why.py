"""`anabranch why`: explains the probability of an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from anabranch.cli import options
from anabranch.cli.common import chosen_queries, failures_of, open_workbook, spark_settings
from anabranch.cli.messages import say

Answers = Annotated[
    str, typer.Argument(metavar="ANSWERS", help="Answers of a query: the folder that run --output wrote, or a file.")
]
RowNumber = Annotated[
    int | None,
    typer.Option("--row", metavar="N", min=1, help="The N-th row of ANSWERS, from 1. Default: the most probable."),
]
WorkbookOption = Annotated[
    str | None,
    typer.Option("--workbook", metavar="WORKBOOK", help="The workbook. Default: the one that ANSWERS came from."),
]
QueryOption = Annotated[
    str | None, typer.Option("--query", metavar="NAME", help="The query. Default: the one that ANSWERS came from.")
]
Shown = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="List the N pieces of evidence with the largest effects.")
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Also draw the effects: .html, .png, .svg or .json.")
]


def command(
    answers: Answers,
    row: RowNumber = None,
    workbook: WorkbookOption = None,
    query: QueryOption = None,
    input: options.Inputs = None,
    limit: Shown = 20,
    plot: Plot = None,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    verbose: options.Verbose = False,
) -> None:
    """Explain the probability of an answer: what moved it, and the most likely histories."""
    from anabranch.cli.plot import check_chart_file

    if plot is not None:
        check_chart_file(plot, "--plot")
    origin = _origin(answers)
    workbook = workbook or origin.get("workbook")
    if workbook is None:
        raise typer.BadParameter(f"{answers} does not say where it came from; add --workbook and --query")
    answer = _row(answers, row)
    session = open_workbook(
        workbook, input or origin.get("inputs"), master, verbose, once=True, settings=spark_settings(conf, packages)
    )
    names = [query or origin["query"]] if query or "query" in origin else None
    queries = chosen_queries(session.catalog, names)
    if len(queries) > 1:
        raise typer.BadParameter(f"{workbook} has several queries; add --query, the one that ANSWERS came from")
    with failures_of(workbook, queries[0]):
        explanation = session.why(queries[0].name, answer, limit)
    typer.echo(str(explanation))
    if plot is not None:
        explanation.plot().save(plot)
        say(f"written to {plot}")


def _origin(answers: str) -> dict[str, Any]:
    """What a folder of answers says about its run: workbook, query and inputs; empty if it says nothing."""
    from anabranch.runtime.sinks.files import MARK

    mark = Path(answers) / MARK
    try:
        found = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _row(answers: str, number: int | None) -> dict[str, Any]:
    """One row of the answers; by default the first of the most probable ones."""
    from anabranch.plotting.answers import table_of

    rows: list[dict[str, Any]] = table_of(answers).to_pylist()
    if not rows or "probability" not in rows[0]:
        raise typer.BadParameter(f"{answers} has no answers")
    if number is None:
        return max(rows, key=lambda row: row["probability"])
    if number > len(rows):
        raise typer.BadParameter(f"--row {number}: {answers} has {len(rows):,} rows")
    return rows[number - 1]
