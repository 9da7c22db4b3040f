"""`anabranch run`: the answers to a workbook's queries over the archive."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from anabranch.catalog import Query
from anabranch.cli.common import (
    Inputs,
    Master,
    Queries,
    Strict,
    Verbose,
    Workbook,
    chosen_queries,
    failures_of,
    open_workbook,
    progress,
    refuse_unanswerable,
    say,
    summary,
)
from anabranch.show import print_answers

if TYPE_CHECKING:
    from anabranch.session import Session

#: Answers shown where there is no output folder.
SHOWN = 20

Output = Annotated[str | None, typer.Option("--output", metavar="DIR", help="Write DIR/<query>/; else print a table.")]
Format = Annotated[str, typer.Option("--format", metavar="parquet|csv|json", help="The format of --output.")]


def command(
    workbook: Workbook,
    input: Inputs = None,
    output: Output = None,
    format: Format = "parquet",
    query: Queries = None,
    master: Master = None,
    strict: Strict = False,
    verbose: Verbose = False,
) -> None:
    """Answer the queries of a workbook over the archive."""
    check_format(format)
    session = open_workbook(workbook, input, master, verbose)
    queries = chosen_queries(session, query)
    refuse_unanswerable(session, workbook, queries)
    for chosen in queries:
        with failures_of(workbook, chosen):
            run_query(session, chosen, output, format, strict)


def check_format(name: str) -> None:
    """Refuse a format that is not there."""
    from anabranch.runtime.sinks.files import FORMATS

    if name not in FORMATS:
        raise typer.BadParameter(f"--format is one of {', '.join(FORMATS)}, not {name}")


def run_query(session: Session, query: Query, output: str | None, file_format: str, strict: bool) -> None:
    """Run one query, write or show its answers, and say what became of its rows."""
    from anabranch.runtime.sinks.files import write_whole

    began = time.monotonic()
    counter = session.spark.sparkContext.accumulator(0)
    first = None
    with progress(query.name, lambda: counter.value):
        answers = session.run(query.name, strict, counter)
        if output is not None:
            write_whole(answers, os.path.join(output, query.name), file_format)
        else:
            first = answers.orderBy(*_order(answers.columns)).limit(SHOWN).toArrow()
    counts = session.report(query.name)
    if first is not None:
        print_answers(first, Console(), title=query.name, limit=SHOWN, total=counts.answers)
    say(summary(query.name, counts, time.monotonic() - began))
    if counts.quarantined or counts.late:
        _tell_quarantine(session, query.name, output)


def _order(columns: list[str]) -> list[str]:
    """By time first, then by the columns that tell answers of one instant apart."""
    return [f"`{name}`" for name in columns[: columns.index("probability")]]


def _tell_quarantine(session: Session, name: str, output: str | None) -> None:
    """Write the rows that were set aside, or say why the first were."""
    from anabranch.runtime.sinks.files import write_whole

    quarantine = session.quarantine(name)
    if output is not None:
        folder = os.path.join(output, "_quarantine", name)
        write_whole(quarantine, folder, "json")
        say(f"{name}: the quarantined rows are in {folder}")
        return
    for row in quarantine.groupBy("stream", "reason").count().orderBy("count", ascending=False).limit(5).collect():
        say(f"{name}: {row['count']:,} rows of {row['stream']} quarantined: {row['reason']}")
