"""What is in the specification of a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anabranch.plotting.chart import Chart


def rows(chart: Chart, field: str) -> list[dict[str, Any]]:
    """The rows of the data set of a chart that has a field."""
    for values in chart.to_dict()["datasets"].values():
        if values and field in values[0]:
            found: list[dict[str, Any]] = values
            return found
    raise AssertionError(f"no data have {field}")


def marks(node: Any) -> Iterator[dict[str, Any]]:
    """All views of a specification that have a mark."""
    if isinstance(node, dict):
        if "mark" in node:
            yield node
        for name, part in node.items():
            yield from marks(part if name != "config" else None)
    elif isinstance(node, list):
        for part in node:
            yield from marks(part)


def subtitle(chart: Chart) -> list[str]:
    lines: list[str] = chart.to_dict()["title"].get("subtitle", [])
    return lines
