"""Draw coffee.svg, the picture of docs/inference.md, from a simulated office and Anabranch's answers.

Run, from the root of the repository:

    anabranch simulate office --output build/office
    anabranch run build/office/office.abq --query coffee --output build/answers
    python docs/images/coffee.py build/office build/answers/coffee docs/images/coffee.svg
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.charts.svg_chart import bar_width, probability_bars, threshold_line, true_mark
from anabranch.drawing import svg
from anabranch.evaluation.series import Series, instants, timeline
from anabranch.simulate.office import ANTENNAS, COFFEE_ROOM, HALLS, OFFICES

PERSON, OWN_OFFICE = "ben", "office-2"
SPAN = (datetime(2026, 3, 2, 9, 47, tzinfo=UTC), datetime(2026, 3, 2, 10, 10, tzinfo=UTC))
STEP = 5.0
THRESHOLD = 0.5

WIDTH, HEIGHT = 800, 500
LANES_TOP, LANE, TICK = 68, 24, 14
QUERY_TOP, QUERY_LINE = 194, 20
BARS_TOP, BARS = 332, 84
TEXT_LEFT = svg.EDGE + 28
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def picture(office: Path, answers: pa.Table) -> svg.Svg:
    """The whole picture: what was read, what was asked, what is answered."""
    start, end = (moment.timestamp() for moment in SPAN)
    scale = svg.Scale(start, end, svg.EDGE + 92, WIDTH - svg.EDGE - 16)
    places = of_person(pq.read_table(office / "true_locations.parquet"))
    trips = of_person(pq.read_table(office / "true_trips.parquet"))
    base = BARS_TOP + BARS
    parts = svg.time_axis(scale, base + 38, base, clock=True)
    parts += readings(of_person(pq.read_table(office / "readings.parquet")), places, scale)
    parts += query((office / "office.abq").read_text(encoding="utf-8"))
    parts += probability(answers, trips, scale, base)
    parts += whereabouts(places, scale, base + 15)
    return svg.page(parts, WIDTH, HEIGHT, "Missed RFID readings, a query, and the probability of the answer over time")


def of_person(table: pa.Table) -> pa.Table:
    """The rows about the person in the picture, without the name."""
    return table.filter(pc.equal(table["person"], PERSON)).drop_columns("person")


def heading(number: int, text: str, y: float) -> list[str]:
    """A numbered heading."""
    return [
        svg.element("circle", cx=svg.EDGE + 10, cy=y - 5, r=10, fill=svg.INK),
        svg.label(str(number), svg.EDGE + 10, y - 0.8, size=12, fill=svg.PAPER, text_anchor="middle", font_weight=700),
        svg.label(text, svg.EDGE + 28, y, size=15, font_weight=600),
    ]


def readings(read: pa.Table, places: pa.Table, scale: svg.Scale) -> list[str]:
    """A lane for each antenna: a tick where it read the tag, a small one where it should have."""
    parts = heading(1, f"What the antennas read of {PERSON.capitalize()}'s tag", 36)
    parts.append(svg.key([("■", svg.LIKELY, "read"), ("■", svg.TRUE, "there, but missed")], WIDTH - svg.EDGE, 36))
    for number, (antenna, sees) in enumerate(ANTENNAS.items()):
        y = LANES_TOP + LANE * number
        seen = set(instants(read.filter(pc.equal(read["antenna"], antenna))["t"]))
        likely = pa.array([place for place, chance in sees.items() if chance >= 0.5])
        near = set(instants(places.filter(pc.is_in(places["location"], likely))["t"]))
        parts.append(svg.label(antenna.replace("-", " "), scale.left - 12, y + 4, fill=svg.FAINT, text_anchor="end"))
        parts.append(svg.element("line", x1=scale.left, x2=scale.right, y1=y, y2=y, stroke=svg.GRID))
        parts += ticks_at(near - seen, scale, y, 5, svg.TRUE) + ticks_at(seen, scale, y, TICK, svg.LIKELY)
    return parts


def ticks_at(times: set[float], scale: svg.Scale, y: float, height: float, fill: str) -> list[str]:
    """A tick for each instant, as wide as a step."""
    width = scale(scale.start + STEP) - scale.left
    return [
        svg.element("rect", x=scale(t) - width / 2, y=y - height / 2, width=width, height=height, fill=fill)
        for t in sorted(times)
        if scale.start <= t <= scale.end
    ]


def query(workbook: str) -> list[str]:
    """The query as it stands in the workbook."""
    lines = workbook.split("CREATE QUERY coffee AS\n")[1].split("\n  GROUP BY")[0].split("\n")
    parts = heading(2, "What is asked: from the office, through nothing but the hall, to the coffee room", QUERY_TOP)
    height, width = QUERY_LINE * len(lines) + 20, WIDTH - svg.EDGE - TEXT_LEFT
    parts.append(svg.element("rect", x=TEXT_LEFT, y=QUERY_TOP + 14, width=width, height=height, rx=6, fill="#eef3f3"))
    for number, line in enumerate(lines):
        y = QUERY_TOP + 38 + QUERY_LINE * number
        parts.append(svg.label(line.strip(), TEXT_LEFT + 14, y, size=13, font_family=MONOSPACE))
    return parts


def probability(answers: pa.Table, trips: pa.Table, scale: svg.Scale, base: float) -> list[str]:
    """The answers over time, and the true trips below."""
    of_one = answers.filter(pc.equal(answers["p"], PERSON)).drop_columns("p")
    (group,) = timeline(of_one, by=[], truth=trips, span=SPAN).groups
    parts = heading(3, "What is answered: the probability that he just did", BARS_TOP - 22)
    parts.append(
        svg.key([("■", svg.INK, "in the hall"), ("▲", svg.TRUE, "he really did")], WIDTH - svg.EDGE, BARS_TOP - 22)
    )
    parts.append(svg.element("line", x1=scale.left, x2=scale.right, y1=base, y2=base, stroke=svg.FAINT))
    parts.append(threshold_line(scale, base - THRESHOLD * BARS))
    for share in (0, 0.5, 1):
        y = base - share * BARS + 4
        parts.append(svg.label(f"{share:g}", scale.left - 12, y, size=11, fill=svg.FAINT, text_anchor="end"))
    parts += probability_bars(group, scale, base, BARS, bar_width([group], scale), THRESHOLD)
    parts += peaks(group, scale, base)
    parts += [true_mark(scale(t), base + 3) for t in group.true_times if scale.start <= t <= scale.end]
    return parts


def peaks(group: Series, scale: svg.Scale, base: float) -> list[str]:
    """The highest probability of each minute's worth of answers, written above its bar."""
    parts = []
    for part in np.split(np.arange(group.times.size), np.flatnonzero(np.diff(group.times) > 60) + 1):
        peak = part[np.argmax(group.probabilities[part])]
        t, p = group.times[peak], group.probabilities[peak]
        if scale.start <= t <= scale.end:
            x, y, text = scale(t), base - p * BARS - 6, f"{p:.2f}"
            # A halo, so that the threshold's line does not run through the number.
            parts.append(svg.label(text, x, y, text_anchor="middle", font_weight=600, stroke=svg.PAPER, stroke_width=4))
            parts.append(svg.label(text, x, y, text_anchor="middle", font_weight=600))
    return parts


