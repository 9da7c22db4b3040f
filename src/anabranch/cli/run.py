"""`anabranch run`: the answers of a workbook's queries over the archive."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.binding.targets import target_name
from anabranch.catalog import Query, Stream, title_of
from anabranch.cli import options
from anabranch.cli.common import open_workbook, run_without_excessive, runnable_queries, spark_settings
from anabranch.cli.messages import FAILED, say
from anabranch.cli.progress import progress
from anabranch.cli.summary import RunSummary, run_summary, summary_line

if TYPE_CHECKING:
    import pyarrow as pa

    from anabranch.session import Session

#: How many answers are printed if there is no output folder.
SHOWN = 20

#: An input with more rows is not read again to find out why there are no answers.
MOST_READ_AGAIN = 1_000_000

#: The value of --output that stands for standard output.
STANDARD_OUTPUT = "-"

Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="DIR|-",
        help="Write the answers to DIR/<query>/, or to standard output (-). Default: print a table. Those of queries "
        "that declare a target (TO) are written there.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="parquet|csv|json|jsonl",
        help="Format of the answers. Default: parquet in a folder, csv on standard output. Without --output, csv and "
        "jsonl go to standard output.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="Only the first N answers of each query, by time."),
]
AllowEmpty = Annotated[
    bool,
    typer.Option("--allow-empty", help="Do not fail if an input has no rows, or if most of its rows are quarantined."),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Also draw the answers: .html, .png, .svg or .json. Several queries: one FILE-<query> each.",
    ),
]
Lineage = Annotated[
    bool, typer.Option("--lineage", help="Add the column lineage: the rows of streams that each answer depends on.")
]
SummaryFile = Annotated[
    str | None, typer.Option("--summary", metavar="FILE", help="Write the counts of the run to FILE, as JSON.")
]


def command(
    workbook: options.Workbook,
    input: options.Inputs = None,
    output: Output = None,
    format: Format = None,
    limit: Limit = None,
    lineage: Lineage = False,
    plot: Plot = None,
    query: options.Queries = None,
    summary: SummaryFile = None,
    allow_empty: AllowEmpty = False,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    archive: options.Archive = None,
    strict: options.Strict = False,
    max_answers: options.MaxAnswers = None,
    verbose: options.Verbose = False,
) -> None:
    """Run the queries of a workbook over the archive."""
    destination = replace(destination_of(output, format, limit), plot=plot)
    with run_summary(workbook, summary) as report:
        session = open_workbook(
            workbook, input, master, verbose, once=True, max_answers=max_answers,
            settings=spark_settings(conf, packages, archive),
        )  # fmt: skip
        queries = runnable_queries(session, workbook, query)
        destination.check(queries, session)
        origin = {"workbook": os.path.abspath(workbook), "inputs": _absolute(input or [])}
        destination = replace(destination, several=len(queries) > 1, origin=origin)

        def run(together: list[Query]) -> None:
            run_queries(session, together, destination, strict, report, lineage)

        errors = [error for group in session.groups(queries) for error in run_without_excessive(workbook, group, run)]
        report.error = str(errors[0]) if errors else None
    if errors or (report.has_warnings and not allow_empty):
        raise typer.Exit(FAILED)


def _absolute(inputs: list[str]) -> list[str]:
    """The inputs with absolute paths of those that are local."""
    pairs = [argument.partition("=") for argument in inputs]
    return [f"{name}={os.path.abspath(path) if os.path.exists(path) else path}" for name, _, path in pairs]


def check_format(name: str) -> str:
    """The format of files that an option names: JSON lines are what Spark calls JSON. Refuses an unknown one."""
    from anabranch.binding.targets import FORMATS

    if name not in (*FORMATS, "jsonl"):
        raise typer.BadParameter(f"--format is one of {', '.join((*FORMATS, 'jsonl'))}, not {name}")
    return "json" if name == "jsonl" else name


def destination_of(output: str | None, file_format: str | None, limit: int | None) -> Destination:
    """Where the answers go, from the options."""
    from anabranch.runtime.sinks.lines import LINE_FORMATS

    files = check_format(file_format or "parquet")
    if output == STANDARD_OUTPUT or (output is None and file_format is not None):
        line_format = "jsonl" if file_format == "json" else file_format or "csv"
        if line_format not in LINE_FORMATS:
            hint = "write --output DIR" if output is None else "standard output takes csv or jsonl"
            raise typer.BadParameter(f"--format {line_format} needs a folder; {hint}")
        return Destination(STANDARD_OUTPUT, line_format, limit)
    return Destination(output, files, limit)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the answers of a run go: a folder, standard output, or a printed table.

    Attributes
    ----------
    output : the folder, `-` for standard output, or None for a table
    format : of the files or lines
    limit : the maximum number of answers of each query; None for all, or for the usual number in a table
    several : whether more than one query is run
    uses_targets : whether the answers of a query that declares a target (`TO ...`) go there instead
    plot : the file of a chart, or None
    origin : the workbook and the inputs of the run, which are written next to the answers
    """

    output: str | None
    format: str
    limit: int | None
    several: bool = False
    uses_targets: bool = True
    plot: Path | None = None
    origin: Mapping[str, object] | None = None

    @property
    def folder(self) -> str | None:
        """The output folder, if there is one."""
        return None if self.output == STANDARD_OUTPUT else self.output

    def check(self, queries: Sequence[Query], session: Session) -> None:
        """Refuse several queries in one CSV, because their columns differ, and folders with files of others."""
        from anabranch.runtime.sinks.files import check_replaceable

        if self.output == STANDARD_OUTPUT and self.format == "csv" and len(queries) > 1:
            names = ", ".join(query.name for query in queries)
            raise typer.BadParameter(
                f"standard output takes the answers of one query as csv, not of {names}; use --query or --format jsonl"
            )
        if self.folder is not None:
            for query in queries:
                if not self._has_target(query):
                    check_replaceable(os.path.join(self.folder, query.name), lambda: session.spark)
        if self.plot is not None:
            from anabranch.cli.plot import check_chart_file

            check_chart_file(self.plot, "--plot")

    def output_of(self, query: Query) -> str | None:
        """Where the answers of a query are: its target, its folder, `-`, or None."""
        target = query.declaration.target
        if target is not None and self.uses_targets:
            return target_name(target)
        return self.output if self.folder is None else os.path.join(self.folder, query.name)

    def deliver_answers(self, session: Session, answers, query: Query) -> pa.Table | list[str] | None:
        """Draw the answers of a query, and write them to its target or folder, or collect those to print."""
        if self.plot is not None:
            answers = self._drawn(answers, query.name, self.plot)
        is_ordered = query.declaration.limit is not None
        if not self._has_target(query):
            return self.deliver(answers, query.name, is_ordered)
        session.deliver(query.name, answers if self.limit is None else first_answers(answers, self.limit, is_ordered))
        return None

    def _drawn(self, answers, name: str, path: Path):
        """Draw the answers of a query; returns them, collected, so that the query runs once."""
        from anabranch.plotting import plot
        from anabranch.runtime.finishing import to_frame

        table = answers.toArrow()
        plot(table, title=name).save(path.with_name(f"{path.stem}-{name}{path.suffix}") if self.several else path)
        return to_frame(answers.sparkSession, table)

    def deliver(self, rows, name: str, is_ordered: bool = False) -> pa.Table | list[str] | None:
        """Write rows to the folder of this name, or collect those that will be printed.

        Those that are ordered (ORDER BY) keep their order.
        """
        from anabranch.runtime.sinks.files import write_whole
        from anabranch.runtime.sinks.lines import text_lines

        limit = SHOWN if self.output is None and self.limit is None else self.limit
        if limit is not None:
            rows = first_answers(rows, limit, is_ordered)
        elif self.output == STANDARD_OUTPUT and not is_ordered:
            # One task that sorts: a sort over all partitions would run the query twice, to find their bounds.
            rows = rows.repartition(1).sortWithinPartitions(*_order(rows.columns))
        if self.output is None:
            return rows.toArrow()
        if self.output == STANDARD_OUTPUT:
            return list(text_lines(rows, self.format, name if self.several else None))
        origin = None if self.origin is None else {**self.origin, "query": name}
        write_whole(rows, os.path.join(self.output, name), self.format, origin)
        return None

    def _has_target(self, query: Query) -> bool:
        return self.uses_targets and query.declaration.target is not None


