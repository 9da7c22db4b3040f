"""`anabranch explain`: what each query is, how it will be run, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from anabranch.cli.common import Queries, Workbook, chosen_queries, open_workbook, say
from anabranch.plan import Plan

Graph = Annotated[bool, typer.Option("--graph", help="Draw what holds between the variables, as NAME.svg.")]
Output = Annotated[
    Path, typer.Option("--output", metavar="DIR", help="Where --graph writes; the default is the current folder.")
]


def command(workbook: Workbook, query: Queries = None, graph: Graph = False, output: Output = Path()) -> None:
    """Show the class, the plan and the cost of each query; no data are read."""
    session = open_workbook(workbook, None)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for number, chosen in enumerate(chosen_queries(session, query)):
        if number:
            console.print()
        plan = session.explain(chosen.name)
        console.print(str(plan))
        if graph:
            _draw(plan, output)


def _draw(plan: Plan, folder: Path) -> None:
    """Write the picture of a plan, and say where it is; or that there is nothing to draw."""
    from anabranch.charts.graph import draw_graph

    if plan.graph is None:
        say(f"{plan.query}: there is no graph of a {plan.kind} query")
        return
    path = folder / f"{plan.query}.svg"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(draw_graph(plan.graph, plan.query) + "\n", encoding="utf-8")
    say(f"{plan.query}: {path}")
