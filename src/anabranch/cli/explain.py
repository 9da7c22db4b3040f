"""`anabranch explain`: the class, plan and cost of each query, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import chosen_queries, declare_workbook
from anabranch.cli.messages import say
from anabranch.errors import WorkbookError
from anabranch.language.reading import read_workbook
from anabranch.plan import Plan

Graph = Annotated[bool, typer.Option("--graph", help="Write the graph of variables and constraints to NAME.svg.")]
Output = Annotated[
    Path, typer.Option("--output", metavar="DIR", help="Folder for --graph. Default: the current folder.")
]


def command(
    workbook: options.Workbook, query: options.Queries = None, graph: Graph = False, output: Output = Path()
) -> None:
    """Show the class, the plan and the cost of each query; no data are read."""
    planner, _ = declare_workbook(workbook)
    for number, chosen in enumerate(chosen_queries(planner.catalog, query)):
        try:
            plan = planner.prepare(chosen).plan
        except WorkbookError as error:
            raise WorkbookError(error.findings, read_workbook(workbook), workbook) from None
        typer.echo(f"\n{plan}" if number else str(plan))
        if graph:
            _draw(plan, output)


def _draw(plan: Plan, folder: Path) -> None:
    """Write the constraint graph of a plan, and print its path; or print that the kind has none."""
    from anabranch.charts.graph import draw_graph

    if plan.graph is None:
        say(f"{plan.query}: a {plan.kind} query has no constraint graph")
        return
    path = folder / f"{plan.query}.svg"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(draw_graph(plan.graph, plan.query) + "\n", encoding="utf-8")
    say(f"{plan.query}: {path}")
