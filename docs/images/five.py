"""Draw the five kinds of query from the worlds of `anabranch demo`: five.svg for the README, and one picture a kind.

Run, from the root of the repository:

    anabranch demo --output build/demo
    python docs/images/five.py build/demo docs/images
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import anabranch as ab
from anabranch.charts.svg_chart import bar_width, probability_bars, true_mark
from anabranch.drawing import svg
from anabranch.evaluation.series import instants, timeline
from anabranch.simulate.office import ANTENNAS

MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

WIDTH, ROW = 1000, 128
PANEL, ANSWERS = 392, 742
"""Where columns of the large picture begin: the world, and some answers."""

HEIGHT, LINE = 84, 17
"""How high a panel is, and how far lines of a query are apart."""

SIGNS = [("■", svg.LIKELY, "answered"), ("■", svg.TRUE, "really so")]


class Frame(NamedTuple):
    """Where a panel stands."""

    left: float
    top: float
    width: float

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + HEIGHT

    def scale(self, start: float, end: float, names: float = 0) -> svg.Scale:
        """From values to its width, with room for names at the left."""
        return svg.Scale(start, end, self.left + names, self.left + self.width - 6)


@dataclass(frozen=True)
class Kind:
    """A kind of query: what it asks of a world of the demo, in words and in the heart of its query.

    `draw` makes a panel of the answers in a world; `rows` are some answers, as (text, probability).
    """

    name: str
    scenario: str
    query: str
    words: str
    heart: Sequence[str]
    draw: Callable[[pa.Table, Path, Frame], Iterator[str]]
    rows: Callable[[pa.Table, Path], list[tuple[str, float]]]


def name(text: str, x: float, y: float) -> str:
    """A small label that ends at x."""
    return svg.label(text, x - 7, y, size=10.5, fill=svg.FAINT, text_anchor="end")


def corners(points: Iterable[tuple[float, float]]) -> str:
    """Points as SVG writes them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


# ---------------------------------------------------------------- PATTERN

PERSON = "ben"
SPAN = (datetime(2026, 3, 2, 9, 47, tzinfo=UTC), datetime(2026, 3, 2, 10, 10, tzinfo=UTC))


def coffee_of(answers: pa.Table) -> pa.Table:
    """What is answered of one person in the time that is drawn."""
    first, last = (pa.scalar(end, answers["t"].type) for end in SPAN)
    shown = pc.and_(pc.greater_equal(answers["t"], first), pc.less_equal(answers["t"], last))
    return answers.filter(pc.and_(shown, pc.equal(answers["p"], PERSON))).sort_by("t")


def draw_pattern(answers: pa.Table, world: Path, frame: Frame) -> Iterator[str]:
    """What the antennas read of one person, and the probability that he just came for coffee."""
    scale = frame.scale(*(end.timestamp() for end in SPAN), names=74)
    readings = pq.read_table(world / "readings.parquet", filters=[("person", "=", PERSON)])
    for number, antenna in enumerate(ANTENNAS):
        y = frame.top + 4 + 12 * number
        yield name(antenna.replace("-", " "), scale.left, y + 4)
        yield svg.element("line", x1=scale.left, x2=scale.right, y1=y, y2=y, stroke=svg.GRID)
        for t in instants(readings.filter(pc.equal(readings["antenna"], antenna))["t"]):
            if scale.start <= t <= scale.end:
                yield svg.element("rect", x=scale(t) - 1, y=y - 4, width=2, height=8, fill=svg.INK)
    base = frame.bottom - 9
    yield name("coffee?", scale.left, base - 12)
    trips = pq.read_table(world / "true_trips.parquet", filters=[("person", "=", PERSON)]).select(["t"])
    (group,) = timeline(coffee_of(answers).drop_columns("p"), by=[], truth=trips).groups
    yield svg.element("line", x1=scale.left, x2=scale.right, y1=base, y2=base, stroke=svg.FAINT)
    yield from probability_bars(group, scale, base, 26, max(bar_width([group], scale), 3), 0.5)
    yield from (true_mark(scale(t), base + 1) for t in group.true_times if scale.start <= t <= scale.end)


def rows_of_pattern(answers: pa.Table, world: Path) -> list[tuple[str, float]]:
    """The most probable."""
    rows = coffee_of(answers).sort_by([("probability", "descending")]).slice(0, 3).sort_by("t").to_pylist()
    return [(f"{row['t']:%H:%M:%S}  {row['p']}", row["probability"]) for row in rows]


# ---------------------------------------------------------------- SEQUENCE

