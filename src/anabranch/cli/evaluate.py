"""`anabranch evaluate`: compares the answers in a file with the events that really happened. Needs no Spark."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.messages import say
from anabranch.cli.plot import check_chart_file
from anabranch.language.names import SECONDS_OF

if TYPE_CHECKING:
    from anabranch.evaluation import Evaluation

Answers = Annotated[str, typer.Argument(metavar="ANSWERS", help="Answers of a query: a file, or a folder of parts.")]
Truth = Annotated[str, typer.Option("--truth", metavar="FILE", help="The events that happened: keys and times.")]
Tolerance = Annotated[
    str,
    typer.Option(
        "--tolerance",
        metavar="D",
        help="Largest distance in time between an answer and its event, such as '5 MINUTES'.",
    ),
]
Gap = Annotated[
    str | None,
    typer.Option("--gap", metavar="D", help="Answers that follow within D are one episode. Default: the tolerance."),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Compare this column, or ANSWER=TRUTH (may be repeated). Default: all that both have.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time", metavar="COLUMN", help="Time column, FROM,TO or ANSWER=TRUTH. Default: t, or valid_from,valid_to."
    ),
]
Probability = Annotated[
    str, typer.Option("--probability", metavar="COLUMN", help="The column to evaluate, such as calibrated.")
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Column of the truth that says which rows are true. Default: true."),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help="Only such answers; COLUMN= for NULL (may be repeated)."),
]
Bins = Annotated[int, typer.Option("--bins", metavar="N", help="Number of bins of the calibration error.")]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE.json", help="Also write all figures as JSON.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Also draw a reliability chart: .svg, .html or .png.")
]
Learn = Annotated[
    Path | None, typer.Option("--learn", metavar="FILE.csv", help="Learn a calibration map for CALIBRATED BY.")
]


def command(
    answers: Answers,
    truth: Truth,
    tolerance: Tolerance = "0",
    gap: Gap = None,
    by: By = None,
    time: Time = None,
    probability: Probability = "probability",
    label: Label = None,
    where: Where = None,
    bins: Bins = 10,
    output: Output = None,
    plot: Plot = None,
    learn: Learn = None,
) -> None:
    """Compare answers with ground truth: precision, recall, calibration, and the best threshold."""
    from anabranch.charts.evaluation import print_evaluation
    from anabranch.evaluation import evaluate
    from anabranch.evaluation.files import read_table

    if plot is not None and plot.suffix.lower() != ".svg":
        check_chart_file(plot, "--plot")
    if bins < 1:
        raise typer.BadParameter(f"--bins is at least 1, not {bins}")
    near = duration("--tolerance", tolerance)
    tables = read_table(answers), read_table(truth)
    longest = near if gap is None else duration("--gap", gap)
    result = evaluate(
        *tables,
        tolerance=near,
        gap=longest,
        by=by,
        time=time,
        probability=probability,
        label=label,
        where=where or (),
        bins=bins,
    )
    print_evaluation(result)
    if result.left_out:
        say(f"{result.left_out:,} answers were left out: not final, or without a probability or a time")
    if output is not None:
        output.write_text(json.dumps(result.to_dict(), indent=2) + "\n", encoding="utf-8")
    if plot is not None:
        _draw(result, os.path.basename(answers.rstrip("/")), plot)
    if learn is not None:
        _learn(result, learn)


def _draw(result: Evaluation, name: str, path: Path) -> None:
    """Draw a picture that needs no extra as SVG, and else the interactive chart."""
    from anabranch import plotting
    from anabranch.charts.reliability import draw_reliability

    if path.suffix.lower() == ".svg":
        path.write_text(draw_reliability(result.bins, f"Reliability of {name}") + "\n", encoding="utf-8")
    else:
        plotting.plot(result, title=f"Evaluation of {name}").save(path)


def _learn(result: Evaluation, path: Path) -> None:
    held_out = result.learn(path)
    before = result.scores
    say(
        f"calibrated answers that were held out: Brier score {held_out.brier:.4f} instead of {before.brier:.4f}, "
        f"calibration error {held_out.calibration_error:.4f} instead of {before.calibration_error:.4f}"
    )
    if held_out.brier >= before.brier or held_out.calibration_error > before.calibration_error:
        say("the map is no clear gain; use more answers, or keep the probabilities as they are")
    say(f"written to {path}; next: CALIBRATED BY '{path}', relative to the workbook")


def duration(option: str, text: str) -> float:
    """A duration as in the language: a number, or a number and a unit."""
    amount, _, unit = text.strip().partition(" ")
    factor = SECONDS_OF.get(unit.strip().upper().removesuffix("S") or "SECOND")
    try:
        value = float(amount)
    except ValueError:
        value = math.nan
    if factor is None or not 0 <= value < math.inf:
        raise typer.BadParameter(f"{option} takes a duration such as 30 or '5 MINUTES', not {text}")
    return value * factor
