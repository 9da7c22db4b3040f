"""`anabranch explain`: what each query is, how it will be run, and why."""

from __future__ import annotations

from rich.console import Console

from anabranch.cli.common import Queries, Workbook, chosen_queries, open_workbook


def command(workbook: Workbook, query: Queries = None) -> None:
    """Show the class, the plan and the cost of each query; no data are read."""
    session = open_workbook(workbook, None)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for number, chosen in enumerate(chosen_queries(session, query)):
        if number:
            console.print()
        console.print(str(session.explain(chosen.name)))
