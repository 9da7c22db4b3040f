"""`anabranch check`: finds errors in a workbook. Without --data, no Spark is started and no data are read."""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch.catalog import Stream
from anabranch.cli import options
from anabranch.cli.common import open_workbook, say
from anabranch.errors import DataError, WorkbookError
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.planning.planner import Planner

Data = Annotated[bool, typer.Option("--data", help="Also read the inputs with Spark and count invalid rows.")]


def command(
    workbook: options.Workbook,
    data: Data = False,
    input: options.Inputs = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
) -> None:
    """Parse, bind and analyse a workbook, and report every error."""
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
    """Check the input of every stream against its model."""
    session = open_workbook(workbook, inputs, verbose=verbose)
    total = 0
    for name in session.catalog.names((Stream,)):
        invalid = session.validate(name).groupBy("reason").count().orderBy("reason").collect()
        for row in invalid:
            say(f"{name}: {row['count']:,} invalid rows: {row['reason']}")
        total += sum(row["count"] for row in invalid)
        if not invalid:
            say(f"{name}: all rows are valid")
    if strict and total:
        raise DataError(f"{total:,} rows are invalid")
