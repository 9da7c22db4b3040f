"""Draw two buses stop by stop: when each may have been there, and the probability that both were there together."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from prepare import FOLDER, LINES, read_names, read_reports, read_stops, visits_of
from run import ask, every
from shared import options

from anabranch.drawing import svg
from anabranch.text import probability_text

BUSES = ("D40 14:15 7223", "D40 14:30 7220")
KEPT = 3
"""Every third report is used; all reports give the truth."""

COLOURS = ((svg.LIKELY, svg.UNLIKELY), ("#8a5ba3", "#d9c8e1"))
"""The colours of each bus: certainly at the stop, possibly at the stop."""

SECONDS = 165
TOP, ROW, BAR, WIDTH = 78, 30, 9, 800
LEFT, RIGHT = 256, 660


def picture(thinned: pd.DataFrame, full: pd.DataFrame, answers: pd.DataFrame, names: pd.Series) -> svg.Svg:
    """Draw a row for each stop at which both may have been and the truth is known, in the order of arrival."""
    visits, truth = ([rows[rows["journey"] == bus].set_index("stop") for bus in BUSES] for rows in (thinned, full))
    probability = answers.set_index("stop")["probability"]
    rows = visits[0].loc[probability.index].sort_values("arrival_lo").index
    rows = [stop for stop in rows if all(stop in true.index for true in truth)]
    scale, bottom = svg.Scale(0, SECONDS, LEFT, RIGHT), TOP + ROW * len(rows)
    parts = [svg.label(f"{BUSES[0]} and {BUSES[1]}, by one report in {KEPT}", svg.EDGE, 27, size=15, font_weight=600)]
    parts.append(svg.key(_signs(), RIGHT, 50))
    parts.append(svg.label("together", RIGHT + 16, TOP - 8, size=11, fill=svg.FAINT))
    parts += _axis(scale, bottom)
    for number, stop in enumerate(rows):
        y = TOP + ROW * number + 4
        begin = min(bus.loc[stop, "arrival_lo"] for bus in visits)
        parts.append(svg.label(names[stop].replace(" NW", ""), svg.EDGE, y + 13, size=11.5))
        parts.append(svg.label(_clock(begin), LEFT - 12, y + 13, size=11, fill=svg.FAINT, text_anchor="end"))
        for index, (bus, true) in enumerate(zip(visits, truth, strict=True)):
            parts += _bars(bus.loc[stop], true.loc[stop], begin, scale, y + (BAR + 2) * index, COLOURS[index])
        parts += _probability(probability[stop], y)
    return svg.page(parts, WIDTH, bottom + 46, "Two buses that travel together, and the probability at each stop")


def _signs() -> list[tuple[str, str, str]]:
    meanings = [("■", dark, f"bus {bus.split()[-1]}") for bus, (dark, _) in zip(BUSES, COLOURS, strict=True)]
    return [*meanings, ("■", COLOURS[0][1], "perhaps"), ("━", svg.TRUE, "by all reports")]


def _axis(scale: svg.Scale, bottom: float) -> Iterator[str]:
    for seconds in range(0, SECONDS + 1, 30):
        x = scale(seconds)
        yield svg.element("line", x1=x, x2=x, y1=TOP, y2=bottom, stroke=svg.GRID)
        yield svg.label(f"{seconds}", x, bottom + 16, size=11, fill=svg.FAINT, text_anchor="middle")
    yield svg.label(
        "seconds since one of them may have come", RIGHT, bottom + 34, size=11, fill=svg.FAINT, text_anchor="end"
    )


def _bars(
    visit: pd.Series, true: pd.Series, begin: float, scale: svg.Scale, y: float, colours: tuple[str, str]
) -> Iterator[str]:
    """Draw a bar over the time at which a bus may have been there, darker where it certainly was."""
    came = [visit["arrival"]] * 2 if visit["arrival"] > 0 else [visit["arrival_lo"], visit["arrival_hi"]]
    left = [visit["departure"]] * 2 if visit["departure"] > 0 else [visit["departure_lo"], visit["departure_hi"]]
    yield _bar(came[0] - begin, left[1] - begin, scale, y, BAR, colours[1])
    if came[1] < left[0]:
        yield _bar(came[1] - begin, left[0] - begin, scale, y, BAR, colours[0])
    yield _bar(true["arrival"] - begin, true["departure"] - begin, scale, y + BAR / 2 - 1, 2, svg.TRUE)


def _bar(start: float, end: float, scale: svg.Scale, y: float, height: float, fill: str) -> str:
    left, right = (min(max(scale(seconds), scale.left), scale.right) for seconds in (start, end))
    return svg.element("rect", x=left, y=y, width=max(right - left, 1), height=height, fill=fill)


def _probability(p: float, y: float) -> Iterator[str]:
    yield svg.element("rect", x=RIGHT + 60, y=y + 4, width=60, height=12, fill=svg.GRID)
    yield svg.element("rect", x=RIGHT + 60, y=y + 4, width=60 * p, height=12, fill=svg.LIKELY)
    yield svg.label(probability_text(p), RIGHT + 52, y + 14, size=11.5, text_anchor="end")


def _clock(seconds: float) -> str:
    return f"{pd.Timestamp(seconds, unit='s', tz='America/New_York'):%H:%M}"


def main() -> None:
    """Write the picture."""
    parser = options("Draw two buses of the real day.", FOLDER)
    parser.add_argument("--output", type=Path, default=Path("buses.svg"), help="the SVG file to write")
    arguments = parser.parse_args()
    folder = arguments.data
    reports, stops = read_reports(folder), read_stops(folder)
    reports = reports[reports["journey"].isin(BUSES)]
    thinned = visits_of(every(reports, KEPT, 0), stops)
    answers = ask(thinned)
    full = visits_of(reports, stops).dropna(subset=list(LINES))
    drawn = picture(thinned, full, answers, read_names(folder))
    arguments.output.write_text(drawn + "\n", encoding="utf-8")
    print(f"{arguments.output}: {len(answers)} stops")


if __name__ == "__main__":
    main()
