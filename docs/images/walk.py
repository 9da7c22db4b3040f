"""Draw walk.svg, the path of a row through each kind of query, for architecture.md.

Run, from the root of the repository:

    python docs/images/walk.py docs/images/walk.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from anabranch.drawing import svg

WIDTH, LEFT, TOP, LINE = 1120, 112, 64, 15
STEPS = ("read, check", "route", "packet", "hold", "keep", "kernel", "finish")
#: Which steps run on a worker before the shuffle, on a worker after it, and on Spark.
STAGES = (("on a worker", 0, 3), ("on a worker, one operator per bucket", 3, 6), ("Spark or driver", 6, 7))
COLUMN = (WIDTH - LEFT - 24) / len(STEPS)

#: What each kind does in each step; "|" is a line break.
KINDS = {
    "PATTERN": (
        "(key, value, t, p);|sums above 1 are|quarantined later",
        "by chain: the|variables that|join keys",
        "codes of keys|and values, t, p",
        "rows, until the|watermark passes;|readings: inferred",
        "a weight for each|automaton state|and value",
        "moves weights over|the instants of|a chain",
        "1 - prod(1 - p)|over chains, without|GROUP BY",
    ),
    "SEQUENCE": (
        "whole events",
        "by the columns that|are equal in all|components",
        "events, and which|components each|can be",
        "events, until the|watermark passes",
        "events that a match|in the window can|still need",
        "searches back from|the last event; gap|scores from tables",
        "events as columns",
    ),
    "RELATE": (
        "(key, order, t);|t is NULL|if it is lost",
        "by key; live: by|the columns that|WHERE equates",
        "codes of keys,|order, t",
        "nothing",
        "entities, until no|other can meet them",
        "in finish: sweeps|over the events|of a pair",
        "entities to blocks,|pairs in a block,|kernel",
    ),
    "MONITOR": (
        "(key, values,|rates, errors, t)",
        "by parts of keys: a|bucket for each|set of parts",
        "numbers, keys|and their parts",
        "positions, until the|watermark passes",
        "predictions, until|the next of the key,|and open answers",
        "polygons of matching|instants, and their|probability",
        "status dropped|in batch",
    ),
    "CONSTRAIN": (
        "whole events",
        "by equal columns,|cells of space and|intervals of time",
        "events, and which|variables each|can be",
        "events, until the|watermark passes",
        "events that a later|event can need",
        "joins new events|with kept ones,|searches solutions",
        "events as columns",
    ),
}


def picture() -> svg.Svg:
    """The drawing: steps at the top, one lane per kind below."""
    lane = 3 * LINE + 22
    height = TOP + 40 + lane * len(KINDS) + 60
    parts = []
    for name, first, last in STAGES:
        x, wide = LEFT + first * COLUMN, (last - first) * COLUMN
        box = {"x": x + 3, "y": TOP - 34, "width": wide - 6, "height": height - TOP - 30, "rx": 8}
        parts.append(svg.element("rect", **box, fill=svg.GRID, opacity=0.35))
        parts.append(svg.label(name, x + wide / 2, TOP - 18, size=12, fill=svg.FAINT, text_anchor="middle"))
    for index, step in enumerate(STEPS):
        x = LEFT + (index + 0.5) * COLUMN
        parts.append(svg.label(step, x, TOP + 8, size=13, text_anchor="middle", font_weight=600))
        if index:
            parts.append(_arrow(LEFT + index * COLUMN, TOP + 4))
    for number, (kind, cells) in enumerate(KINDS.items()):
        y = TOP + 34 + number * lane
        parts.append(svg.element("line", x1=16, x2=WIDTH - 16, y1=y, y2=y, stroke=svg.GRID))
        parts.append(svg.label(kind, 20, y + LINE + 14, size=13, fill=svg.LIKELY, font_weight=700))
        for index, cell in enumerate(cells):
            for line, text in enumerate(cell.split("|")):
                parts.append(
                    svg.label(text, LEFT + index * COLUMN + 12, y + LINE + 4 + line * LINE, size=11.5, fill=svg.INK)
                )
    foot = TOP + 34 + lane * len(KINDS)
    parts.append(svg.element("line", x1=16, x2=WIDTH - 16, y1=foot, y2=foot, stroke=svg.GRID))
    batch = "In batch, each operator is stepped once, with the watermark past the last row."
    parts.append(svg.label(batch, 20, foot + 22, size=12))
    streaming = (
        "In streaming it is opened, stepped and saved once per micro-batch; Spark keeps the bytes in its state store."
    )
    parts.append(svg.label(streaming, 20, foot + 40, size=12))
    description = "The path of a row through each kind of query, from file to answer"
    return svg.page(parts, WIDTH, height, description, dark=True)


def _arrow(x: float, y: float) -> str:
    return svg.element("path", d=f"M{x - 7} {y}h10m-4 -4l4 4l-4 4", fill="none", stroke=svg.INK)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(str(picture()) + "\n", encoding="utf-8")
