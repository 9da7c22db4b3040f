"""`anabranch fit durations`: learns the DURATION and GAP clauses of an INTERVALS stream from its recorded events."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.binding.segment_laws import MOST_PHASES
from anabranch.binding.stream_columns import find_column
from anabranch.catalog import Model, Stream
from anabranch.cli import options
from anabranch.cli.common import known_stream, open_workbook, valid_rows
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.errors import DataError
from anabranch.language.names import quoted
from anabranch.language.types import Type

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.relate.fit import SegmentFit
    from anabranch.session import Session

OneStream = Annotated[str, typer.Option("--stream", metavar="NAME", help="The INTERVALS stream.")]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", help="Learn a distribution for each value of this column."),
]
MostK = Annotated[
    int | None, typer.Option("--most-k", metavar="K", help="The largest k of ERLANG to try; 10 by default.")
]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Output folder for the fitted distributions.")]


def command(
    workbook: options.Workbook,
    stream: OneStream,
    output: Output,
    by: By = None,
    most_k: MostK = None,
    input: options.Inputs = None,
    master: options.Master = None,
    verbose: options.Verbose = False,
) -> None:
    """Learn how long segments and the gaps between them last, for DURATION and GAP."""
    # Imported here, because the optimisers take long to load.
    from rich.console import Console

    from anabranch.relate.files import FILE, write_laws
    from anabranch.relate.fit import MOST_K

    if most_k is not None and not 1 <= most_k <= MOST_PHASES:
        raise typer.BadParameter(f"--most-k is from 1 to {MOST_PHASES}, not {most_k}")
    session = open_workbook(workbook, input, master, verbose)
    intervals = _intervals(session, stream, by)
    with progress("learning", lambda: 0):
        fits, is_clock = _fits(session, intervals, by, most_k or MOST_K)
        write_laws(fits, output)
        _draw(intervals, fits, is_clock, output)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    _show(fits, console)
    # Paths in a workbook are relative to it.
    path = os.path.relpath(output / FILE, os.path.dirname(workbook) or ".")
    console.print(_clauses(fits, by, path, is_clock))
    say(f"learned from {sum(len(fit.recorded) for fit in fits if not fit.name):,} lengths; written to {output}")


def _intervals(session: Session, name: str, by: str | None) -> Stream:
    """The stream; refused if it has no segments, or not the column."""
    stream = known_stream(session, name)
    if stream.model is not Model.INTERVALS:
        raise typer.BadParameter(f"{stream.name} is {stream.model.value}; only an INTERVALS stream has segments")
    if by is not None and find_column(stream, by) is None:
        columns = ", ".join(column.name for column in stream.columns)
        raise typer.BadParameter(f"{stream.name} has no column {by}; add it to VALUE, or use one of: {columns}")
    return stream


def _fits(session: Session, stream: Stream, by: str | None, most_k: int) -> tuple[list[SegmentFit], bool]:
    """The fitted distributions, and whether times are timestamps."""
    from anabranch.columns.types import types_of_columns
    from anabranch.planning.layouts import layouts_for
    from anabranch.relate.fit import fit_durations
    from anabranch.relate.history import make_history

    table = valid_rows(session, stream)
    typed = stream.with_types(types_of_columns(table.schema))
    (layout,) = layouts_for([typed])
    history = make_history(table, layout, by)
    fits = fit_durations(history.lengths, history.classes, most_k)
    if not fits:
        raise DataError(f"{stream.name}: fewer than two segments have both ends, so there is nothing to learn from")
    return fits, typed.time.type is Type.TIMESTAMP


# ---------------------------------------------------------------- output


def _show(fits: list[SegmentFit], console: Console) -> None:
    """Print the fitted distributions."""
    import pyarrow as pa

    from anabranch.charts.table import print_answers

    rows = {
        "clause": [fit.clause for fit in fits],
        "class": [fit.name or "(all)" for fit in fits],
        "law": [_written(fit, False, digits=4) for fit in fits],
        "recorded": [len(fit.recorded) for fit in fits],
        "censored": [fit.n_censored for fit in fits],
    }
    print_answers(pa.table(rows), console, limit=len(fits))


def _clauses(fits: list[SegmentFit], by: str | None, path: str, clock: bool) -> str:
    """The DURATION and GAP clauses for the stream."""
    overall = [fit for fit in fits if not fit.name]
    if by is None:
        return "\n".join(f"  {fit.clause} {_written(fit, clock)}" for fit in overall)
    return "\n".join(f"  {fit.clause} FITTED '{path}' BY {quoted(by)}" for fit in overall)


def _written(fit: SegmentFit, clock: bool, digits: int = 6) -> str:
    mean = f"{fit.mean:.{digits}g}".replace("e+", "e") + (" SECONDS" if clock else "")
    return f"EXPONENTIAL({mean})" if fit.k == 1 else f"ERLANG({fit.k}, {mean})"


def _draw(stream: Stream, fits: list[SegmentFit], clock: bool, folder: Path) -> None:
    """Write `durations.svg`: the recorded lengths of each class and the fitted distribution."""
    from anabranch.charts.delays import Panel, draw_delays

    titles = [f"{fit.clause} {fit.name}: {len(fit.recorded):,} recorded, {_written(fit, False)}" for fit in fits]
    panels = [Panel(title, fit.recorded, fit.density) for title, fit in zip(titles, fits, strict=True)]
    picture = draw_delays(panels, f"Segments and gaps of {stream.name}", "seconds" if clock else "")
    (folder / "durations.svg").write_text(picture + "\n", encoding="utf-8")
