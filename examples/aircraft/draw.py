"""Draw half an hour over Switzerland with the aircraft that may be near each other, and one pair closely."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import DATA, FOLDER, STEP, degrees, find_data, read_positions
from run import ALTITUDE, NEAR, PAIR, ask, between, together
from shapely import MultiPoint

from anabranch.charts import draw_map
from anabranch.columns.times import TimeKind
from anabranch.drawing.svg import (
    EDGE,
    FAINT,
    LIKELY,
    PAPER,
    TRUE,
    UNLIKELY,
    Scale,
    Svg,
    element,
    key,
    label,
    page,
    time_axis,
)
from anabranch.inference.reporting import Reporting, Sensors

FIRST, LAST = pd.Timestamp("2018-08-01 12:00", tz="UTC"), pd.Timestamp("2018-08-01 12:30", tz="UTC")
POINT = pd.Timedelta(minutes=1)
"""How far apart the corners of the drawn ways are."""

CLOSE = ("4006d6", "40643c")
"""Two aircraft that pass at 12:27, one 297 m below the other and a few hundred metres beside it."""

SENSORS = Reporting(errors=(500.0, 500.0, 50.0), period=120.0)
"""As in the workbook."""

AROUND = pd.Timedelta(seconds=50)
"""What is drawn before and after they may be near."""

WIDTH, TOP, PLAN, BAR, LEFT = 800, 62, 400, 22, 150
COLOURS = (("#33348e", "#9a9bd6"), ("#1d7a3a", "#9fd3ae"))
"""Of each aircraft: what it sent, and where it was expected."""

To = Callable[[float, float], tuple[float, float]]
"""From metres to pixels."""


# ------------------------------------------------------------ half an hour


def meetings(answers: pd.DataFrame, positions: pd.DataFrame) -> pa.Table:
    """Where two aircraft were when it was most probable that they were near; without those that had left."""
    best = answers.sort_values(["probability", "valid_from"]).groupby(PAIR, as_index=False).last()
    places = [between(positions, best[who], best["sample"])[["x", "y"]] for who in PAIR]
    here = ~(places[0].isna() | places[1].isna()).any(axis="columns")
    columns: dict[str, pa.Array] = {"t": pa.array(best["sample"][here])}
    for who, place in zip(PAIR, places, strict=True):
        lon, lat = degrees(place["x"][here], place["y"][here])
        columns[who] = pa.array(pd.DataFrame({"lon": lon, "lat": lat}).to_dict("records"))
    return pa.table(columns)


def draw_meetings(pairs: pa.Table, positions: pd.DataFrame) -> Svg:
    """Where aircraft flew, and who was near whom."""
    title = "Aircraft that may pass over each other"
    ways = {"background": ways_of(positions), "background_by": "way", "background_name": "the way of an aircraft"}
    return draw_map(pairs, title=title, join="hull", **ways)


def ways_of(positions: pd.DataFrame) -> pa.Table:
    """A place a minute of each aircraft, with the number of its flight."""
    begins = (positions["icao24"] != positions["icao24"].shift()) | (positions["t"].diff() > STEP)
    way = begins.cumsum()
    ends = way != way.shift(-1)
    some = positions.assign(way=way)[(positions["t"].dt.floor(POINT) == positions["t"]) | begins | ends]
    lon, lat = degrees(some["x"], some["y"])
    return pa.table({"lon": lon.round(4).to_numpy(), "lat": lat.round(4).to_numpy(), "way": some["way"].to_numpy()})


# ------------------------------------------------------------ a pair


def reports_of(positions: pd.DataFrame) -> pd.DataFrame:
    """What one aircraft sends: t, x, y and their rates, and until when that is good."""
    values = positions[["x", "y", "altitude"]].to_numpy()
    micros = positions["t"].astype("int64").to_numpy()
    reports = Sensors(SENSORS, TimeKind.TIMESTAMP).report(np.zeros(len(values), np.int32), micros, values)
    sent = positions.iloc[reports.row].reset_index(drop=True)
    sent[["x_rate", "y_rate"]] = reports.rates[:, :2]
    longest = sent["t"] + pd.Timedelta(seconds=SENSORS.period)
    return sent.assign(until=sent["t"].shift(-1).fillna(longest.iloc[-1]).clip(upper=longest))


def draw_pair(may: pd.DataFrame, must: pd.DataFrame, positions: pd.DataFrame) -> Svg:
    """Where two aircraft were and where they were expected, and when they were near each other."""
    first, last = may["valid_from"].min() - AROUND, may["valid_to"].max() + AROUND
    of = [positions[positions["icao24"] == who] for who in CLOSE]
    flown = [each[each["t"].between(first, last)] for each in of]
    to = _plan(flown)
    title = f"{CLOSE[0]} and {CLOSE[1]}: what they sent, and where they were"
    parts = [label(title, EDGE, 27, size=15, font_weight=600), key(_signs(), WIDTH - EDGE, 50)]
    sent = [each[(each["until"] > first) & (each["t"] < last)] for each in map(reports_of, of)]
    for draw in (_swept, _lines):
        parts += [part for each, two in zip(sent, COLOURS, strict=True) for part in draw(each, first, last, to, two)]
    for each in flown:
        parts += [element("circle", cx=x, cy=y, r=2, fill=TRUE) for x, y in map(to, each["x"], each["y"])]
    for each, (dark, _) in zip(sent, COLOURS, strict=True):
        parts += _dots(each[each["t"] >= first], to, dark)
    parts += _length(to(NEAR["x"], 0)[0] - to(0, 0)[0])
    parts += _times(may, must, positions, Scale(first.timestamp(), last.timestamp(), LEFT, WIDTH - EDGE))
    return page(parts, WIDTH, TOP + PLAN + 3 * BAR + 64, title)


def _plan(flown: list[pd.DataFrame]) -> To:
    """From places to pixels: all that is flown, in the middle of the page, and as long in x as in y."""
    low, high = (pd.concat(flown)[["x", "y"]].agg(end) for end in ("min", "max"))
    room = high - low + 3 * SENSORS.errors[0]
    scale, middle = min((WIDTH - 2 * EDGE) / room["x"], PLAN / room["y"]), (low + high) / 2
    return lambda x, y: (WIDTH / 2 + (x - middle["x"]) * scale, TOP + PLAN / 2 - (y - middle["y"]) * scale)


def _signs() -> list[tuple[str, str, str]]:
    who = [("●", dark, f"sent by {name}") for name, (dark, _) in zip(CLOSE, COLOURS, strict=True)]
    return [*who, ("■", COLOURS[0][1], "expected, with its error"), ("●", TRUE, "all positions")]


def _ends(row: tuple, first: pd.Timestamp, last: pd.Timestamp) -> list[tuple[float, float]]:
    """Where a prediction begins and ends."""
    seconds = [(max(min(t, last), first) - row.t).total_seconds() for t in (row.t, row.until)]
    return [(row.x + row.x_rate * s, row.y + row.y_rate * s) for s in seconds]


def _swept(
    sent: pd.DataFrame, first: pd.Timestamp, last: pd.Timestamp, to: To, colours: tuple[str, str]
) -> Iterator[str]:
    """Each prediction as the region that it passes through with its error."""
    signs = list(product((-SENSORS.errors[0], SENSORS.errors[0]), (-SENSORS.errors[1], SENSORS.errors[1])))
    for row in sent.itertuples():
        corners = [to(x + dx, y + dy) for x, y in _ends(row, first, last) for dx, dy in signs]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in MultiPoint(corners).convex_hull.exterior.coords)
        yield element("polygon", points=points, fill=colours[1], fill_opacity=0.45)


def _lines(
    sent: pd.DataFrame, first: pd.Timestamp, last: pd.Timestamp, to: To, colours: tuple[str, str]
) -> Iterator[str]:
    """Each prediction as a line, and at the end where the aircraft flies to."""
    for row in sent.itertuples():
        (x1, y1), (x2, y2) = (to(*place) for place in _ends(row, first, last))
        yield element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colours[0], stroke_width=1)
    angle = np.degrees(np.arctan2(y2 - y1, x2 - x1))
    turned = f"translate({x2:.1f} {y2:.1f}) rotate({angle:.1f})"
    yield element("path", d="M 14 0 L 3 -5 L 3 5 Z", fill=colours[0], transform=turned)


def _dots(sent: pd.DataFrame, to: To, fill: str) -> Iterator[str]:
    """What an aircraft sent, and when."""
    for row in sent.itertuples():
        x, y = to(row.x, row.y)
        yield element("circle", cx=x, cy=y, r=4.5, fill=fill, stroke=PAPER, stroke_width=0.8)
        around = {"stroke": PAPER, "stroke_width": 3, "paint_order": "stroke", "stroke_opacity": 0.8}
        yield label(f"{row.t:%H:%M:%S}", x + 8, y - 7, size=11, fill=fill, **around)


def _length(wide: float) -> Iterator[str]:
    """How long 10 km are."""
    y = TOP + PLAN - 6
    yield element("line", x1=EDGE, x2=EDGE + wide, y1=y, y2=y, stroke=FAINT, stroke_width=2)
    yield label("10 km", EDGE + wide / 2, y - 6, size=11, fill=FAINT, text_anchor="middle")


def _times(may: pd.DataFrame, must: pd.DataFrame, positions: pd.DataFrame, scale: Scale) -> Iterator[str]:
    """When they may be near each other, when they must be, and when they are."""
    top = TOP + PLAN + 32
    yield from time_axis(scale, top + 3 * BAR, top - 4, clock=True)
    true = together(positions[positions["icao24"].isin(CLOSE)], ALTITUDE["over"])["t"]
    rows = [("over: MAY", may, UNLIKELY), ("surely_over: MUST", must, LIKELY)]
    for number, (name, answers, fill) in enumerate(rows):
        y = top + number * BAR
        yield label(name, EDGE, y + 12, size=11.5)
        for row in answers.itertuples():
            x0, x1 = scale(row.valid_from.timestamp()), scale(row.valid_to.timestamp())
            yield element("rect", x=x0, y=y + 2, width=x1 - x0, height=BAR - 8, fill=fill, stroke=PAPER)
    yield label("all positions", EDGE, top + 2 * BAR + 12, size=11.5)
    for t in true:
        yield element("circle", cx=scale(t.timestamp()), cy=top + 2 * BAR + 8, r=3.2, fill=TRUE)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description="Draw aircraft that may be near each other.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument(
        "--output", type=Path, default=Path(), help="the folder for aircraft.svg and aircraft-encounter.svg"
    )
    given = parser.parse_args()
    positions = read_positions(find_data(given.data))
    positions = positions[positions["t"].between(FIRST, LAST)]
    (over, surely), _ = ask(positions, "over", "surely_over")
    may, must = (each[(each["a"] == CLOSE[0]) & (each["b"] == CLOSE[1])] for each in (over, surely))
    pairs = meetings(over, positions)
    pictures = {
        "aircraft.svg": draw_meetings(pairs, positions),
        "aircraft-encounter.svg": draw_pair(may, must, positions),
    }
    given.output.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        Path(given.output, name).write_text(picture + "\n", encoding="utf-8")
    print(f"aircraft.svg: {pairs.num_rows} pairs of {positions['icao24'].nunique()} aircraft")
    print(f"aircraft-encounter.svg: {len(may)} answers to over, {len(must)} to surely_over")


if __name__ == "__main__":
    main()
