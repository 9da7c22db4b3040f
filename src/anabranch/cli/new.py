"""`anabranch new`: a first workbook for a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.messages import say
from anabranch.errors import AnabranchError
from anabranch.kinds import KINDS

Kind = Annotated[str, typer.Argument(metavar="|".join(KINDS), help="The kind of the first query.")]
Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV, JSON lines or Parquet file, a folder, or a glob.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="The workbook. Default: the name of the data, with .abq."),
]
Time = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="The column with the time.")]
Keys = Annotated[list[str] | None, typer.Option("--key", metavar="COLUMN", help="A key column (may be repeated).")]
Values = Annotated[
    list[str] | None, typer.Option("--value", metavar="COLUMN", help="A value column (may be repeated).")
]


def command(
    kind: Kind, data: Data, output: Output = None, time: Time = None, key: Keys = None, value: Values = None
) -> None:
    """Write a commented workbook from the columns of a file, and say what was guessed."""
    if kind.upper() not in KINDS:
        raise typer.BadParameter(f"there is no kind {kind}; there are: {', '.join(KINDS)}")
    workbook = output or Path(os.path.normpath(data).split("*")[0].rstrip("/")).with_suffix(".abq")
    if workbook.exists():
        raise AnabranchError(f"{workbook} exists already; name another workbook with --output")
    # Loads pandas and Arrow.
    from anabranch.drafting import draft

    drafted = draft(kind, data, str(workbook.parent), time=time, keys=key or (), values=value or ())
    workbook.write_text(drafted.text)
    for guess in drafted.guesses:
        say(f"guessed: {guess}")
    say(f"written to {workbook}; next: anabranch run {workbook}")