LONGEST = 28 * 60
"""Seconds from the shelf to the exit that are drawn at most."""


def unpaid(answers: pa.Table) -> list[dict]:
    """The first items that left."""
    return answers.sort_by("t").slice(0, 3).to_pylist()


def draw_sequence(answers: pa.Table, world: Path, frame: Frame) -> Iterator[str]:
    """The way of some items from the shelf to the exit: what was read, what was not, and what was really stolen."""
    truth = pq.read_table(world / "true_trips.parquet", columns=["tag", "stolen"]).to_pydict()
    stolen = dict(zip(truth["tag"], truth["stolen"], strict=True))
    scale = frame.scale(-LONGEST, 0, names=74)
    for number, row in enumerate(unpaid(answers)):
        y, tag = frame.top + 28 + 24 * number, row["z"]["tag"]
        first, last = scale((row["t_start"] - row["t"]).total_seconds()), scale.right - 6
        if not number:
            for text, x in (("shelf", first), ("checkout?", (first + last) / 2), ("exit", last - 6)):
                yield svg.label(text, x, frame.top + 11, size=11, fill=svg.FAINT, text_anchor="middle")
        yield name(tag, scale.left, y + 4)
        yield svg.element("line", x1=first, x2=last, y1=y, y2=y, stroke=svg.UNLIKELY, stroke_width=2)
        for x, seen in ((first, True), ((first + last) / 2, False), (last, True)):
            yield read_or_not(x, y, seen)
        if stolen[tag]:
            yield true_mark(last - 20, y - 4)


def read_or_not(x: float, y: float, seen: bool) -> str:
    """A dot where something was read, an empty one where it may have been missed."""
    if seen:
        return svg.element("circle", cx=x, cy=y, r=5, fill=svg.INK)
    return svg.element(
        "circle", cx=x, cy=y, r=5, fill=svg.PAPER, stroke=svg.FAINT, stroke_width=1.5, stroke_dasharray="2 2"
    )


def rows_of_sequence(answers: pa.Table, world: Path) -> list[tuple[str, float]]:
    """Those that are drawn."""
    return [(f"{row['t']:%H:%M:%S}  {row['z']['tag']}", row["probability"]) for row in unpaid(answers)]


# ---------------------------------------------------------------- RELATE


def jams(answers: pa.Table, world: Path) -> list[dict]:
    """Three answers that are less than certain, first those about sectors with few events that are mostly known."""
    recorded = pq.read_table(world / "congestion.parquet")
    known = recorded.group_by("sector").aggregate([("t", "count"), ("n", "max")]).to_pylist()
    events = {row["sector"]: row["n_max"] for row in known if row["t_count"] >= 0.7 * row["n_max"] >= 4}
    rows = [
        row
        for row in answers.to_pylist()
        if 0.55 < row["probability"] < 0.95 and row["a"]["sector"] in events and row["b"]["sector"] in events
    ]
    return sorted(rows, key=lambda row: (events[row["a"]["sector"]] + events[row["b"]["sector"]], row["probability"]))[
        :3
    ]


def draw_relate(answers: pa.Table, world: Path, frame: Frame) -> Iterator[str]:
    """When two sectors were congested, as far as that is known."""
    first, *_ = jams(answers, world)
    table = pq.read_table(world / "congestion.parquet")
    sectors = [first["a"]["sector"], first["b"]["sector"]]
    known = [instants(table.filter(pc.equal(table["sector"], sector))["t"].drop_null()) for sector in sectors]
    start, end = min(map(min, known)), max(map(max, known))
    edge = 0.06 * (end - start)
    scale = frame.scale(start - edge, end + edge, names=74)
    for number, sector in enumerate(sectors):
        y = frame.top + 14 + 36 * number
        rows = table.filter(pc.equal(table["sector"], sector)).sort_by("seq")
        yield name(f"sector {sector}", scale.left, y + 11)
        yield svg.element("line", x1=scale.left, x2=scale.right, y1=y + 16, y2=y + 16, stroke=svg.GRID)
        yield from congested(rows, scale, y)


def congested(rows: pa.Table, scale: svg.Scale, y: float) -> Iterator[str]:
    """Dark where a sector was congested, pale where an end was lost, with how many were."""
    length = rows["n"][0].as_py()
    seen = [(row["seq"], t) for row, t in zip(rows.to_pylist(), times_of(rows), strict=True) if t is not None]
    ends = [(0, scale.start), *seen, (length + 1, scale.end)]
    for (before, begin), (after, end) in pairwise(ends):
        x, wide = scale(begin), max(scale(end) - scale(begin), 1.5)
        if after == before + 1 and before % 2:
            yield svg.element("rect", x=x, y=y, width=wide, height=16, fill=svg.LIKELY)
        elif after > before + 1:
            lost = after - before - 1
            yield svg.element("rect", x=x, y=y, width=wide, height=16, fill=svg.UNLIKELY, fill_opacity=0.55)
            if wide > 40:
                yield svg.label(f"{lost} lost", x + wide / 2, y + 12, size=11, text_anchor="middle")


