"""Draw the pictures of docs/concepts.md. Their probabilities are the answers to the queries of concepts.abq.

Run, from the root of the repository:

    python docs/images/concepts.py docs/images
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import anabranch as ab
from anabranch.drawing import svg

WORKBOOK = Path(__file__).with_suffix(".abq")

Answers = Mapping[str, Sequence[Mapping[str, Any]]]

WIDTH, LEFT, RIGHT = 760, 120, 500
"""The width of a picture, and where its lanes begin and end; answers are at the right of them."""

BAR = WIDTH - svg.EDGE - RIGHT - 40

#: What Ana's location may be at each instant.
LOCATIONS = (
    {"office": 1.0},
    {"hall": 0.7, "office": 0.3},
    {"hall": 0.5, "coffee": 0.5},
    {"coffee": 0.8, "hall": 0.2},
)
LAST = len(LOCATIONS)

#: Minutes from the shelf to the exit.
TRIPS = {"cup": 10.0, "lamp": 20.0, "book": 45.0, "chair": 90.0}

#: When machines were switched on and off in turns; None is lost.
SWITCHED = {"oven": (10.0, 13.0), "washer": (4.0, None, 16.0, 18.0), "dryer": (4.0, None, None, 18.0)}

#: A report of a cold store: degrees, and degrees per minute.
TEMPERATURE, RATE, ERROR, PERIOD, LIMIT = 2.0, 0.1, 2.0, 60.0, 5.0

#: How many metres two vessels are apart, by their readings.
DISTANCES = (90.0, 170.0, 220.0, 280.0)
DISC, REACH = 50.0, 200.0


def inputs() -> dict[str, list[dict[str, Any]]]:
    """The rows of each stream."""
    return {
        "at": [
            {"person": "ana", "t": t, "location": location, "p": p}
            for t, alternatives in enumerate(LOCATIONS, start=1)
            for location, p in alternatives.items()
        ],
        "reads": [
            {"tag": tag, "reader": reader, "t": t}
            for tag, trip in TRIPS.items()
            for reader, t in (("shelf", 0.0), ("exit", trip))
        ],
        "machines": [
            {"machine": machine, "seq": seq, "t": t}
            for machine, times in SWITCHED.items()
            for seq, t in enumerate(times, start=1)
        ],
        "stores": [{"store": "fish", "t": 0.0, "temperature": TEMPERATURE, "temperature_rate": RATE}],
        "vessels": [
            {"vessel": f"{name}{pair}", "pair": pair, "t": 0.0, "x": x, "y": 1000.0 * pair}
            for pair, distance in enumerate(DISTANCES)
            for name, x in (("a", 0.0), ("b", distance))
        ],
    }


def ask() -> Answers:
    """The answers to all queries."""
    session = ab.Session()
    session.execute_file(str(WORKBOOK))
    for stream, rows in inputs().items():
        session.bind(stream, rows)
    names = ("coffee", "unpaid", "together", "warm", "likely_warm", "surely_warm", "near")
    return {name: [row.asDict(recursive=True) for row in session.run(name).collect()] for name in names}


def answer(p: float, y: float, text: str = "", fill: str = svg.LIKELY) -> Iterator[str]:
    """A probability as a bar and a number, at the right of a lane."""
    yield svg.element("rect", x=RIGHT, y=y - 4, width=BAR, height=8, rx=2, fill=svg.GRID)
    if p:
        yield svg.element("rect", x=RIGHT, y=y - 4, width=BAR * p, height=8, rx=2, fill=fill)
    yield svg.label(text or f"{p:.2f}", WIDTH - svg.EDGE, y + 4, text_anchor="end", font_weight=600)


def lane(name: str, y: float) -> str:
    """The name of a lane."""
    return svg.label(name, svg.EDGE, y + 4, fill=svg.FAINT)


def titled(text: str, over_answers: str) -> list[str]:
    """The title of a picture, and what its bars show."""
    return [
        svg.label(text, svg.EDGE, 30, size=14, font_weight=600),
        svg.label(over_answers, WIDTH - svg.EDGE, 30, fill=svg.FAINT, text_anchor="end"),
    ]


# ---------------------------------------------------------------- possible worlds


def worlds() -> list[tuple[tuple[str, ...], float]]:
    """All possible worlds, with their probabilities."""
    paths = product(*(alternatives.items() for alternatives in LOCATIONS))
    return [(tuple(place for place, _ in path), math.prod(p for _, p in path)) for path in paths]


def is_coffee(world: Sequence[str]) -> bool:
    """Whether the query is true at the last instant: office, then nothing but the hall, then coffee."""
    *before, last = world
    office = max((t for t, place in enumerate(before) if place == "office"), default=LAST)
    return last == "coffee" and office < LAST - 2 and all(place == "hall" for place in before[office + 1 :])


def draw_worlds(answers: Answers) -> svg.Svg:
    """Every world is a row; the probability of the answer is the sum of those in which it is true."""
    (p,) = (row["probability"] for row in answers["coffee"] if row["t"] == LAST)
    true = [chance for world, chance in worlds() if is_coffee(world)]
    if not math.isclose(p, sum(true), abs_tol=1e-9):
        raise ValueError(f"the worlds sum to {sum(true)}, and the answer is {p}")
    parts = titled("Where Ana may have been at four instants: eight worlds", "probability of the world")
    cell, row, top = (RIGHT - 20 - svg.EDGE) / LAST, 30, 78
    for t in range(LAST):
        x = svg.EDGE + cell * (t + 0.5)
        parts.append(svg.label(f"instant {t + 1}", x, top - 18, size=11, fill=svg.FAINT, text_anchor="middle"))
    for number, (world, chance) in enumerate(worlds()):
        y = top + row * number
        for t, place in enumerate(world):
            parts += place_cell(place, svg.EDGE + cell * t, y, cell - 6, row - 8)
        fill = svg.LIKELY if is_coffee(world) else svg.UNLIKELY
        parts += answer(chance, y + (row - 8) / 2, fill=fill)
    bottom = top + row * len(worlds()) + 22
    parts.append(svg.element("line", x1=svg.EDGE, x2=WIDTH - svg.EDGE, y1=bottom - 22, y2=bottom - 22, stroke=svg.GRID))
    words = "At instant 4: from the office, through the hall only, into the coffee room"
    parts.append(svg.label(words, svg.EDGE, bottom + 4, font_weight=600, fill=svg.LIKELY))
    total = " + ".join(f"{chance:.2f}" for chance in true)
    parts.append(
        svg.label(f"{total} = {p:.2f}", WIDTH - svg.EDGE, bottom + 4, text_anchor="end", font_weight=700, size=14)
    )
    return svg.page(
        parts, WIDTH, bottom + 24, "Eight possible worlds, and the two in which the query is true", dark=True
    )


def place_cell(place: str, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """A location in a world."""
    fill, ink = {
        "office": (svg.GRID, svg.INK),
        "hall": (svg.UNLIKELY, svg.INK),
        "coffee": (svg.LIKELY, svg.PAPER),
    }[place]
    yield svg.element("rect", x=x, y=y, width=width, height=height, rx=4, fill=fill)
    yield svg.label(place, x + width / 2, y + height / 2 + 4, fill=ink, text_anchor="middle")


# ---------------------------------------------------------------- missed readings


def draw_missed(answers: Answers) -> svg.Svg:
    """Items that were read at the shelf and at the exit only: the longer it took, the likelier is a missed reading."""
    probabilities = {row["z"]["tag"]: row["probability"] for row in answers["unpaid"]}
    scale = svg.Scale(0, max(TRIPS.values()), LEFT, RIGHT - 40)
    parts = titled("Read at the shelf and at the exit, but not at the till", "probability: not paid for")
    top, row = 66, 34
    for number, (tag, trip) in enumerate(TRIPS.items()):
        y = top + row * number
        parts += [lane(f"{tag}, {trip:.0f} min", y), line(scale(0), scale(trip), y)]
        parts += [dot(scale(0), y), missing(scale(trip / 2), y), dot(scale(trip), y)]
        parts += answer(probabilities[tag], y)
    bottom = top + row * len(TRIPS)
    signs = [("●", svg.INK, "read"), ("○", svg.FAINT, "paid, but not read? The till misses one tag in ten")]
    parts.append(svg.key(signs, svg.EDGE, bottom + 6, anchor="start"))
    return svg.page(parts, WIDTH, bottom + 24, "Four items without a reading at the till", dark=True)


def line(x1: float, x2: float, y: float) -> str:
    """A line along a lane."""
    return svg.element("line", x1=x1, x2=x2, y1=y, y2=y, stroke=svg.UNLIKELY, stroke_width=2)


def dot(x: float, y: float) -> str:
    """An event that was read."""
    return svg.element("circle", cx=x, cy=y, r=5, fill=svg.INK)


def missing(x: float, y: float) -> str:
    """An event that may have been missed."""
    look = {"fill": svg.PAPER, "stroke": svg.FAINT, "stroke_width": 1.5, "stroke_dasharray": "2 2"}
    return svg.element("circle", cx=x, cy=y, r=5, **look)


# ---------------------------------------------------------------- lost ends


def draw_lost(answers: Answers) -> svg.Svg:
    """When machines were on: dark where it is known, pale where an end was lost."""
    probabilities = {row["a"]["machine"]: row["probability"] for row in answers["together"]}
    scale = svg.Scale(2, 20, LEFT, RIGHT - 40)
    parts = titled("Which machine was on while the oven was?", "probability")
    top, row, tall = 62, 40, 20
    begin, end = SWITCHED["oven"]
    height = row * len(SWITCHED) - 10
    x, wide = scale(begin), scale(end) - scale(begin)
    parts.append(svg.element("rect", x=x, y=top - 10, width=wide, height=height, fill=svg.WASH))
    for number, (machine, times) in enumerate(SWITCHED.items()):
        y = top + row * number
        parts += [lane(machine, y), line(scale.left, scale.right, y + tall / 2)]
        parts += switched_on(times, scale, y - tall / 2, tall)
        if machine in probabilities:
            parts += answer(probabilities[machine], y)
    bottom = top + row * len(SWITCHED)
    parts += svg.time_axis(scale, bottom - 14, bottom - 14, clock=False)
    signs = [("■", svg.LIKELY, "on"), ("■", svg.UNLIKELY, "a time was lost here")]
    parts.append(svg.key(signs, WIDTH - svg.EDGE, bottom + 2))
    return svg.page(parts, WIDTH, bottom + 22, "Three machines, two of them with lost times", dark=True)


def switched_on(times: Sequence[float | None], scale: svg.Scale, y: float, tall: float) -> Iterator[str]:
    """The stretches between recorded events."""
    known = [(seq, t) for seq, t in enumerate(times, start=1) if t is not None]
    for (before, begin), (after, end) in pairwise(known):
        lost, middle = after - before - 1, (scale(begin) + scale(end)) / 2
        box = {"x": scale(begin), "y": y, "width": scale(end) - scale(begin), "height": tall}
        if lost:
            yield svg.element("rect", **box, fill=svg.UNLIKELY)
            words = "when was it switched off?" if lost == 1 else "off, and on again: when?"
            yield svg.label(words, middle, y + tall / 2 + 4, size=11, text_anchor="middle")
        elif before % 2:
            yield svg.element("rect", **box, fill=svg.LIKELY)


# ---------------------------------------------------------------- predictions


def draw_predicted(answers: Answers) -> svg.Svg:
    """A predicted temperature with its error, and from when on the limit is exceeded, and how probably."""
    (possible,), (likely,), (sure,) = (answers[name] for name in ("warm", "likely_warm", "surely_warm"))
    steps = [
        (possible["valid_from"], 0.0),
        (possible["certain_from"], 0.25),
        (likely["certain_from"], 0.5),
        (sure["certain_from"], 1.0),
    ]
    parts = titled("One report, at minute 0: 2 °C, rising by 0.1 °C per minute", "probability: above 5 °C")
    scale, y_of = svg.Scale(0, PERIOD, LEFT, RIGHT - 40), svg.Scale(0, 10, 210, 60)
    parts += svg.time_axis(scale, 214, 60, clock=False)
    ends = [(t, TEMPERATURE + RATE * t) for t in (0.0, PERIOD)]
    band = [(scale(t), y_of(value + side)) for side in (-ERROR, ERROR) for t, value in ends[:: 1 if side < 0 else -1]]
    parts.append(svg.element("polygon", points=svg.point_list(band), fill=svg.UNLIKELY, fill_opacity=0.6))
    (x1, y1), (x2, y2) = ((scale(t), y_of(value)) for t, value in ends)
    parts.append(svg.element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=svg.LIKELY, stroke_width=2))
    parts += limit(scale, y_of)
    for number, (t, p) in enumerate(steps):
        y = 84 + 36 * number
        parts.append(svg.element("circle", cx=scale(t), cy=y_of(LIMIT), r=4, fill=svg.INK))
        parts += answer(p, y, "" if p else "> 0")
        parts.append(svg.label(f"from minute {t:.0f}", RIGHT, y - 9, size=11, fill=svg.FAINT))
    parts.append(lane("predicted", y1 + 2))
    parts.append(svg.label("± 2 °C", svg.EDGE, y1 + 20, size=11, fill=svg.FAINT))
    return svg.page(parts, WIDTH, 244, "A predicted temperature, its error, and a limit", dark=True)


def limit(scale: svg.Scale, y_of: svg.Scale) -> Iterator[str]:
    """The line of the limit."""
    y = y_of(LIMIT)
    look = {"stroke": svg.TRUE, "stroke_width": 1.5, "stroke_dasharray": "5 4"}
    yield svg.element("line", x1=scale.left, x2=scale.right, y1=y, y2=y, **look)
    yield svg.label("limit 5 °C", svg.EDGE, y + 4, fill=svg.TRUE)


# ---------------------------------------------------------------- locations


def draw_located(answers: Answers) -> svg.Svg:
    """Pairs of vessels: their readings, how far they may be off, and whether they are within 200 m."""
    probabilities = {row["a"]["pair"]: row["probability"] for row in answers["near"]}
    parts = titled("Two vessels, each located to within 50 m: are they within 200 m?", "probability")
    top, row, pixels = 88, 70, 0.6
    for pair, distance in enumerate(DISTANCES):
        y, x = top + row * pair, LEFT + 44
        parts.append(lane(f"{distance:.0f} m apart", y))
        other = x + distance * pixels
        parts.append(svg.element("line", x1=x, x2=x + REACH * pixels, y1=y + 30, y2=y + 30, stroke=svg.TRUE))
        for centre in (x, other):
            parts.append(svg.element("circle", cx=centre, cy=y, r=DISC * pixels, fill=svg.UNLIKELY, fill_opacity=0.7))
        parts += [dot(x, y), dot(other, y)]
        parts += answer(probabilities.get(pair, 0.0), y)
    bottom = top + row * len(DISTANCES) - 18
    signs = [("●", svg.INK, "read"), ("●", svg.UNLIKELY, "may be here"), ("―", svg.TRUE, "200 m")]
    parts.append(svg.key(signs, svg.EDGE, bottom + 8, anchor="start"))
    return svg.page(parts, WIDTH, bottom + 26, "Four pairs of vessels with the errors of their locations", dark=True)


PICTURES: dict[str, Callable[[Answers], svg.Svg]] = {
    "concepts-worlds": draw_worlds,
    "concepts-missed": draw_missed,
    "concepts-lost": draw_lost,
    "concepts-predicted": draw_predicted,
    "concepts-located": draw_located,
}


def main() -> None:
    """Ask the queries, and write the pictures."""
    arguments = argparse.ArgumentParser(description="Draw the pictures of docs/concepts.md.")
    arguments.add_argument("output", type=Path, help="the folder to write")
    output = arguments.parse_args().output
    answers = ask()
    for name, draw in PICTURES.items():
        (output / f"{name}.svg").write_text(draw(answers) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
