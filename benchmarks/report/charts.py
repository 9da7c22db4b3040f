"""The charts of the report, as Vega-Lite specifications without colours and fonts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.growth import EXPONENT
from benchmarks.growth import points as curve_points
from benchmarks.papers import ALGORITHM, OURS, PAPER, Figure, Point
from benchmarks.peers.running import ANABRANCH
from benchmarks.processes import JVM, THIS, WORKERS
from benchmarks.results import Results
from benchmarks.stages import DECODE, STAGES

Specification = dict[str, Any]

SHUFFLE = "shuffle"
SHUFFLED = ("shuffle written", "shuffle awaited")
"""What Spark's task metrics say about the way of rows from one task to another."""

SPARK = "rest of Spark"
"""The processor time of Spark's processes that is in no stage: the JVM, its exchange with Python, and the driver."""

ROLES = (THIS, JVM, WORKERS)


def chart(values: Sequence[dict[str, Any]], height: int, **fields: Any) -> Specification:
    """Return a specification that is as wide as its column."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": list(values)},
        **fields,
    }


# ------------------------------------------------------------ stages


def stage_order() -> list[str]:
    """Return the stages in the order of the data, with the shuffle and the rest of Spark."""
    before = STAGES.index(DECODE)
    return [*STAGES[:before], SHUFFLE, *STAGES[before:], SPARK]


def stage_rows(results: Results) -> list[dict[str, Any]]:
    """Return the processor seconds of each stage of each kind for a million rows, and its share."""
    rows = []
    for workload, of_kind in results.by_workload().items():
        count = float(workload.rsplit("; ", 1)[1].split()[0].replace(",", ""))
        seconds = {stage: of_kind.value(stage) or 0.0 for stage in STAGES}
        spark = sum(of_kind.value(f"Spark: processor time of {role}") or 0.0 for role in ROLES)
        seconds[SHUFFLE] = sum(of_kind.value(f"Spark: {metric}", "s") or 0.0 for metric in SHUFFLED)
        seconds[SPARK] = max(spark - sum(seconds.values()), 0.0)
        total = sum(seconds.values())
        for number, stage in enumerate(stage_order()):
            rows.append(
                {
                    "kind": workload.partition(":")[0], "stage": stage, "order": number,
                    "seconds": seconds[stage] / count * 1e6, "share": seconds[stage] / total,
                }
            )  # fmt: skip
    return rows


def stage_chart(rows: Sequence[dict[str, Any]]) -> Specification:
    """Return stacked bars, one per kind."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    return chart(
        rows,
        36 * len(kinds) + 110,
        mark={"type": "bar", "tooltip": True},
        encoding={
            "y": {"field": "kind", "type": "nominal", "sort": kinds, "title": None},
            "x": {"field": "share", "type": "quantitative", "axis": {"format": "%"}, "title": "share of the time",
                "scale": {"domain": [0, 1]}},
            "color": {
                "field": "stage", "type": "nominal", "sort": stage_order(), "title": None,
                "scale": {"scheme": "tableau10"}, "legend": {"columns": 3},
            },
            "order": {"field": "order"},
            "tooltip": [
                {"field": "kind"}, {"field": "stage"},
                {"field": "seconds", "format": ".3f", "title": "CPU s per million rows"},
                {"field": "share", "format": ".0%"},
            ],
        },
    )  # fmt: skip


# ------------------------------------------------------------ growth


def growth_rows(results: Results) -> list[dict[str, Any]]:
    """Return the curves of one workload, relative to their first points, with the exponents in their names."""
    metrics = {record["metric"]: record["value"] for record in results if record["unit"] == "s"}
    rows = []
    for dimension, curve in curve_points(metrics).items():
        exponent = results.value(f"{dimension}: {EXPONENT}") or 0.0
        first = min(curve)
        for size, seconds in curve.items():
            rows.append(
                {
                    "dimension": f"{dimension} ({exponent:.2f})", "size": size, "seconds": seconds,
                    "x": size / first, "y": seconds / curve[first],
                }
            )  # fmt: skip
    return rows