def times_of(rows: pa.Table) -> list[float | None]:
    """Times as seconds, None where they are lost."""
    return [None if t is None else t.timestamp() for t in rows["t"].to_pylist()]


def rows_of_relate(answers: pa.Table, world: Path) -> list[tuple[str, float]]:
    """Those that are drawn first, and two more."""
    return [(f"sectors {row['a']['sector']}, {row['b']['sector']}", row["probability"]) for row in jams(answers, world)]


# ---------------------------------------------------------------- MONITOR

NEAR, ERROR = 400.0, 25.0


def encounter(answers: pa.Table) -> list[dict]:
    """The answers about the two cars of whom the probabilities differ most, in the order of time."""
    pairs: dict[tuple[int, int], list[dict]] = {}
    for row in answers.sort_by("valid_from").to_pylist():
        pairs.setdefault((row["a"]["car"], row["b"]["car"]), []).append(row)
    return max(pairs.values(), key=lambda rows: (sum(row["probability"] < 0.999 for row in rows), len(rows)))


def draw_monitor(answers: pa.Table, world: Path, frame: Frame) -> Iterator[str]:
    """How far two cars are from each other, as predicted and in truth, and when they may be near."""
    rows = encounter(answers)
    cars = (rows[0]["a"]["car"], rows[0]["b"]["car"])
    scale = frame.scale(0, 180, names=74)
    yield from distances(cars, world, scale, frame)
    yield name("near?", scale.left, frame.bottom - 7)
    for row in rows:
        x, tall = scale(row["valid_from"]), row["probability"] * 20
        wide = max(scale(row["valid_to"]) - x - 0.5, 1)
        fill = svg.LIKELY if row["probability"] >= 0.9 else svg.UNLIKELY
        yield svg.element("rect", x=x, y=frame.bottom - tall, width=wide, height=tall, fill=fill)
    yield svg.element("line", x1=scale.left, x2=scale.right, y1=frame.bottom, y2=frame.bottom, stroke=svg.FAINT)


def distances(cars: tuple[int, int], world: Path, scale: svg.Scale, frame: Frame) -> Iterator[str]:
    """In x or y, whichever is more: a band for what is predicted, with the errors of both, and dots for the truth."""
    reports, truth = (
        [pq.read_table(world / f"{file}.parquet", filters=[("car", "=", car)]).to_pydict() for car in cars]
        for file in ("cars", "true_positions")
    )
    times = np.arange(0, 180.0, 1.5)
    apart = np.abs(predicted(reports[0], times) - predicted(reports[1], times)).max(axis=1)
    places = [np.stack([each["x"], each["y"]], axis=1) for each in truth]
    real = np.abs(places[0] - places[1]).max(axis=1)
    to = svg.Scale(0, apart.max() + 2 * ERROR, frame.bottom - 26, frame.top)
    wide = scale.right - scale.left
    yield svg.element("rect", x=scale.left, y=to(NEAR), width=wide, height=to(0) - to(NEAR), fill=svg.WASH)
    yield name("distance", scale.left, frame.top + 12)
    yield name("400 m", scale.left, to(NEAR) + 4)
    lower, upper = (
        [(scale(t), to(max(d + side, 0))) for t, d in zip(times, apart, strict=True)]
        for side in (-2 * ERROR, 2 * ERROR)
    )
    yield svg.element("polygon", points=corners([*lower, *reversed(upper)]), fill=svg.UNLIKELY, fill_opacity=0.8)
    for t, distance in zip(truth[0]["t"], real, strict=True):
        yield svg.element("circle", cx=scale(t), cy=to(distance), r=1.6, fill=svg.TRUE)


def predicted(reports: dict[str, list[float]], times: np.ndarray) -> np.ndarray:
    """Where a car is by its last report, at each time."""
    t = np.array(reports["t"])
    last = np.searchsorted(t, times, side="right") - 1
    place, rate = (np.stack([reports[f"{axis}{end}"] for axis in "xy"], axis=1)[last] for end in ("", "_rate"))
    return place + rate * (times - t[last])[:, None]


