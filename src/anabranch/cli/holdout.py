"""`anabranch holdout`: removes a share of the events of a file, and keeps them as ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.messages import say

Source = Annotated[Path, typer.Argument(metavar="FILE", help="Parquet, CSV or JSON lines file.")]
Share = Annotated[float, typer.Option("--share", metavar="S", help="Share of the events to hold out, such as 0.2.")]
Output = Annotated[Path, typer.Option("--output", metavar="FILE", help="Output file without the held-out events.")]
Truth = Annotated[Path, typer.Option("--truth", metavar="FILE", help="Output file for the held-out events.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed holds out the same events.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="COLUMN=VALUE", help="Hold out only such rows, or COLUMN!=VALUE (may be repeated)."
    ),
]
Ends = Annotated[
    str | None,
    typer.Option(
        "--ends", metavar="ORDER", help="Hold out only segment ends: rows with an even number in this column."
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="KEY", help="Draw keys instead of rows: all such rows of a key (may be repeated)."),
]
Clear = Annotated[
    list[str] | None,
    typer.Option(
        "--clear", metavar="COLUMN", help="Set this column to NULL instead of removing rows (may be repeated)."
    ),
]


def command(
    file: Source,
    share: Share,
    output: Output,
    truth: Truth,
    seed: Seed = 0,
    where: Where = None,
    ends: Ends = None,
    by: By = None,
    clear: Clear = None,
) -> None:
    """Remove a share of the events of a file by a seed, and keep them as ground truth."""
    from anabranch.evaluation.files import format_of
    from anabranch.evaluation.holdout import hold_out, read_rows

    if not 0 < share < 1:
        raise typer.BadParameter(f"--share is above 0 and below 1, not {share:g}")
    if seed < 0:
        raise typer.BadParameter(f"--seed is at least 0, not {seed}")
    for path in (output, truth):
        if format_of(path) != format_of(file):
            raise typer.BadParameter(f"{path} has another format than {file}; use the same extension")
    if len({path.resolve() for path in (file, output, truth)}) < 3:
        raise typer.BadParameter("FILE, --output and --truth must be three different files")
    rows = read_rows(file)
    result = hold_out(rows, share, seed=seed, where=where or (), ends=ends, by=by or (), clear=clear or ())
    result.kept.write(output)
    result.truth.write(truth)
    unit = "keys" if by else "values" if clear else "rows"
    say(f"{result.chosen:,} of {result.candidates:,} {unit} held out, in {len(result.truth):,} of {len(rows):,} rows")
    say(f"written to {output} and {truth}")
