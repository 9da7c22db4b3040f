"""Draw what is found over what is lost: recall and precision, from the figures that run.py writes."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from anabranch.drawing.svg import EDGE, FAINT, GRID, LIKELY, TRUE, UNLIKELY, Scale, Svg, element, key, label, page

WIDTH, HEAD, LEFT, GAP, TALL, ROW = 800, 86, 116, 44, 130, 168

TITLE = "Passages found again, over the share of sightings that is lost"

COLOURS = {"the last was read": FAINT, "as read": TRUE, "probability >= 0.5": LIKELY, "all answers": UNLIKELY}
"""By what is told; the first is not found but could be, and is dashed."""

SHARES = (0.0, 0.5, 1.0)


def draw(told: pd.DataFrame) -> Svg:
    """A row for recall and one for precision, a column for each query."""
    parts = [label(TITLE, EDGE, 27, size=15, font_weight=600)]
    parts.append(key([("━", colour, which) for which, colour in COLOURS.items()], WIDTH - EDGE, 50))
    queries = list(told["query"].unique())
    wide = (WIDTH - EDGE - LEFT - GAP * (len(queries) - 1)) / len(queries)
    for row, measure in enumerate(("recall", "precision")):
        base = HEAD + row * ROW + TALL
        parts.append(label(measure, EDGE, base - TALL / 2 + 4, size=13))
        for column, query in enumerate(queries):
            across = Scale(0.0, told["lost"].max(), LEFT + column * (wide + GAP), LEFT + column * (wide + GAP) + wide)
            up = Scale(0.0, 1.0, base, base - TALL)
            if row == 0:
                middle = (across.left + across.right) / 2
                parts.append(label(query, middle, HEAD - 12, fill=FAINT, text_anchor="middle"))
            parts += _frame(across, up, sorted(told["lost"].unique()))
            parts += _lines(told[told["query"] == query], measure, across, up)
    height = HEAD + 2 * ROW + 14
    parts.append(label("sightings lost", WIDTH - EDGE, height - 12, size=11, fill=FAINT, text_anchor="end"))
    return page(parts, WIDTH, height, TITLE)


def _frame(across: Scale, up: Scale, rates: list[float]) -> Iterator[str]:
    for share in SHARES:
        y = up(share)
        yield element("line", x1=across.left, x2=across.right, y1=y, y2=y, stroke=FAINT if share == 0 else GRID)
        yield label(f"{share:g}", across.left - 6, y + 3.5, size=10, fill=FAINT, text_anchor="end")
    for rate in (0.0, *rates):
        yield label(f"{rate:.0%}", across(rate), up(0) + 15, size=10, fill=FAINT, text_anchor="middle")


def _lines(told: pd.DataFrame, measure: str, across: Scale, up: Scale) -> Iterator[str]:
    """A line for each way to ask; what is read of all sightings begins at 1."""
    for number, (which, colour) in enumerate(COLOURS.items()):
        rows = told[told["asked"] == which]
        places = [(across(lost), up(share)) for lost, share in zip(rows["lost"], rows[measure], strict=True)]
        if number < 2:
            places = [(across(0.0), up(1.0)), *places]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dashes = {"stroke_dasharray": "5 4"} if number == 0 else {}
        if number > 0 or measure == "recall":
            yield element("polyline", points=points, fill="none", stroke=colour, stroke_width=2, **dashes)
        if number > 0:
            yield from (element("circle", cx=x, cy=y, r=3, fill=colour) for x, y in places)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description="Draw the figures of run.py.")
    parser.add_argument("figures", type=Path, help="the CSV file that run.py --output has written")
    parser.add_argument("--output", type=Path, default=Path("passages.svg"), help="the picture")
    given = parser.parse_args()
    told = pd.read_csv(given.figures)
    given.output.write_text(draw(told) + "\n", encoding="utf-8")
    print(f"{given.output.name}: {told['query'].nunique()} queries, {told['lost'].nunique()} rates")


if __name__ == "__main__":
    main()
