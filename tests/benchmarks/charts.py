"""Reads the charts that a test has drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/2000/svg}"


def parse_chart(text: str) -> ElementTree.Element:
    """The root of a chart; raises if it is not SVG."""
    root = ElementTree.fromstring(text)  # noqa: S314 - the test has drawn it
    assert root.tag == f"{NAMESPACE}svg"
    return root


def polylines(root: ElementTree.Element) -> list[dict[str, str]]:
    """The attributes of the curves of a chart."""
    return [line.attrib for line in root.iter(f"{NAMESPACE}polyline")]


def texts(root: ElementTree.Element) -> set[str | None]:
    """The texts of a chart that have no parts."""
    return {text.text for text in root.iter(f"{NAMESPACE}text")}


def chart_names(folder: Path) -> list[str]:
    """The names of the charts in a folder, each of which must be SVG."""
    for path in folder.iterdir():
        parse_chart(path.read_text())
    return sorted(path.name for path in folder.iterdir())
