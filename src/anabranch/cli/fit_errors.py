"""`anabranch fit errors`: learns the ERROR clause of a PREDICTED stream from the residuals of dead reckoning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.catalog import Model, Stream
from anabranch.cli import options
from anabranch.cli.common import known_stream, open_workbook, valid_rows
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.errors import DataError
from anabranch.language import nodes

if TYPE_CHECKING:
    import pyarrow as pa

    from anabranch.arrays import F64
    from anabranch.inference.residuals import ErrorLaw, Residuals
    from anabranch.session import Session

OneStream = Annotated[str, typer.Option("--stream", metavar="NAME", help="The PREDICTED stream.")]
Coverage = Annotated[
    float, typer.Option("--coverage", metavar="P", help="Share of the residuals that the error covers.")
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="DIR", help="Output folder for errors.csv and a chart.")
]

HeartbeatsOnly = Annotated[
    bool,
    typer.Option(
        "--heartbeats-only", help="PREDICTED FROM: learn the error that predictions have without corrections."
    ),
]

#: With fewer residuals, a quantile of 99% cannot be estimated.
FEWEST = 300

#: Predictions whose residuals grow by more than this over the period do not have one error.
STEEP = 3.0


def command(
    workbook: options.Workbook,
    stream: OneStream,
    coverage: Coverage = 0.99,
    heartbeats_only: HeartbeatsOnly = False,
    output: Output = None,
    input: options.Inputs = None,
    master: options.Master = None,
    verbose: options.Verbose = False,
) -> None:
    """Learn the error of predictions and its distribution, for ERROR."""
    # Imported here, because the optimisers take long to load.
    from anabranch.inference.residuals import covered, fit_error

    if not 0 < coverage <= 1:
        raise typer.BadParameter(f"--coverage is above 0 and at most 1, not {coverage:g}")
    session = open_workbook(workbook, input, master, verbose)
    chosen = _predicted(session, stream)
    with progress("learning", lambda: 0):
        residuals, errors = _residuals(session, chosen, heartbeats_only)
        if not len(residuals.key):
            raise DataError(f"{chosen.name} has no two rows of a key within its PERIOD; use a longer PERIOD")
        names = [column.name for column in chosen.values]
        laws, shares = {}, {}
        for column, name in enumerate(names):
            if not residuals.values[:, column].any():
                raise DataError(f"every prediction of {name} is exactly right; write ERROR 0")
            laws[name] = fit_error(residuals.values[:, column], coverage, errors[column] if errors else None)
            shares[name] = covered(residuals.values[:, column], residuals.key, coverage)
        if output is not None:
            _write(laws, residuals, output)
    for column, name in enumerate(names):
        _show(name, laws[name], residuals, column, shares[name], errors is None)
    print(f"  ERROR {_clause(laws)}")  # noqa: T201 - the result, to paste into the workbook
    if output is not None:
        say(f"written to {output}")


def _predicted(session: Session, name: str) -> Stream:
    """The stream called `name`; refused if it has no predictions."""
    stream = known_stream(session, name)
    if stream.model is not Model.PREDICTED:
        raise typer.BadParameter(f"{stream.name} is {stream.model.value}; only a PREDICTED stream has an ERROR")
    return stream


def _residuals(session: Session, stream: Stream, heartbeats_only: bool) -> tuple[Residuals, tuple[float, ...] | None]:
    """The residuals of the stream's predictions over its input; and the errors, if sensors correct by them."""
    from anabranch.columns.dictionary import encode_tuples
    from anabranch.columns.times import encode_times
    from anabranch.inference.history import time_kind
    from anabranch.inference.residuals import residuals_of_positions, residuals_of_predictions
    from anabranch.planning.derived import reporting_of
    from anabranch.planning.layouts import prediction_of

    source = stream.source
    read = session.catalog.require_stream(source.stream) if isinstance(source, nodes.PredictedSource) else stream
    rows = valid_rows(session, read)
    if not rows.num_rows:
        raise DataError(f"{read.name} has no valid rows; check its input")
    rows = rows.rename_columns([name.lower() for name in rows.column_names])
    kind = time_kind(rows.schema.field(read.time.name.lower()).type)
    t = encode_times(rows[read.time.name.lower()], kind)
    key, _ = encode_tuples([rows[column.name.lower()] for column in stream.keys], rows.num_rows)
    values = _numbers(rows, [column.name for column in stream.values])
    reporting = reporting_of(stream, read)
    if reporting is not None:
        residuals = residuals_of_positions(key, t, values, reporting, kind, correcting=not heartbeats_only)
        return residuals, None if heartbeats_only else reporting.errors
    prediction = prediction_of(stream)
    rates = _numbers(rows, prediction.rates)
    accelerations = _numbers(rows, [column.name for column in stream.optional_columns])
    return residuals_of_predictions(key, t, values, rates, accelerations, prediction.period, kind), None