#: A printed table of the first answers, also of queries that declare a target.
TABLE = Destination(None, "parquet", None, uses_targets=False)


def first_answers(rows, limit: int, is_ordered: bool):
    """The first rows, by time unless they are ordered."""
    return (rows if is_ordered else rows.orderBy(*_order(rows.columns))).limit(limit)


def _order(columns: list[str]) -> list[str]:
    """By time, then by the columns that identify the answers of one instant."""
    first = columns[: columns.index("probability")] if "probability" in columns else columns
    return [f"`{name}`" for name in first]


def run_queries(
    session: Session,
    queries: Sequence[Query],
    destination: Destination,
    strict: bool,
    report: RunSummary,
    lineage: bool = False,
) -> None:
    """Run a group of queries, write or print their answers, and print the counts of their rows."""
    from anabranch.runtime.spark_mode import row_counter

    names = [query.name for query in queries]
    counter = row_counter(session.spark)
    began = time.monotonic()
    with progress(title_of(names), lambda: counter.value):
        answers = session.run_all(names, strict, counter, lineage=lineage)
        delivered = {query.name: destination.deliver_answers(session, answers[query.name], query) for query in queries}
    seconds = time.monotonic() - began
    doubts = [_at(report.workbook, stream, doubt) for stream, doubt in session.doubts(names[0])]
    for doubt in doubts:
        say(doubt)
    for query in queries:
        name, rows = query.name, delivered[query.name]
        counts = session.counts(name)
        print_delivered(name, rows, counts.answers, destination.limit)
        say(summary_line(name, counts, seconds))
        if not counts.answers and not doubts and counts.read <= MOST_READ_AGAIN:
            for reason in session.absent_values(name):
                say(f"{name}: {reason}")
        report.add(name, counts, seconds, destination.output_of(query), doubts)
    session.release()
    if counts.quarantined or counts.late:
        report.queries[-len(names)]["quarantine"] = _report_quarantine(session, names[0], destination.folder)


