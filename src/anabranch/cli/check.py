"""`anabranch check`: is the workbook right? Without --data no Spark is started and no data are read."""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch.catalog import Stream
from anabranch.cli.common import Inputs, Strict, Verbose, Workbook, open_workbook, say
from anabranch.errors import DataError, WorkbookError
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.planning.planner import Planner

Data = Annotated[
    bool, typer.Option("--data", help="Also read the inputs, on Spark, and count rows that cannot be used.")
]


def command(
    workbook: Workbook, data: Data = False, input: Inputs = None, strict: Strict = False, verbose: Verbose = False
) -> None:
    """Parse, bind and analyse a workbook; say everything that is wrong with it."""
    text = read_workbook(workbook)
    parsed = parse(text, workbook)
    planner = Planner()
    findings = planner.declare(parsed)
    findings += planner.objections(planner.catalog.queries())
    if findings:
        raise WorkbookError(findings, text, workbook)
    statements, queries = len(parsed.statements), len(planner.catalog.queries())
    say(f"{workbook}: {statements} statements, {queries} queries; no errors found")
    if data:
        _check_data(workbook, input, strict, verbose)


def _check_data(workbook: str, inputs: list[str] | None, strict: bool, verbose: bool) -> None:
    """Hold the input of every stream against its model."""
    session = open_workbook(workbook, inputs, verbose=verbose)
    total = 0
    for name in session.catalog.names((Stream,)):
        found = session.validate(name).groupBy("reason").count().orderBy("reason").collect()
        for row in found:
            say(f"{name}: {row['count']:,} rows cannot be used: {row['reason']}")
        total += sum(row["count"] for row in found)
        if not found:
            say(f"{name}: every row can be used")
    if strict and total:
        raise DataError(f"{total:,} rows cannot be used")
