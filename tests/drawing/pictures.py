"""Helpers that read the elements of an SVG picture."""

from __future__ import annotations

from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/2000/svg}"


def parsed(picture: str) -> ElementTree.Element:
    """Return the root element of a picture."""
    return ElementTree.fromstring(picture)  # noqa: S314 (drawn by the test)


def elements(picture: str, name: str, **attributes: str) -> list[ElementTree.Element]:
    """Return the elements with a name and with these attributes (`_` in their names becomes `-`)."""
    wanted = {key.replace("_", "-"): value for key, value in attributes.items()}.items()
    return [found for found in parsed(picture).iter(NAMESPACE + name) if wanted <= found.attrib.items()]


def texts(picture: str) -> list[str]:
    """Return the text of each text element."""
    return ["".join(text.itertext()) for text in elements(picture, "text")]


def element_names(picture: str) -> set[str]:
    """Return the names of all elements."""
    return {found.tag.removeprefix(NAMESPACE) for found in parsed(picture).iter()}


def points(shape: ElementTree.Element) -> list[tuple[float, ...]]:
    """Return the corners of a polyline or polygon."""
    return [tuple(map(float, point.split(","))) for point in shape.attrib["points"].split()]
