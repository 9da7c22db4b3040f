"""Draw half an hour over Switzerland with the aircraft that may be near each other, and one pair in detail."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from prepare import FOLDER, STEP, degrees, read_positions
from run import ALTITUDE, NEAR, PAIR, ask, between, together
from shapely import MultiPoint
from shared import options

from anabranch.charts import draw_map
from anabranch.columns.times import TimeKind
from anabranch.drawing import svg
from anabranch.inference.reporting import Reporting, Sensors

FIRST, LAST = pd.Timestamp("2018-08-01 12:00", tz="UTC"), pd.Timestamp("2018-08-01 12:30", tz="UTC")
POINT = pd.Timedelta(minutes=1)
"""The time between two points of a drawn track."""

CLOSE = ("4006d6", "40643c")
"""Two aircraft that pass at 12:27, one 297 m below the other and a few hundred metres to the side."""

SENSORS = Reporting(errors=(500.0, 500.0, 50.0), period=120.0)
"""The sensors of the workbook."""

AROUND = pd.Timedelta(seconds=50)
"""The time that is drawn before and after they may be near."""

WIDTH, TOP, PLAN, BAR, LEFT = 800, 62, 400, 22, 150
COLOURS = (("#33348e", "#9a9bd6"), ("#1d7a3a", "#9fd3ae"))
"""The colours of the reports and of the predictions of each aircraft."""

To = Callable[[float, float], tuple[float, float]]
"""A map from metres to pixels."""


# ------------------------------------------------------------ half an hour


def meetings(answers: pd.DataFrame, positions: pd.DataFrame) -> pa.Table:
    """Return the positions of pairs when it was most probable that they were near; without aircraft that had left."""
    best = answers.sort_values(["probability", "valid_from"]).groupby(PAIR, as_index=False).last()
    located = [between(positions, best[aircraft], best["sample"])[["x", "y"]] for aircraft in PAIR]
    here = ~(located[0].isna() | located[1].isna()).any(axis="columns")
    columns: dict[str, pa.Array] = {"t": pa.array(best["sample"][here])}
    for aircraft, position in zip(PAIR, located, strict=True):
        lon, lat = degrees(position["x"][here], position["y"][here])
        columns[aircraft] = pa.array(pd.DataFrame({"lon": lon, "lat": lat}).to_dict("records"))
    return pa.table(columns)


def draw_meetings(pairs: pa.Table, positions: pd.DataFrame) -> svg.Svg:
    """Draw the tracks of aircraft, and which were near each other."""
    title = "Aircraft that may pass over each other"
    tracks = {"background": tracks_of(positions), "background_by": "track", "background_name": "the way of an aircraft"}
    return draw_map(pairs, title=title, join="hull", **tracks)


def tracks_of(positions: pd.DataFrame) -> pa.Table:
    """Return a position per minute of each aircraft, with the number of its flight."""
    begins = (positions["icao24"] != positions["icao24"].shift()) | (positions["t"].diff() > STEP)
    track = begins.cumsum()
    ends = track != track.shift(-1)
    points = positions.assign(track=track)[(positions["t"].dt.floor(POINT) == positions["t"]) | begins | ends]
    lon, lat = (values.round(4).to_numpy() for values in degrees(points["x"], points["y"]))
    return pa.table({"lon": lon, "lat": lat, "track": points["track"].to_numpy()})


# ------------------------------------------------------------ a pair


def reports_of(positions: pd.DataFrame) -> pd.DataFrame:
    """Return the reports of one aircraft: t, x, y and their rates, and until when the prediction applies."""
    values = positions[["x", "y", "altitude"]].to_numpy()
    micros = positions["t"].astype("int64").to_numpy()
    reports = Sensors(SENSORS, TimeKind.TIMESTAMP).report(np.zeros(len(values), np.int32), micros, values)
    sent = positions.iloc[reports.row].reset_index(drop=True)
    sent[["x_rate", "y_rate"]] = reports.rates[:, :2]
    longest = sent["t"] + pd.Timedelta(seconds=SENSORS.period)
    return sent.assign(until=sent["t"].shift(-1).fillna(longest.iloc[-1]).clip(upper=longest))


def draw_pair(may: pd.DataFrame, must: pd.DataFrame, positions: pd.DataFrame) -> svg.Svg:
    """Draw the positions and predictions of two aircraft, and when they were near each other."""
    first, last = may["valid_from"].min() - AROUND, may["valid_to"].max() + AROUND
    both = [positions[positions["icao24"] == aircraft] for aircraft in CLOSE]
    flown = [rows[rows["t"].between(first, last)] for rows in both]
    to = _plan(flown)
    title = f"{CLOSE[0]} and {CLOSE[1]}: what they sent, and where they were"
    parts = svg.header(title, _signs(), WIDTH, key_baseline=50)
    sent = [rows[(rows["until"] > first) & (rows["t"] < last)] for rows in map(reports_of, both)]
    for draw in (_swept, _lines):
        for reports, colours in zip(sent, COLOURS, strict=True):
            parts += draw(reports, first, last, to, colours)
    for rows in flown:
        parts += [svg.element("circle", cx=x, cy=y, r=2, fill=svg.TRUE) for x, y in map(to, rows["x"], rows["y"])]
    for reports, (dark, _) in zip(sent, COLOURS, strict=True):
        parts += _dots(reports[reports["t"] >= first], to, dark)
    parts += _scale_bar(to(NEAR["x"], 0)[0] - to(0, 0)[0])
    parts += _times(may, must, positions, svg.Scale(first.timestamp(), last.timestamp(), LEFT, WIDTH - svg.EDGE))
    return svg.page(parts, WIDTH, TOP + PLAN + 3 * BAR + 64, title)


def _plan(flown: list[pd.DataFrame]) -> To:
    """Return the map from metres to pixels: all positions in the middle of the page, with one scale for x and y."""
    low, high = (pd.concat(flown)[["x", "y"]].agg(end) for end in ("min", "max"))
    size = high - low + 3 * SENSORS.errors[0]
    scale, middle = min((WIDTH - 2 * svg.EDGE) / size["x"], PLAN / size["y"]), (low + high) / 2
    return lambda x, y: (WIDTH / 2 + (x - middle["x"]) * scale, TOP + PLAN / 2 - (y - middle["y"]) * scale)


def _signs() -> list[tuple[str, str, str]]:
    sent = [("●", dark, f"sent by {name}") for name, (dark, _) in zip(CLOSE, COLOURS, strict=True)]
    return [*sent, ("■", COLOURS[0][1], "expected, with its error"), ("●", svg.TRUE, "all positions")]


def _ends(row: tuple, first: pd.Timestamp, last: pd.Timestamp) -> list[tuple[float, float]]:
    """Return where a prediction begins and ends."""
    seconds = [(max(min(t, last), first) - row.t).total_seconds() for t in (row.t, row.until)]
    return [(row.x + row.x_rate * s, row.y + row.y_rate * s) for s in seconds]


def _swept(
    sent: pd.DataFrame, first: pd.Timestamp, last: pd.Timestamp, to: To, colours: tuple[str, str]
) -> Iterator[str]:
    """Draw each prediction as the region that it covers with its error."""
    signs = list(product((-SENSORS.errors[0], SENSORS.errors[0]), (-SENSORS.errors[1], SENSORS.errors[1])))
    for row in sent.itertuples():
        corners = [to(x + dx, y + dy) for x, y in _ends(row, first, last) for dx, dy in signs]
        points = svg.point_list(MultiPoint(corners).convex_hull.exterior.coords)
        yield svg.element("polygon", points=points, fill=colours[1], fill_opacity=0.45)


def _lines(
    sent: pd.DataFrame, first: pd.Timestamp, last: pd.Timestamp, to: To, colours: tuple[str, str]
) -> Iterator[str]:
    """Draw each prediction as a line, and an arrow in the direction of flight at the end."""
    for row in sent.itertuples():
        (x1, y1), (x2, y2) = (to(*end) for end in _ends(row, first, last))
        yield svg.element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colours[0], stroke_width=1)
    angle = np.degrees(np.arctan2(y2 - y1, x2 - x1))
    transform = f"translate({x2:.1f} {y2:.1f}) rotate({angle:.1f})"
    yield svg.element("path", d="M 14 0 L 3 -5 L 3 5 Z", fill=colours[0], transform=transform)


def _dots(sent: pd.DataFrame, to: To, fill: str) -> Iterator[str]:
    """Draw the reports of an aircraft, with their times."""
    for row in sent.itertuples():
        x, y = to(row.x, row.y)
        yield svg.element("circle", cx=x, cy=y, r=4.5, fill=fill, stroke=svg.PAPER, stroke_width=0.8)
        halo = {"stroke": svg.PAPER, "stroke_width": 3, "paint_order": "stroke", "stroke_opacity": 0.8}
        yield svg.label(f"{row.t:%H:%M:%S}", x + 8, y - 7, size=11, fill=fill, **halo)


def _scale_bar(width: float) -> Iterator[str]:
    """Draw a line as long as 10 km."""
    y = TOP + PLAN - 6
    yield svg.element("line", x1=svg.EDGE, x2=svg.EDGE + width, y1=y, y2=y, stroke=svg.FAINT, stroke_width=2)
    yield svg.label("10 km", svg.EDGE + width / 2, y - 6, size=11, fill=svg.FAINT, text_anchor="middle")


def _times(may: pd.DataFrame, must: pd.DataFrame, positions: pd.DataFrame, scale: svg.Scale) -> Iterator[str]:
    """Draw when the two may be near each other, when they must be, and when they are."""
    top = TOP + PLAN + 32
    yield from svg.time_axis(scale, top + 3 * BAR, top - 4, clock=True)
    true = together(positions[positions["icao24"].isin(CLOSE)], ALTITUDE["over"])["t"]
    rows = [("over: MAY", may, svg.UNLIKELY), ("surely_over: MUST", must, svg.LIKELY)]
    for number, (name, answers, fill) in enumerate(rows):
        y = top + number * BAR
        yield svg.label(name, svg.EDGE, y + 12, size=11.5)
        for row in answers.itertuples():
            x0, x1 = scale(row.valid_from.timestamp()), scale(row.valid_to.timestamp())
            yield svg.element("rect", x=x0, y=y + 2, width=x1 - x0, height=BAR - 8, fill=fill, stroke=svg.PAPER)
    yield svg.label("all positions", svg.EDGE, top + 2 * BAR + 12, size=11.5)
    for t in true:
        yield svg.element("circle", cx=scale(t.timestamp()), cy=top + 2 * BAR + 8, r=3.2, fill=svg.TRUE)


def main() -> None:
    """Write the pictures."""
    parser = options("Draw aircraft that may be near each other.", FOLDER)
    parser.add_argument(
        "--output", type=Path, default=Path(), help="the folder for aircraft.svg and aircraft-encounter.svg"
    )
    arguments = parser.parse_args()
    positions = read_positions(arguments.data)
    positions = positions[positions["t"].between(FIRST, LAST)]
    (over, surely), _ = ask(positions, "over", "surely_over")
    may, must = (answers[(answers["a"] == CLOSE[0]) & (answers["b"] == CLOSE[1])] for answers in (over, surely))
    pairs = meetings(over, positions)
    pictures = {
        "aircraft.svg": draw_meetings(pairs, positions),
        "aircraft-encounter.svg": draw_pair(may, must, positions),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        Path(arguments.output, name).write_text(picture + "\n", encoding="utf-8")
    print(f"aircraft.svg: {pairs.num_rows} pairs of {positions['icao24'].nunique()} aircraft")
    print(f"aircraft-encounter.svg: {len(may)} answers to over, {len(must)} to surely_over")


if __name__ == "__main__":
    main()
