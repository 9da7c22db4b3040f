"""`anabranch check`: finds all errors in a workbook that a run would find before it reads data.

Without --data, no Spark is started and no data are read.
"""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch.binding.words import count_of
from anabranch.catalog import Stream
from anabranch.cli import options
from anabranch.cli.common import open_workbook
from anabranch.cli.messages import say
from anabranch.editing.workbooks import check_text
from anabranch.errors import DataError
from anabranch.language.reading import read_workbook

Data = Annotated[bool, typer.Option("--data", help="Also read the inputs with Spark and count invalid rows.")]


def command(
    workbook: options.Workbook,
    data: Data = False,
    input: options.Inputs = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
) -> None:
    """Parse, bind and analyse a workbook, and report every error."""
    planner, statements = check_text(read_workbook(workbook), workbook)
    queries = planner.catalog.queries()
    counts = f"{count_of(statements, 'statement')}, {len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    say(f"{workbook}: {counts}; no errors found")
    if data:
        _check_data(workbook, input, strict, verbose)


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
