"""`anabranch run`: the answers of a workbook's queries over the archive."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from anabranch.catalog import Query
from anabranch.charts import print_answers
from anabranch.cli import options
from anabranch.cli.common import (
    failures_of,
    group_title,
    open_workbook,
    progress,
    runnable_queries,
    say,
    summary,
)

if TYPE_CHECKING:
    from anabranch.session import Session

#: How many answers are printed if there is no output folder.
SHOWN = 20

Output = Annotated[
    str | None, typer.Option("--output", metavar="DIR", help="Write the answers to DIR/<query>/. Default: print them.")
]


def command(
    workbook: options.Workbook,
    input: options.Inputs = None,
    output: Output = None,
    format: options.Format = "parquet",
    query: options.Queries = None,
    master: options.Master = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
) -> None:
    """Run the queries of a workbook over the archive."""
    check_format(format)
    session = open_workbook(workbook, input, master, verbose)
    queries = runnable_queries(session, workbook, query)
    for group in session.groups(queries):
        with failures_of(workbook, group[0]):
            run_queries(session, group, output, format, strict)


def check_format(name: str) -> None:
    """Refuse an unknown format."""
    from anabranch.runtime.sinks.files import FORMATS

    if name not in FORMATS:
        raise typer.BadParameter(f"--format is one of {', '.join(FORMATS)}, not {name}")


def run_queries(session: Session, queries: Sequence[Query], output: str | None, file_format: str, strict: bool) -> None:
    """Run a group of queries, write or print their answers, and print the counts of their rows."""
    from anabranch.runtime.spark_mode import row_counter

    names = [query.name for query in queries]
    counter = row_counter(session.spark)
    began = time.monotonic()
    with progress(group_title(names), lambda: counter.value):
        answers = session.run_all(names, strict, counter)
        printed = {name: _deliver(frame, name, output, file_format) for name, frame in answers.items()}
    for name, rows in printed.items():
        counts = session.counts(name)
        if rows is not None:
            print_answers(rows, Console(), title=name, limit=SHOWN, total=counts.answers)
        say(summary(name, counts, time.monotonic() - began))
    session.release()
    if counts.quarantined or counts.late:
        _report_quarantine(session, names[0], output)


def _deliver(answers, name: str, output: str | None, file_format: str):
    """Write the answers of a query, or return the first ones."""
    from anabranch.runtime.sinks.files import write_whole

    if output is None:
        return answers.orderBy(*_order(answers.columns)).limit(SHOWN).toArrow()
    write_whole(answers, os.path.join(output, name), file_format)
    return None


def _order(columns: list[str]) -> list[str]:
    """By time, then by the columns that identify the answers of one instant."""
    return [f"`{name}`" for name in columns[: columns.index("probability")]]


def _report_quarantine(session: Session, name: str, output: str | None) -> None:
    """Write the quarantined rows, or print the most frequent reasons."""
    from anabranch.runtime.sinks.files import write_whole

    quarantine = session.quarantine(name)
    if output is not None:
        folder = os.path.join(output, "_quarantine", name)
        write_whole(quarantine, folder, "json")
        say(f"{name}: the quarantined rows are in {folder}")
        return
    for row in quarantine.groupBy("stream", "reason").count().orderBy("count", ascending=False).limit(5).collect():
        say(f"{name}: {row['count']:,} rows of {row['stream']} quarantined: {row['reason']}")
