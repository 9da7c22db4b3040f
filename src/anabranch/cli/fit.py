"""`anabranch fit`: learns models from history; one subcommand per kind of model."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
import typer

from anabranch.catalog import Model, Stream
from anabranch.cli import fit_delays, fit_durations, fit_errors, options
from anabranch.cli.common import known_stream, open_workbook, valid_rows
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.errors import DataError
from anabranch.inference.classes import class_folder
from anabranch.inference.fit import Smoothing, fit_hmm
from anabranch.inference.history import History, make_history, make_readings, point_rows, split_history
from anabranch.inference.hmm import MOST_STAGES, Hmm, Sensing
from anabranch.inference.labels import Labelled
from anabranch.inference.model import write_hmm
from anabranch.inference.tempering import fit_tempering
from anabranch.inference.unlabelled import Fitted, fit_unlabelled
from anabranch.language import nodes

if TYPE_CHECKING:
    from anabranch.session import Session

app = typer.Typer(help="Learn a model from history.", no_args_is_help=True, rich_markup_mode=None)
app.command("delays")(fit_delays.command)
app.command("durations")(fit_durations.command)
app.command("errors")(fit_errors.command)

Truth = Annotated[
    str | None, typer.Option("--truth", metavar="STREAM", help="Stream with the true locations of the keys.")
]
Readings = Annotated[str, typer.Option("--readings", metavar="STREAM", help="Stream with the readings of the keys.")]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Output folder for the model.")]
Added = Annotated[
    float,
    typer.Option(
        "--smoothing",
        metavar="A",
        help="Additive smoothing: added to the count of every possible transition and reading.",
    ),
]
Step = Annotated[
    float,
    typer.Option("--step", metavar="D", help="Length of a time step, in seconds or in the unit of numeric times."),
]
Kind = Annotated[
    str,
    typer.Option(
        "--sensing",
        metavar="detection|emission",
        help="detection: each reader detects or misses a key; emission: each step has one reading.",
    ),
]
Stages = Annotated[
    int,
    typer.Option(
        "--stages",
        metavar="K",
        help="Fit durations: up to K stages for each location, the number by likelihood.",
    ),
]
Tempered = Annotated[
    bool,
    typer.Option(
        "--tempered",
        help="Fit the exponent of the likelihoods on held-out history: readings of consecutive steps are related.",
    ),
]
Between = Annotated[
    str | None,
    typer.Option("--between", metavar="NAME", help="Location of steps without one, between others of a key."),
]

Unlabelled = Annotated[
    bool, typer.Option("--unlabelled", help="Learn from readings alone, without --truth: expectation maximisation.")
]
Locations = Annotated[
    int | None,
    typer.Option("--locations", metavar="K", help="With --unlabelled: the number of locations (default: of readers)."),
]


By = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", help="Learn one model for each value of this column of the readings."),
]


@dataclass(frozen=True, slots=True)
class _Settings:
    """The options that say how a model is learned."""

    sensing: Sensing
    smoothing: float
    step: float
    stages: int
    tempered: bool
    between: str | None
    locations: int | None


@app.command("hmm")
def fit_hmm_command(
    workbook: options.Workbook,
    readings: Readings,
    output: Output,
    truth: Truth = None,
    unlabelled: Unlabelled = False,
    locations: Locations = None,
    by: By = None,
    smoothing: Added = 0.5,
    step: Step = 1.0,
    sensing: Kind = "detection",
    stages: Stages = 1,
    tempered: Tempered = False,
    between: Between = None,
    input: options.Inputs = None,
    master: options.Master = None,
    verbose: options.Verbose = False,
) -> None:
    """Learn a hidden Markov model for INFERRED FROM."""
    if sensing not in {kind.value for kind in Sensing}:
        raise typer.BadParameter(f"--sensing is detection or emission, not {sensing}")
    if not 0 < step < math.inf:
        raise typer.BadParameter(f"--step is above 0, not {step:g}")
    if not 0 <= smoothing < math.inf:
        raise typer.BadParameter(f"--smoothing is at least 0, not {smoothing:g}")
    if not 1 <= stages <= MOST_STAGES:
        raise typer.BadParameter(f"--stages is from 1 to {MOST_STAGES}, not {stages}")
    if locations is not None and locations < 1:
        raise typer.BadParameter(f"--locations is at least 1, not {locations}")
    if unlabelled:
        _refuse_labels(truth is not None, stages > 1, tempered, between is not None)
    elif truth is None:
        raise typer.BadParameter("--truth is missing; name the stream with the true locations, or use --unlabelled")
    elif locations is not None:
        raise typer.BadParameter("--locations is for --unlabelled; a truth has its own locations")
    settings = _Settings(Sensing(sensing), smoothing, step, stages, tempered, between, locations)
    _refuse_mixture(output, settings.sensing)
    session = open_workbook(workbook, input, master, verbose)
    streams = [_certain(session, name) for name in (truth, readings) if name is not None]
    _check_streams(streams, by)
    with progress("learning", lambda: 0):
        reports = _fit(session, streams, by, settings, output)
    for report in reports:
        say(report)
    # Paths in a workbook are relative to it.
    path = os.path.relpath(output, os.path.dirname(workbook) or ".")
    clause = f"USING HMM '{path}'" if by is None else f"USING HMM '{path}' BY {by}"
    say(f"written to {output}; next: INFERRED FROM {streams[-1].name} {clause} METHOD ...")


def _refuse_labels(truth: bool, stages: bool, tempered: bool, between: bool) -> None:
    """Refuse options that need true locations."""
    given = {"--truth": truth, "--stages": stages, "--tempered": tempered, "--between": between}
    for option, is_given in given.items():
        if is_given:
            raise typer.BadParameter(f"{option} needs true locations, which --unlabelled does without; remove one")


def _check_streams(streams: Sequence[Stream], by: str | None) -> None:
    """Refuse streams that cannot be a history: the truth, if there is one, and the readings."""
    *truth, readings = streams
    classes = [column.name for column in (*readings.keys, *readings.values[1:])]
    if by is not None and by.lower() not in (name.lower() for name in classes):
        raise typer.BadParameter(f"--by {by} is no class of keys; {readings.name} has the columns {', '.join(classes)}")
    if truth:
        if len(truth[0].values) > 1:
            raise typer.BadParameter(f"{truth[0].name} has {len(truth[0].values)} VALUE columns, but a truth has one")
        if len(truth[0].keys) != len(readings.keys):
            numbers = " and ".join(f"{stream.name} has {len(stream.keys)} KEY columns" for stream in streams)
            raise typer.BadParameter(f"{numbers}; declare the same keys for both, in the same order")
    elif len(_quantities(readings, by)) > 0:
        raise typer.BadParameter(
            f"{readings.name} has {len(readings.values)} VALUE columns; --unlabelled learns from one"
        )


def _quantities(readings: Stream, by: str | None) -> tuple[str, ...]:
    """The columns of what readings measure."""
    return tuple(column.name for column in readings.values[1:] if column.name.lower() != (by or "").lower())


def _fit(
    session: Session, streams: Sequence[Stream], by: str | None, settings: _Settings, output: Path
) -> Sequence[str]:
    """Learn a model, or one for each class, and write them; returns what was learned."""
    *truth, read = (_rows(session, stream, settings.step) for stream in streams)
    quantities = _quantities(streams[-1], by)
    if by is None:
        return [_fit_rows(truth, read, quantities, settings, output)]
    reports = []
    for name, (part_truth, part_read) in _parts(truth, read, streams[-1], by).items():
        folder = class_folder(output, by, name)
        _refuse_mixture(folder, settings.sensing)
        try:
            report = _fit_rows(part_truth, part_read, quantities, settings, folder)
        except DataError as error:
            raise DataError(f"{by} = {name}: {error}") from error
        reports.append("\n".join(f"{by} = {name}: {line}" for line in report.splitlines()))
    return reports


def _parts(
    truth: Sequence[pa.Table], read: pa.Table, readings: Stream, by: str
) -> dict[str, tuple[list[pa.Table], pa.Table]]:
    """The rows of each class."""
    keys = [column.name.lower() for column in readings.keys]
    if by.lower() in keys:
        position = keys.index(by.lower())
        return split_history(truth, read, len(keys), [table.column(position) for table in (*truth, read)])
    names = [name for name in read.column_names if name.lower() == by.lower()]
    return split_history(truth, read.drop_columns(names), len(keys), [read[names[0]]])


def _fit_rows(
    truth: Sequence[pa.Table], read: pa.Table, quantities: tuple[str, ...], settings: _Settings, output: Path
) -> str:
    """Learn a model from rows, with true locations or without, and write it; returns what was learned."""
    if truth:
        history = make_history(truth[0], read, settings.step, quantities, settings.between)
        fit = partial(_fitted, history, settings)
        hmm = fit(history.truth, history.readings)
        if settings.tempered:
            hmm = fit_tempering(history.truth, history.readings, fit).temper(hmm)
        write_hmm(hmm, output)
        return _summary(history, hmm, settings.tempered)
    rows, readers = make_readings(read, settings.step)
    n_locations = len(readers) if settings.locations is None else settings.locations
    fitted = fit_unlabelled(rows, readers, n_locations, settings.sensing, settings.smoothing)
    write_hmm(fitted.hmm, output)
    return _convergence(fitted)


def _convergence(fitted: Fitted) -> str:
    """How the iterations went."""
    iterations = len(fitted.log_likelihoods)
    end = "converged after" if fitted.converged else "not converged after"
    starts = ", ".join(f"{value:.4f}" for value in fitted.of_starts)
    held_out = "not known: there are fewer than three keys" if fitted.held_out is None else f"{fitted.held_out:.4f}"
    return "\n".join(
        (
            f"{len(fitted.hmm.locations):,} locations: {', '.join(fitted.hmm.locations)}",
            f"{end} {iterations} iterations; log likelihood per step {fitted.log_likelihoods[0]:.4f} at the start, "
            f"{fitted.log_likelihoods[-1]:.4f} at the end (of all starts: {starts})",
            f"log likelihood per step of held-out keys: {held_out}",
        )
    )


def _rows(session: Session, stream: Stream, step: float) -> pa.Table:
    """The valid rows of a stream; those with a duration as one row for each step."""
    rows = valid_rows(session, stream)
    return rows if stream.start is None else point_rows(rows, stream.start.name, stream.time.name, step)


def _certain(session: Session, name: str) -> Stream:
    """The stream called `name`; refused if it cannot be a history."""
    stream = known_stream(session, name)
    if stream.model is not Model.CERTAIN:
        raise typer.BadParameter(f"{stream.name} is {stream.model.value}, but a history must be CERTAIN")
    if isinstance(stream.source, nodes.InferredSource):
        raise typer.BadParameter(f"{stream.name} is inferred, but a model is learned from observed streams")
    if not stream.values:
        raise typer.BadParameter(f"{stream.name} has no VALUE column; name the location or the reader in VALUE")
    return stream


def _fitted(history: History, settings: _Settings, truth: Labelled, readings: Labelled) -> Hmm:
    """A model of a part of the history."""
    return fit_hmm(
        truth, readings, history.locations, history.readers, settings.sensing, Smoothing(settings.smoothing),
        # An inferred key starts at its first reading, which may be at any location.
        initial="all",
        silence=settings.sensing is Sensing.EMISSION and history.n_silent > 0,
        stages=settings.stages,
        quantities=history.quantities,
    )  # fmt: skip


def _refuse_mixture(output: Path, sensing: Sensing) -> None:
    """A model has one file of readers; with the file of the other kind it could not be read."""
    (other,) = set(Sensing) - {sensing}
    if (output / f"{other.value}.csv").exists():
        raise DataError(f"{output} has a model with {other.value}.csv; use another folder")


def _summary(history: History, hmm: Hmm, tempered: bool) -> str:
    reading = int(np.count_nonzero(np.diff(hmm.reader_starts)))
    keys = "1 key" if history.n_keys == 1 else f"{history.n_keys:,} keys"
    lines = [
        f"{len(hmm.locations):,} locations, {reading:,} readers, {len(hmm.p):,} transitions; counted over "
        f"{len(history.truth.key):,} steps of {keys}, {history.n_silent:,} of them without a reading"
    ]
    if hmm.stages is not None:
        staged = ", ".join(f"{name} {k}" for name, k in zip(hmm.locations, hmm.stages, strict=True) if k > 1)
        lines.append(f"stages: {staged or 'none; stays are geometric'}")
    if tempered:
        so_far = hmm.exponent if hmm.exponent_so_far is None else hmm.exponent_so_far
        lines.append(f"exponents: {hmm.exponent:g} given all readings, {so_far:g} given the readings so far")
    return "\n".join(lines)
