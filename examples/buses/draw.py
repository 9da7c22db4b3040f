"""Draw two buses on their way, stop by stop: when each may have been there, and how likely both were at once."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from prepare import DATA, FOLDER, LINES, find_data, read_names, read_reports, read_stops, visits_of
from run import ask, every

from anabranch.drawing.svg import EDGE, FAINT, GRID, LIKELY, TRUE, UNLIKELY, Scale, Svg, element, key, label, page
from anabranch.text import probability_text

BUSES = ("D40 14:15 7223", "D40 14:30 7220")
KEPT = 3
"""Every third report is taken; the others are for the truth."""

COLOURS = ((LIKELY, UNLIKELY), ("#8a5ba3", "#d9c8e1"))
"""Of each bus: surely at the stop, perhaps at the stop."""

SECONDS = 165
TOP, ROW, BAR, WIDTH = 78, 30, 9, 800
LEFT, RIGHT = 256, 660


def picture(some: pd.DataFrame, full: pd.DataFrame, answers: pd.DataFrame, names: pd.Series) -> Svg:
    """A row for each stop at which both may have been and all reports tell, in the order in which they came there."""
    of_bus, truth = ([of[of["journey"] == bus].set_index("stop") for bus in BUSES] for of in (some, full))
    probability = answers.set_index("stop")["probability"]
    rows = of_bus[0].loc[probability.index].sort_values("arrival_lo").index
    rows = [stop for stop in rows if all(stop in true.index for true in truth)]
    scale, bottom = Scale(0, SECONDS, LEFT, RIGHT), TOP + ROW * len(rows)
    parts = [label(f"{BUSES[0]} and {BUSES[1]}, by one report in {KEPT}", EDGE, 27, size=15, font_weight=600)]
    parts.append(key(_signs(), RIGHT, 50))
    parts.append(label("together", RIGHT + 16, TOP - 8, size=11, fill=FAINT))
    parts += _axis(scale, bottom)
    for number, stop in enumerate(rows):
        y = TOP + ROW * number + 4
        begin = min(bus.loc[stop, "arrival_lo"] for bus in of_bus)
        parts.append(label(names[stop].replace(" NW", ""), EDGE, y + 13, size=11.5))
        parts.append(label(_clock(begin), LEFT - 12, y + 13, size=11, fill=FAINT, text_anchor="end"))
        for place, (bus, true) in enumerate(zip(of_bus, truth, strict=True)):
            parts += _bars(bus.loc[stop], true.loc[stop], begin, scale, y + (BAR + 2) * place, COLOURS[place])
        parts += _probability(probability[stop], y)
    return page(parts, WIDTH, bottom + 46, "Two buses that travel together, and the probability at each stop")


def _signs() -> list[tuple[str, str, str]]:
    meanings = [("■", dark, f"bus {bus.split()[-1]}") for bus, (dark, _) in zip(BUSES, COLOURS, strict=True)]
    return [*meanings, ("■", COLOURS[0][1], "perhaps"), ("━", TRUE, "by all reports")]


def _axis(scale: Scale, bottom: float) -> Iterator[str]:
    for seconds in range(0, SECONDS + 1, 30):
        x = scale(seconds)
        yield element("line", x1=x, x2=x, y1=TOP, y2=bottom, stroke=GRID)
        yield label(f"{seconds}", x, bottom + 16, size=11, fill=FAINT, text_anchor="middle")
    yield label("seconds since one of them may have come", RIGHT, bottom + 34, size=11, fill=FAINT, text_anchor="end")


def _bars(
    visit: pd.Series, true: pd.Series, begin: float, scale: Scale, y: float, colours: tuple[str, str]
) -> Iterator[str]:
    """From when a bus may have been there to when it may still have been; darker where it surely was."""
    came = [visit["arrival"]] * 2 if visit["arrival"] > 0 else [visit["arrival_lo"], visit["arrival_hi"]]
    left = [visit["departure"]] * 2 if visit["departure"] > 0 else [visit["departure_lo"], visit["departure_hi"]]
    yield _bar(came[0] - begin, left[1] - begin, scale, y, BAR, colours[1])
    if came[1] < left[0]:
        yield _bar(came[1] - begin, left[0] - begin, scale, y, BAR, colours[0])
    yield _bar(true["arrival"] - begin, true["departure"] - begin, scale, y + BAR / 2 - 1, 2, TRUE)


def _bar(start: float, end: float, scale: Scale, y: float, height: float, fill: str) -> str:
    left, right = (min(max(scale(seconds), scale.left), scale.right) for seconds in (start, end))
    return element("rect", x=left, y=y, width=max(right - left, 1), height=height, fill=fill)


def _probability(p: float, y: float) -> Iterator[str]:
    yield element("rect", x=RIGHT + 60, y=y + 4, width=60, height=12, fill=GRID)
    yield element("rect", x=RIGHT + 60, y=y + 4, width=60 * p, height=12, fill=LIKELY)
    yield label(probability_text(p), RIGHT + 52, y + 14, size=11.5, text_anchor="end")


def _clock(seconds: float) -> str:
    return f"{pd.Timestamp(seconds, unit='s', tz='America/New_York'):%H:%M}"


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description="Draw two buses of the real day.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument("--output", type=Path, default=Path("buses.svg"), help="the SVG file to write")
    given = parser.parse_args()
    folder = find_data(given.data)
    reports, stops = read_reports(folder), read_stops(folder)
    reports = reports[reports["journey"].isin(BUSES)]
    some = visits_of(every(reports, KEPT, 0), stops)
    answers = ask(some)
    full = visits_of(reports, stops).dropna(subset=list(LINES))
    drawn = picture(some, full, answers, read_names(folder))
    given.output.write_text(drawn + "\n", encoding="utf-8")
    print(f"{given.output}: {len(answers)} stops")


if __name__ == "__main__":
    main()