def _at(workbook: str, stream: Stream, message: str) -> str:
    """A message with the position of a stream in the workbook."""
    span = stream.declaration.span
    return f"{workbook}:{span.line}:{span.column}: {message}"


def print_delivered(name: str, rows: pa.Table | list[str] | None, n_answers: int, limit: int | None) -> None:
    """Print what `deliver` has collected on standard output: a table, or lines of text."""
    if isinstance(rows, list):
        sys.stdout.writelines(f"{line}\n" for line in rows)
        sys.stdout.flush()
    elif rows is not None:
        from rich.console import Console

        from anabranch.charts import print_answers

        print_answers(rows, Console(), title=name, limit=SHOWN if limit is None else limit, total=n_answers)


def _report_quarantine(session: Session, name: str, folder: str | None) -> str | None:
    """Write the quarantined rows and return their folder, or print the most frequent reasons."""
    from anabranch.runtime.sinks.files import write_whole

    quarantine = session.quarantine(name)
    if folder is not None:
        path = os.path.join(folder, "_quarantine", name)
        write_whole(quarantine, path, "json")
        say(f"{name}: the quarantined rows are in {path}")
        return path
    for row in quarantine.groupBy("stream", "reason").count().orderBy("count", ascending=False).limit(5).collect():
        say(f"{name}: {row['count']:,} rows of {row['stream']} quarantined: {row['reason']}")
    return None
