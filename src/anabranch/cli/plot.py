"""`anabranch plot`: draws the answers in a file or folder. Needs no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.messages import say

Answers = Annotated[str, typer.Argument(metavar="ANSWERS", help="Answers of a query: a file, or a folder of parts.")]
Output = Annotated[
    Path,
    typer.Option("--output", metavar="FILE", help="Write the chart to FILE: .html, .png, .svg, .json or .geojson."),
]
Kind = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", help="Kind of the query. Default: recognised from the columns.")
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title. Default: the name of ANSWERS.")]
Threshold = Annotated[
    float | None, typer.Option("--threshold", metavar="P", help="Hide answers below P; a page has a slider for it.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="Only the N answers with the highest probabilities.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="Predictions of a MONITOR, or rows of the entities of a RELATE."),
]
Space = Annotated[
    str | None,
    typer.Option("--space", metavar="X,Y", help="Columns of the locations of events. Default: lon,lat or x,y."),
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="COLUMN", help="Column with the time of events. Default: found by its values."),
]
Error = Annotated[float | None, typer.Option("--error", metavar="E", help="Error of the predictions of a MONITOR.")]
Period = Annotated[
    float | None,
    typer.Option("--period", metavar="D", help="How long a prediction is valid; in seconds for timestamps."),
]
Theme = Annotated[
    str, typer.Option("--theme", metavar="light|dark", help="Colours of a picture. A page follows the reader's choice.")
]


def command(
    answers: Answers,
    output: Output,
    kind: Kind = None,
    title: Title = None,
    threshold: Threshold = None,
    limit: Limit = None,
    data: Data = None,
    space: Space = None,
    time: Time = None,
    error: Error = None,
    period: Period = None,
    theme: Theme = "light",
) -> None:
    """Draw answers as an interactive page, a picture or GeoJSON."""
    from anabranch.plotting import plot, to_geojson

    columns = None if space is None else [name.strip() for name in space.split(",")]
    if output.suffix.lower() == ".geojson":
        features = to_geojson(answers, data=data, space=columns, time=time)
        output.write_text(json.dumps(features) + "\n", encoding="utf-8")
    else:
        check_chart_file(output, "--output")
        name = Path(answers).name.partition(".")[0] if title is None else title
        chart = plot(
            answers, kind=kind, title=name, threshold=threshold, limit=limit, data=data, space=columns, time=time,
            error=error, period=period,
        )  # fmt: skip
        chart.save(output, theme)
    say(f"written to {output}")


def check_chart_file(path: Path, option: str) -> None:
    """Refuse a file that no chart can be written to, before any query is run."""
    from anabranch.plotting.chart import SUFFIXES
    from anabranch.plotting.dispatch import require_altair

    if path.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"{option} ends with {', '.join(SUFFIXES)}, not {path.name}")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"{option}: there is no folder {path.parent}")
    require_altair()
