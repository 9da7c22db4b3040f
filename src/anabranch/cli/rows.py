"""`anabranch rows`: the rows of a stream, for example of an inferred one, as a table."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import failures_of, known_stream, open_workbook
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.cli.run import Format, Output, destination_of, print_delivered

Name = Annotated[str, typer.Argument(metavar="STREAM", help="A stream of the workbook.")]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=0, help="Only the first N rows, by time and key.")
]


def command(
    workbook: options.Workbook,
    stream: Name,
    input: options.Inputs = None,
    output: Output = None,
    format: Format = None,
    limit: Limit = None,
    master: options.Master = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
) -> None:
    """Show or write the rows of a stream; those of an inferred or predicted stream are derived."""
    destination = destination_of(output, format, limit)
    session = open_workbook(workbook, input, master, verbose, once=True)
    entry = known_stream(session, stream)
    began = time.monotonic()
    with failures_of(workbook, entry):
        from anabranch.runtime.batch import counted
        from anabranch.runtime.spark_mode import row_counter

        counter = row_counter(session.spark)
        with progress(entry.name, lambda: counter.value):
            rows, count = counted(session.rows(entry.name, strict, counter))
            time_first = sorted(rows.columns, key=lambda name: name.lower() != entry.time.name.lower())
            delivered = destination.deliver(rows.select(*(f"`{name}`" for name in time_first)), entry.name)
    n_rows = count()
    print_delivered(entry.name, delivered, n_rows, limit)
    say(f"{entry.name}: {n_rows:,} rows; {time.monotonic() - began:.1f} s")
