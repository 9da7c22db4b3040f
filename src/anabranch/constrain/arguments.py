"""Checks the arguments of the functions of CONSTRAIN: geometries as text, times of one type, plane and globe."""

from __future__ import annotations

import re
from collections.abc import Mapping

from anabranch.binding.type_rules import a_type
from anabranch.binding.typed import Constant, Operation, Reference, Typed, walk
from anabranch.catalog import Stream
from anabranch.language.findings import Findings, shown
from anabranch.language.types import Type

#: The functions of geometries.
SPATIAL = ("distance", "within", "intersects", "touches")

#: Distances of a point to an area, to its outside and to its edge, in the plane. Conditions on locations with an error
#: are converted to them.
OF_AREA = ("gap", "depth", "edge")

#: The beginning of a geometry in well-known text; the coordinates are parsed when the job of the query is made.
_SHAPE = re.compile(
    r"\s*(?:POINT|LINESTRING|LINEARRING|POLYGON|MULTIPOINT|MULTILINESTRING|MULTIPOLYGON|GEOMETRYCOLLECTION)"
    r"\s*(?:Z\s*)?(?:EMPTY|\(.*)\s*",
    re.IGNORECASE | re.DOTALL,
)
_POINT = re.compile(r"\s*POINT\s*(?:Z\s*)?\(", re.IGNORECASE)
_HIGH_POINT = re.compile(r"\s*POINT\s*(?:Z\s*)?\(\s*\S+\s+\S+\s+\S+\s*\)\s*", re.IGNORECASE)

Streams = Mapping[str, Stream | None]


def check_functions(condition: Typed, streams: Streams, findings: Findings) -> None:
    """Report wrong arguments of the functions in a condition; `streams` are the streams of its variables."""
    for node in walk(condition):
        if not isinstance(node, Operation):
            continue
        if node.op == "span":
            _check_span(node, streams, findings)
        if node.op in SPATIAL:
            wrong = [argument for argument in node.arguments if not _is_shape(argument, findings)]
            if node.op == "distance" and not wrong:
                _check_distance(node, streams, findings)


def _check_span(node: Operation, streams: Streams, findings: Findings) -> None:
    """Report a SPAN between a TIMESTAMP and a number."""
    owners = [stream for argument in node.arguments if (stream := _stream_of(argument, streams)) is not None]
    types = [stream.time.type for stream in owners]
    if Type.TIMESTAMP in types and not set(types) <= {Type.TIMESTAMP, Type.UNKNOWN}:
        types_text = ", and ".join(f"that of {stream.name} is {a_type(stream.time.type)}" for stream in owners)
        message = f"there is no SPAN between times of different kinds: {types_text}"
        findings.add("type-mismatch", message, node.span, "convert one of them, so that both are TIMESTAMP or numbers")


def _is_shape(argument: Typed, findings: Findings) -> bool:
    """Whether an argument can be a geometry; reports a text that cannot."""
    if not isinstance(argument, Constant) or not isinstance(argument.value, str):
        return True
    if _SHAPE.fullmatch(argument.value) is None:
        message = f"{shown(argument.value)} is not the well-known text of a geometry"
        hint = "write one such as 'POINT(1 2)' or 'POLYGON((0 0, 4 0, 4 4, 0 0))'"
        findings.add("not-a-geometry", message, argument.span, hint)
        return False
    if not _is_closed(argument.value):
        message = f"the brackets of the geometry {shown(argument.value)} do not match"
        findings.add("not-a-geometry", message, argument.span, "close each bracket once, the first one at the very end")
        return False
    return True


def _is_closed(text: str) -> bool:
    """Whether the first bracket of a text, if any, is closed by its last character, and all others before it."""
    body = text[text.index("(") :].rstrip() if "(" in text else ""
    depth = 0
    for index, character in enumerate(body):
        depth += (character == "(") - (character == ")")
        if depth <= 0 and index < len(body) - 1:
            return False
    return depth == 0


def _check_distance(node: Operation, streams: Streams, findings: Findings) -> None:
    """Report a DISTANCE between plane and globe, and one on the globe or in space to anything but a point."""
    points = [stream for argument in node.arguments if (stream := _point_of(argument, streams)) is not None]
    globe = [stream for stream in points if stream.declaration.geodesic]
    if len({stream.has_height for stream in points}) == 2:
        high, flat = sorted(points, key=lambda stream: not stream.has_height)
        message = f"{high.name} has three coordinates, but {flat.name} has two"
        findings.add("different-space", message, node.span, "give both a SPACE with as many columns")
        return
    if any(stream.has_height for stream in points):
        _check_high_points(node, streams, findings)
    if not globe:
        return
    if len(points) == 2 and len(globe) == 1:
        plane = next(stream for stream in points if stream is not globe[0])
        message = f"there is no DISTANCE between {globe[0].name}, which is on the globe, and {plane.name} in the plane"
        findings.add("different-space", message, node.span, "give both a SPACE with GEODESIC, or both one without")
        return
    for argument in node.arguments:
        if _point_of(argument, streams) is None and not is_point_text(argument):
            message = "a DISTANCE on the globe is between events, or to a point, and this geometry is planar"
            hint = "write a text 'POINT(lon lat)', or declare the stream without GEODESIC"
            findings.add("planar-geometry", message, argument.span, hint)


def _check_high_points(node: Operation, streams: Streams, findings: Findings) -> None:
    """Report a DISTANCE from an event with three coordinates to anything but a point with three."""
    for argument in node.arguments:
        text = argument.value if isinstance(argument, Constant) else None
        if _point_of(argument, streams) is None and not (isinstance(text, str) and _HIGH_POINT.fullmatch(text)):
            message = "a DISTANCE from an event with three coordinates is to an event or point with three"
            findings.add("planar-geometry", message, argument.span, "write a text 'POINT Z (1 2 3)'")


def is_point_text(argument: Typed) -> bool:
    """Whether an argument is the text of a point."""
    text = argument.value if isinstance(argument, Constant) else None
    return isinstance(text, str) and _POINT.match(text) is not None


def _stream_of(argument: Typed, streams: Streams) -> Stream | None:
    """The stream of a column or an event; None for other arguments."""
    return streams.get(argument.owner or "") if isinstance(argument, Reference) else None


def _point_of(argument: Typed, streams: Streams) -> Stream | None:
    """The stream of an event, which is a point; None for other arguments."""
    return _stream_of(argument, streams) if isinstance(argument, Reference) and argument.name == "*" else None