def whereabouts(places: pa.Table, scale: svg.Scale, y: float) -> list[str]:
    """A band that tells where the person really was, with names where there is room for them."""
    parts = [svg.label("in truth", scale.left - 12, y + 12, fill=svg.FAINT, text_anchor="end")]
    known = zip(instants(places["t"]), places["location"].to_pylist(), strict=True)
    inside = ((t, place) for t, place in known if scale.start <= t < scale.end)
    for (name, fill, ink), stretch in groupby(inside, key=lambda known: kind(known[1])):
        times = [t for t, _ in stretch]
        left, right = scale(times[0]), scale(times[-1] + STEP)
        parts.append(svg.element("rect", x=left, y=y, width=right - left, height=16, fill=fill))
        if right - left > 7 * len(name):
            middle = (left + right) / 2
            parts.append(svg.label(name, middle, y + 12, size=10.5, fill=ink, text_anchor="middle"))
    return parts


def kind(place: str) -> tuple[str, str, str]:
    """What to call a place, its colour, and the colour to write on it."""
    if place == OWN_OFFICE:
        return "own office", "#dfe5e6", svg.INK
    if place == COFFEE_ROOM:
        return "coffee", svg.TRUE, svg.PAPER
    if place in HALLS:
        return "hall", svg.INK, svg.PAPER
    return "colleague" if place in OFFICES else "meeting", "#f1e3c6", svg.INK


def main() -> None:
    """Read the folders named on the command line, and write the picture."""
    arguments = argparse.ArgumentParser(description="Draw the picture of docs/inference.md.")
    arguments.add_argument("office", type=Path, help="folder written by `anabranch simulate office`")
    arguments.add_argument("answers", type=Path, help="folder of the query's answers, written by `anabranch run`")
    arguments.add_argument("output", type=Path, help="the SVG file to write")
    given = arguments.parse_args()
    given.output.write_text(picture(given.office, pq.read_table(given.answers)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