def rows_of_monitor(answers: pa.Table, world: Path) -> list[tuple[str, float]]:
    """The first of the two cars, and the most and the least probable after it."""
    rows = encounter(answers)
    chosen = [rows[0], *sorted(rows[1:], key=lambda row: row["probability"])[:2]]
    return [
        (
            f"{row['valid_from']:.0f}–{row['valid_to']:.0f} s  cars {row['a']['car']}, {row['b']['car']}",
            row["probability"],
        )
        for row in sorted(chosen, key=lambda row: row["valid_from"])
    ]


# ---------------------------------------------------------------- CONSTRAIN


def draw_constrain(answers: pa.Table, world: Path, frame: Frame) -> Iterator[str]:
    """Where the buoys are, where storms passed, and which three buoys tell of one."""
    readings = pq.read_table(world / "readings.parquet", columns=["buoy", "lon", "lat"])
    places = readings.to_pandas().groupby("buoy").first()
    east = places["lon"].to_numpy() % 360
    x_of = svg.Scale(float(east.min()), float(east.max()), frame.left + 6, frame.left + frame.width - 6)
    y_of = svg.Scale(-25, 25, frame.bottom, frame.top)
    point = lambda event: (x_of(event["lon"] % 360), y_of(event["lat"]))  # noqa: E731 - one line of arithmetic
    yield svg.element("rect", x=frame.left, y=frame.top - 2, width=frame.width, height=HEIGHT + 4, rx=4, fill=svg.WASH)
    for lon, lat in zip(east, places["lat"], strict=True):
        yield svg.element("circle", cx=x_of(lon), cy=y_of(lat), r=1.3, fill=svg.FAINT, fill_opacity=0.55)
    storms = pq.read_table(world / "true_storms.parquet").to_pandas()
    for _, track in storms.groupby("storm"):
        inside = track[(track["lat"].abs() < 25) & (track["lon"] % 360).between(east.min(), east.max())]
        points = corners(map(point, inside.iloc[::6].to_dict("records")))
        yield svg.element("polyline", points=points, fill="none", stroke=svg.TRUE, stroke_width=1.2, stroke_opacity=0.8)
    for alert in answers["v"].to_pylist():
        yield svg.element(
            "polygon",
            points=corners(map(point, alert)),
            fill=svg.LIKELY,
            fill_opacity=0.25,
            stroke=svg.LIKELY,
            stroke_width=1,
        )


def rows_of_constrain(answers: pa.Table, world: Path) -> list[tuple[str, float]]:
    """The first of each day."""
    first: dict[date, tuple[str, float]] = {}
    for row in answers.sort_by("t").to_pylist():
        buoys = ", ".join(str(event["buoy"]) for event in row["v"])
        first.setdefault(row["t"].date(), (f"{row['t']:%d %b %H:%M}: {buoys}", row["probability"]))
    return list(first.values())[:3]


KINDS = (
    Kind(
        "PATTERN", "office", "coffee", "who went from the office, by nothing but the hall, to the coffee room?",
        (
            "PATTERN at(p, l1)", "  THEN at(p, l2)+<p | hall(l2)>", "  THEN at(p, l3)",
            "WHERE office(p, l1) AND coffee_room(l3)",
        ),
        draw_pattern, rows_of_pattern,
    ),
    Kind(
        "SEQUENCE", "shop", "shoplifting", "what left the shop unpaid, though antennas miss one tag in ten?",
        (
            "SEQUENCE (x, !y, z) FROM reads", "WHERE … y.reader = 'checkout' AND …", "MISS x 0.1, y 0.1",
            "DELAY … y GAMMA(4, 4 MINUTES)",
        ),
        draw_sequence, rows_of_sequence,
    ),
    Kind(
        "RELATE", "traffic", "jam", "where was the road congested together twice, though some ends were lost?",
        (
            "RELATE AT LEAST 2 a INTERSECTS SOME b", "FROM congestion AS a, congestion AS b",
            "WHERE a.sector < b.sector", "THRESHOLD 0.5",
        ),
        draw_relate, rows_of_relate,
    ),
    Kind(
        "MONITOR", "vehicles", "near", "which cars came within 400 m, though they report only what is unexpected?",
        (
            "MONITOR a, b FROM cars AS a, cars AS b", "WHERE ABS(a.x - b.x) <= 400",
            "  AND ABS(a.y - b.y) <= 400 AND a.car < b.car", "WITHIN 3 SEMANTICS MAY",
        ),
        draw_monitor, rows_of_monitor,
    ),
    Kind(
        "CONSTRAIN", "buoys", "low", "where did three buoys feel low pressure, near each other in half a day?",
        (
            "CONSTRAIN v*3 FROM readings", "WHERE v.pressure < 1005 AND v.buoy <> v.buoy",
            "  AND DISTANCE(v, v) <= 500000", "  AND SPAN(v, v) <= 12 HOURS",
        ),
        draw_constrain, rows_of_constrain,
    ),
)  # fmt: skip


