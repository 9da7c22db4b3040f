"""The arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Workbook = Annotated[str, typer.Argument(metavar="WORKBOOK", help="File with CREATE statements (*.abq).")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME=PATH", help="Read a stream or relation from this file or folder (may be repeated)."
    ),
]
Queries = Annotated[
    list[str] | None,
    typer.Option("--query", metavar="NAME", help="Only this query (may be repeated). Default: all queries."),
]
Master = Annotated[str | None, typer.Option("--master", metavar="URL", help="Spark master URL. Default: this machine.")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of the Spark session (may be repeated)."),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        "--packages",
        metavar="GROUP:NAME:VERSION,...",
        help="Connectors that Spark downloads from Maven (may be repeated).",
    ),
]
Archive = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="FILE",
        help="An archive that `anabranch pack` has written: Spark sends it to the executors, which run with it.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's log.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail on the first invalid row instead of quarantining it.")]
MaxAnswers = Annotated[
    int | None,
    typer.Option(
        "--max-answers",
        metavar="N",
        min=1,
        help="How many answers a query may have in one bucket and step; with more it fails. Default: 4,000,000 (run), "
        "1,000,000 (stream).",
    ),
]
Format = Annotated[str, typer.Option("--format", metavar="parquet|csv|json|jsonl", help="File format of --output.")]
