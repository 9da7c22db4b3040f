"""`anabranch check`: finds all errors in a workbook that a run would find before it reads data.

Without --data, no Spark is started and no data are read.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from anabranch.binding.words import count_of
from anabranch.catalog import Stream
from anabranch.cli import options
from anabranch.cli.common import declare_workbook, open_workbook
from anabranch.cli.messages import say
from anabranch.errors import DataError, Finding, WorkbookError
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
    planner, statements = declare_workbook(workbook)
    queries = planner.catalog.queries()
    findings = planner.objections(queries) or _file_findings(planner, os.path.dirname(os.path.abspath(workbook)))
    if findings:
        raise WorkbookError(findings, read_workbook(workbook), workbook)
    counts = f"{count_of(statements, 'statement')}, {len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    say(f"{workbook}: {counts}; no errors found")
    if data:
        _check_data(workbook, input, strict, verbose)


def _file_findings(planner: Planner, folder: str) -> list[Finding]:
    """Report the files besides the data, such as models, that a run could not use."""
    queries = [planner.prepare(query) for query in planner.catalog.queries() if planner.names_files(query)]
    if not queries:
        return []
    # Loads arrays, so only where a query needs them.
    from anabranch.planning.files import file_findings

    return file_findings(queries, planner.catalog, lambda name: folder)


def _check_data(workbook: str, inputs: list[str] | None, strict: bool, verbose: bool) -> None:
    """Check the input of every stream against its model."""
    session = open_workbook(workbook, inputs, verbose=verbose, once=True)
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