# ---------------------------------------------------------------- pictures


def answers_to(kind: Kind, worlds: Path) -> pa.Table:
    """Ask the query of its world."""
    session = ab.Session()
    session.execute_file(str(worlds / kind.scenario / f"{kind.scenario}.abq"))
    return in_order(session.run(kind.query).toArrow())


def in_order(answers: pa.Table) -> pa.Table:
    """The answers in one order, whichever came first."""
    return pa.Table.from_pylist(sorted(answers.to_pylist(), key=str), schema=answers.schema)


def heading(kind: Kind, y: float) -> Iterator[str]:
    """The kind, and its query in words."""
    yield svg.label(kind.name, svg.EDGE, y, size=14, font_weight=700, fill=svg.LIKELY)
    yield svg.label(kind.words, svg.EDGE + 104, y, size=14.5)


def query(kind: Kind, top: float) -> Iterator[str]:
    """The heart of a query, with its indentation: the spaces of SVG do not count."""
    for number, line in enumerate(kind.heart):
        indent = 7.5 * (len(line) - len(line.lstrip()))
        yield svg.label(line.strip(), svg.EDGE + indent, top + LINE * number, size=12.5, font_family=MONOSPACE)


def table(rows: Sequence[tuple[str, float]], left: float, right: float, top: float) -> Iterator[str]:
    """Answers with their probabilities."""
    for number, (text, p) in enumerate(rows):
        y, wide = top + 28 * number, right - left
        yield svg.label(text, left, y, size=12)
        yield svg.label(f"{p:.3f}", right, y, size=12, font_weight=700, text_anchor="end")
        yield svg.element("rect", x=left, y=y + 5, width=wide, height=4, rx=2, fill=svg.GRID)
        yield svg.element("rect", x=left, y=y + 5, width=wide * p, height=4, rx=2, fill=svg.LIKELY)


def draw_all(worlds: Path, answers: Sequence[pa.Table]) -> svg.Svg:
    """All five, one below the other: the query, the heart of its query, the world, and some answers."""
    parts = [svg.key(SIGNS, WIDTH - svg.EDGE, 30)]
    for number, (kind, found) in enumerate(zip(KINDS, answers, strict=True)):
        top = 14 + ROW * number
        world = worlds / kind.scenario
        if number:
            parts.append(svg.element("line", x1=svg.EDGE, x2=WIDTH - svg.EDGE, y1=top - 4, y2=top - 4, stroke=svg.GRID))
        parts += heading(kind, top + 16)
        parts += query(kind, top + 44)
        parts += kind.draw(found, world, Frame(PANEL, top + 30, ANSWERS - PANEL - 22))
        parts += table(kind.rows(found, world), ANSWERS, WIDTH - svg.EDGE, top + 44)
    description = "Five kinds of query, each with a world, a query and answers"
    return svg.page(parts, WIDTH, 14 + ROW * len(KINDS), description, dark=True)


def draw_one(kind: Kind, worlds: Path, found: pa.Table) -> svg.Svg:
    """One kind: the world, and some answers."""
    world = worlds / kind.scenario
    parts = [
        svg.key(SIGNS, 800 - svg.EDGE, 152),
        *heading(kind, 30),
        *kind.draw(found, world, Frame(svg.EDGE, 50, 480)),
    ]
    parts += table(kind.rows(found, world), 540, 800 - svg.EDGE, 66)
    return svg.page(parts, 800, 50 + HEIGHT + 32, kind.words, dark=True)


def main() -> None:
    """Ask the queries, and write the pictures."""
    arguments = argparse.ArgumentParser(description="Draw the five kinds of query.")
    arguments.add_argument("worlds", type=Path, help="folder written by `anabranch demo --output`")
    arguments.add_argument("output", type=Path, help="the folder to write")
    given = arguments.parse_args()
    answers = [answers_to(kind, given.worlds) for kind in KINDS]
    given.output.mkdir(parents=True, exist_ok=True)
    pictures = {
        kind.name.lower(): draw_one(kind, given.worlds, found) for kind, found in zip(KINDS, answers, strict=True)
    }
    for file, picture in {**pictures, "five": draw_all(given.worlds, answers)}.items():
        (given.output / f"{file}.svg").write_text(picture + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