def growth_chart(rows: Sequence[dict[str, Any]]) -> Specification:
    """Return the curves with logarithmic axes, and a line for proportional growth."""
    most = max(row["x"] for row in rows)
    columns = 1 if max(len(row["dimension"]) for row in rows) > 24 else 2
    line = {"values": [{"x": 1, "y": 1}, {"x": most, "y": most}]}
    x = {"field": "x", "type": "quantitative", "scale": {"type": "log"}, "title": "times the first size"}
    y = {"field": "y", "type": "quantitative", "scale": {"type": "log"}, "title": "times the first time"}
    tooltip = [
        {"field": "dimension"}, {"field": "size", "format": ","},
        {"field": "seconds", "format": ".3s", "title": "CPU s"},
    ]  # fmt: skip
    colour = {"field": "dimension", "type": "nominal", "title": None, "legend": {"columns": columns, "labelLimit": 260}}
    return chart(
        rows,
        240,
        layer=[
            {
                "data": line,
                "mark": {"type": "line", "strokeDash": [4, 4], "opacity": 0.5},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {"type": "line", "point": True},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
        ],
    )


# ------------------------------------------------------------ peers


def peer_rows(results: Results) -> list[dict[str, Any]]:
    """Return the contestants of one workload, the fastest first."""
    rows = []
    for record in results:
        if record["unit"] == "s" and ": " not in record["metric"]:
            name = record["metric"]
            rows.append(
                {
                    "name": name, "seconds": record["value"], "first": results.value(f"{name}: first run"),
                    "processor": results.value(f"{name}: processor time"),
                    "memory": results.value(f"{name}: peak memory"), "ours": name == ANABRANCH,
                }
            )  # fmt: skip
    return sorted(rows, key=lambda row: row["seconds"])


def peer_chart(rows: Sequence[dict[str, Any]]) -> Specification:
    """Return a bar for the seconds of each contestant."""
    return chart(
        rows,
        26 * len(rows) + 50,
        mark={"type": "bar", "tooltip": True},
        encoding={
            "y": {"field": "name", "type": "nominal", "sort": [row["name"] for row in rows], "title": None},
            "x": {"field": "seconds", "type": "quantitative", "title": "seconds"},
            "color": {"field": "ours", "type": "nominal", "legend": None, "sort": [True, False]},
            "tooltip": [
                {"field": "name"}, {"field": "seconds", "format": ".3f"},
                {"field": "memory", "format": ",.0f", "title": "peak memory, MB"},
            ],
        },
    )  # fmt: skip


# ------------------------------------------------------------ papers


def figure_chart(figure: Figure, points: Sequence[Point]) -> Specification:
    """Return the curves of one workload: solid for Anabranch, dashed for the paper's algorithms, crosses as stated."""
    values = [{"series": p.series, "x": p.x, "y": p.y, "source": p.source} for p in points]
    scale = {"type": "log"} if figure.logarithmic else {"zero": False}
    sources = [OURS, ALGORITHM, PAPER]
    x = {"field": "x", "type": "quantitative", "title": figure.x_title, "scale": {"zero": False}}
    y = {"field": "y", "type": "quantitative", "title": figure.unit or "share", "scale": scale}
    colour = {"field": "series", "type": "nominal", "title": None, "legend": {"columns": 2, "labelLimit": 200}}
    tooltip = [
        {"field": "series"}, {"field": "source"}, {"field": "x"}, {"field": "y", "format": ",.4~g"},
    ]  # fmt: skip
    dash = {
        "field": "source", "type": "nominal", "legend": None,
        "scale": {"domain": sources, "range": [[1, 0], [5, 4], [1, 0]]},
    }  # fmt: skip
    shape = {
        "field": "source", "type": "nominal", "legend": None,
        "scale": {"domain": sources, "range": ["circle", "circle", "cross"]},
    }  # fmt: skip
    both = {"x": x, "y": y, "color": colour}
    return chart(
        values,
        260,
        layer=[
            {"mark": "line", "encoding": {**both, "strokeDash": dash}},
            {
                "mark": {"type": "point", "filled": True, "size": 55},
                "encoding": {**both, "shape": shape, "tooltip": tooltip},
            },
        ],
    )