def _numbers(rows: pa.Table, names: Sequence[str]) -> F64:
    """Some columns as numbers, (rows, columns); those that there are not, and NULLs, are 0."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = np.zeros((rows.num_rows, len(names)))
    for index, name in enumerate(names):
        if name.lower() in rows.column_names:
            numbers[:, index] = pc.fill_null(pc.cast(rows[name.lower()], pa.float64()), 0.0).to_numpy()
    return numbers


# ---------------------------------------------------------------- output


def _show(name: str, law: ErrorLaw, residuals: Residuals, column: int, share: float, learned: bool) -> None:
    """Print the law of a value, and what speaks against it."""
    from anabranch.inference.residuals import growth

    count, mean = len(residuals.key), float(residuals.values[:, column].mean())
    other = "NORMAL" if law.deviation is None else "uniform"
    say(
        f"{name}: {law.clause()} from {count:,} residuals; log likelihood {law.log_likelihood:.3f} each, "
        f"{other} {law.other:.3f}"
    )
    if learned and not math.isnan(share):
        say(f"  of keys held out, {share:.1%} of the residuals are within the error of the others")
    if count < FEWEST:
        say(f"  warning: {count} residuals are few; use a longer history")
    if abs(mean) > 0.25 * float(residuals.values[:, column].std()):
        say(f"  warning: predictions are off by {mean:.3g} on average; the law assumes 0")
    grows = growth(residuals, column)
    if grows > STEEP:
        say(f"  warning: residuals grow {grows:.1f} times over the PERIOD; a shorter one has a smaller ERROR")


def _clause(laws: Mapping[str, ErrorLaw]) -> str:
    """The laws in the syntax of ERROR."""
    texts = {law.clause() for law in laws.values()}
    if len(texts) == 1:
        return texts.pop()
    return f"({', '.join(f'{name} = {law.clause()}' for name, law in laws.items())})"


def _write(laws: Mapping[str, ErrorLaw], residuals: Residuals, folder: Path) -> None:
    """Write `errors.csv`, and `errors.svg`: the distances from the predictions and their law."""
    from anabranch.charts.delays import Panel, draw_delays
    from anabranch.columns.csv_files import write_rows

    folder.mkdir(parents=True, exist_ok=True)
    header = ("value", "law", "error", "deviation", "log_likelihood", "residuals")
    rows = [
        (
            name, "UNIFORM" if law.deviation is None else "NORMAL", law.error,
            "" if law.deviation is None else law.deviation, law.log_likelihood, len(residuals.key),
        )
        for name, law in laws.items()
    ]  # fmt: skip
    write_rows(folder / "errors.csv", header, rows)

    def folded(law: ErrorLaw) -> Callable[[F64], F64]:
        return lambda distance: 2 * law.density(distance)

    panels = [
        Panel(f"{name}: ERROR {law.clause()}", abs(residuals.values[:, column]), folded(law))
        for column, (name, law) in enumerate(laws.items())
    ]
    picture = draw_delays(panels, "Distances from the predictions")
    (folder / "errors.svg").write_text(picture + "\n", encoding="utf-8")
