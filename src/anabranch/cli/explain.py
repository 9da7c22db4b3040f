"""`anabranch explain`: the class, plan and cost of each query, and why; with --data, estimates from a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import chosen_queries, declare_workbook, failures_of, open_workbook, spark_settings
from anabranch.cli.messages import say
from anabranch.errors import WorkbookError
from anabranch.language.reading import read_workbook
from anabranch.plan import Plan

Graph = Annotated[bool, typer.Option("--graph", help="Write the graph of variables and constraints to NAME.svg.")]
Data = Annotated[
    bool,
    typer.Option("--data", help="Also estimate the number of answers and the memory, from a sample of the inputs."),
]
Output = Annotated[
    Path, typer.Option("--output", metavar="DIR", help="Folder for --graph. Default: the current folder.")
]


def command(
    workbook: options.Workbook,
    query: options.Queries = None,
    graph: Graph = False,
    output: Output = Path(),
    data: Data = False,
    input: options.Inputs = None,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    archive: options.Archive = None,
    verbose: options.Verbose = False,
) -> None:
    """Show the class, the plan and the cost of each query."""
    planner, _ = declare_workbook(workbook)
    settings = spark_settings(conf, packages, archive)
    session = open_workbook(workbook, input, master, verbose, once=True, settings=settings) if data else None
    for number, chosen in enumerate(chosen_queries(planner.catalog, query)):
        try:
            plan = planner.prepare(chosen).plan
        except WorkbookError as error:
            raise WorkbookError(error.findings, read_workbook(workbook), workbook) from None
        if session is not None and plan.refused is None:
            with failures_of(workbook, chosen):
                plan = session.estimate(chosen.name)
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
