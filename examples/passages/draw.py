"""Draw recall and precision over the share of lost sightings, from the figures that run.py writes."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from anabranch.drawing import svg

WIDTH, HEAD, LEFT, GAP, TALL, ROW = 800, 86, 116, 44, 130, 168

TITLE = "Passages found again, over the share of sightings that is lost"

COLOURS = {
    "the last was read": svg.FAINT,
    "as read": svg.TRUE,
    "probability >= 0.5": svg.LIKELY,
    "all answers": svg.UNLIKELY,
}
"""The colours of the methods; the first is an upper bound, and is dashed."""

SHARES = (0.0, 0.5, 1.0)


def draw(table: pd.DataFrame) -> svg.Svg:
    """Draw a row for recall and one for precision, with a column for each query."""
    signs = [("━", colour, method) for method, colour in COLOURS.items()]
    parts = svg.header(TITLE, signs, WIDTH, key_baseline=50)
    queries = list(table["query"].unique())
    wide = (WIDTH - svg.EDGE - LEFT - GAP * (len(queries) - 1)) / len(queries)
    for row, measure in enumerate(("recall", "precision")):
        base = HEAD + row * ROW + TALL
        parts.append(svg.label(measure, svg.EDGE, base - TALL / 2 + 4, size=13))
        for column, query in enumerate(queries):
            across = svg.Scale(
                0.0, table["lost"].max(), LEFT + column * (wide + GAP), LEFT + column * (wide + GAP) + wide
            )
            up = svg.Scale(0.0, 1.0, base, base - TALL)
            if row == 0:
                middle = (across.left + across.right) / 2
                parts.append(svg.label(query, middle, HEAD - 12, fill=svg.FAINT, text_anchor="middle"))
            parts += _frame(across, up, sorted(table["lost"].unique()))
            parts += _lines(table[table["query"] == query], measure, across, up)
    height = HEAD + 2 * ROW + 14
    parts.append(svg.label("sightings lost", WIDTH - svg.EDGE, height - 12, size=11, fill=svg.FAINT, text_anchor="end"))
    return svg.page(parts, WIDTH, height, TITLE)


def _frame(across: svg.Scale, up: svg.Scale, rates: list[float]) -> Iterator[str]:
    for share in SHARES:
        y = up(share)
        yield svg.element(
            "line", x1=across.left, x2=across.right, y1=y, y2=y, stroke=svg.FAINT if share == 0 else svg.GRID
        )
        yield svg.label(f"{share:g}", across.left - 6, y + 3.5, size=10, fill=svg.FAINT, text_anchor="end")
    for rate in (0.0, *rates):
        yield svg.label(f"{rate:.0%}", across(rate), up(0) + 15, size=10, fill=svg.FAINT, text_anchor="middle")


def _lines(table: pd.DataFrame, measure: str, across: svg.Scale, up: svg.Scale) -> Iterator[str]:
    """Draw a line for each method; the methods without MISS begin at 1."""
    for number, (method, colour) in enumerate(COLOURS.items()):
        rows = table[table["method"] == method]
        points = [(across(lost), up(share)) for lost, share in zip(rows["lost"], rows[measure], strict=True)]
        if number < 2:
            points = [(across(0.0), up(1.0)), *points]
        dashes = {"stroke_dasharray": "5 4"} if number == 0 else {}
        if number > 0 or measure == "recall":
            yield svg.element(
                "polyline", points=svg.point_list(points), fill="none", stroke=colour, stroke_width=2, **dashes
            )
        if number > 0:
            yield from (svg.element("circle", cx=x, cy=y, r=3, fill=colour) for x, y in points)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description="Draw the figures of run.py.")
    parser.add_argument("figures", type=Path, help="the CSV file that run.py --output wrote")
    parser.add_argument("--output", type=Path, default=Path("passages.svg"), help="the SVG file to write")
    arguments = parser.parse_args()
    table = pd.read_csv(arguments.figures)
    arguments.output.write_text(draw(table) + "\n", encoding="utf-8")
    print(f"{arguments.output.name}: {table['query'].nunique()} queries, {table['lost'].nunique()} rates")


if __name__ == "__main__":
    main()
