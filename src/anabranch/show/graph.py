"""What holds between the variables of a query, as an SVG picture: variables on a circle, lines between them.

What the user wrote is solid, what follows from it is dashed. A line is read along its arrow: 'a → b, 0 to 5 later' says
that b comes so much after a. Labels look for the place on their line where they hide the least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from anabranch.plan import ConstraintGraph, Edge
from anabranch.show.svg import EDGE, FAINT, INK, LIKELY, PAPER, UNLIKELY, Svg, element, key, label, page
from anabranch.show.text import safe, short

HEAD = 66
"""Pixels at the top for the title and the key."""

NAME_SIZE, ASKED_SIZE, LABEL_SIZE = 14.0, 11.0, 11.5
LINE = 1.3
"""Height of a line of text, as a share of the size of its letters."""

LONGEST_LINE, LINES_OF_PART, MOST_LINES = 32, 2, 5
"""Characters of a line, lines of a condition, and lines that are written at a variable or between two; a condition can
have thousands of characters."""

BOW = 44.0
"""Pixels that a line bends where several join the same two variables."""

ROOM_OF_LOOPS = 70
"""Pixels above and below for lines from a variable to itself, and their labels."""

PASSES = 6
"""How often the labels look for a better place, given where the others are."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle around its centre."""

    x: float
    y: float
    width: float
    height: float

    def shared(self, other: Box) -> float:
        """The area that lies in both."""
        across = min(self.x + self.width / 2, other.x + other.width / 2) - max(
            self.x - self.width / 2, other.x - other.width / 2
        )
        down = min(self.y + self.height / 2, other.y + other.height / 2) - max(
            self.y - self.height / 2, other.y - other.height / 2
        )
        return max(across, 0.0) * max(down, 0.0)

    def holds(self, point: Point) -> bool:
        """Whether a point lies in it."""
        return abs(point[0] - self.x) <= self.width / 2 and abs(point[1] - self.y) <= self.height / 2

    def wider(self, by: float) -> Box:
        """With a margin on all sides."""
        return Box(self.x, self.y, self.width + 2 * by, self.height + 2 * by)


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    asked: list[str]
    box: Box


@dataclass(frozen=True, slots=True)
class _Line:
    """An edge on the page: the points of its curve outside both nodes, and its label's lines."""

    edge: Edge
    points: list[Point]
    text: list[str]

    def place(self, share: float) -> Box:
        """The box of the label, were it so far along the line; that of a loop stands beyond its far end."""
        x, y = self.points[round(share * (len(self.points) - 1))]
        wide, tall = _text_size(self.text, LABEL_SIZE)
        if self.edge.one == self.edge.other:
            x, y = self.points[len(self.points) // 2]
            y += math.copysign(tall / 2 + 4, y - self.points[0][1])
        return Box(x, y, wide, tall)


def draw_graph(graph: ConstraintGraph, title: str) -> Svg:
    """Draw what holds between variables.

    Parameters
    ----------
    graph : ConstraintGraph
        The variables and their edges, as `Plan.graph` has them.
    title : str
        Stands above the picture.

    Returns
    -------
    Svg
        The text of the picture; a notebook shows it.
    """
    width, height = _page_size(graph)
    nodes = {node.name: node for node in _placed_nodes(graph, width, height)}
    lines = [line for line in _lines(graph, nodes, (HEAD + height) / 2) if len(line.points) > 1]
    places = _settle(lines, [node.box for node in nodes.values()], Box(width / 2, height / 2, width - 12, height - 12))
    parts = [label(short(title), EDGE, 27, size=15, font_weight=600)]
    parts.append(key(_signs(graph.edges), width - EDGE, 50))
    # What follows goes below what was asked, lines below labels, and all below the variables.
    for line in sorted(lines, key=lambda line: line.edge.given):
        parts += _drawn_line(line)
    for line, place in zip(lines, places, strict=True):
        parts += _drawn_label(line, place)
    for node in nodes.values():
        parts += _drawn_node(node)
    return page(parts, width, height, f"What holds between the variables of {short(title)}" if title else "Constraints")


def _signs(edges: Sequence[Edge]) -> list[tuple[str, str, str]]:
    signs = [("━", LIKELY, "asked"), ("┅", UNLIKELY, "follows")]
    return signs if any(not edge.given for edge in edges) else signs[:1]


# ------------------------------------------------------------ places


def _page_size(graph: ConstraintGraph) -> tuple[float, float]:
    """Wide enough for the labels of all pairs; up to two variables lie on one level."""
    count, loops = len(graph.nodes), ROOM_OF_LOOPS if _has_loops(graph) else 0
    if count <= 2:
        return 720.0, HEAD + 150.0 + loops
    grown = 100.0 * (count - 3)
    return min(760.0 + grown, 1260.0), HEAD + min(360.0 + grown, 900.0) + 2 * loops


def _has_loops(graph: ConstraintGraph) -> bool:
    return any(edge.one == edge.other for edge in graph.edges)


def _placed_nodes(graph: ConstraintGraph, width: float, height: float) -> Iterator[_Node]:
    """The variables along an ellipse, in their order from the left or the top, each with its box."""
    count, loops = len(graph.nodes), ROOM_OF_LOOPS if _has_loops(graph) else 0
    first = -math.pi if count == 2 else -math.pi / 2
    angles = [first + 2 * math.pi * number / count for number in range(count)]
    written = [_wrapped(asked) for _, asked in graph.nodes]
    sizes = [_node_size(name, lines) for (name, _), lines in zip(graph.nodes, written, strict=True)]
    across = 0.0 if count == 1 else width / 2 - EDGE - max((wide for wide, _ in sizes), default=0.0) / 2
    # A triangle has less below its centre than above it, and yet fills the page.
    lowest = max(map(math.sin, angles), default=1.0)
    top, bottom = HEAD + 44 + loops, height - 56 - loops
    level = (HEAD + height + loops) / 2 - 8
    for (name, _), lines, size, angle in zip(graph.nodes, written, sizes, angles, strict=True):
        y = top + (bottom - top) * (math.sin(angle) + 1) / (lowest + 1) if count > 2 else level
        yield _Node(name, lines, Box(width / 2 + across * math.cos(angle), y, *size))


def _node_size(name: str, lines: Sequence[str]) -> tuple[float, float]:
    (name_wide, name_tall), (wide, tall) = (
        _text_size([short(name, LONGEST_LINE)], NAME_SIZE),
        _text_size(lines, ASKED_SIZE),
    )
    return max(name_wide + 24, wide + 24, 56.0), name_tall + tall + 14


def _lines(graph: ConstraintGraph, nodes: dict[str, _Node], level: float) -> Iterator[_Line]:
    """Each edge as a curve from node to node; several between the same two bend away from each other."""
    pairs = Counter(frozenset((edge.one, edge.other)) for edge in graph.edges)
    drawn: Counter[frozenset[str]] = Counter()
    for edge in graph.edges:
        if edge.one not in nodes or edge.other not in nodes:
            continue
        pair = frozenset((edge.one, edge.other))
        bend = BOW * (2 * drawn[pair] - pairs[pair] + 1)
        one, other = nodes[edge.one].box, nodes[edge.other].box
        if edge.one == edge.other:
            points = _loop(one, level, drawn[pair])
        else:
            # Which side a line bends to must not depend on the order in which an edge names its two variables.
            points = _curve(one, other, bend if edge.one < edge.other else -bend)
        drawn[pair] += 1
        yield _Line(edge, points, _wrapped(edge.label))


def _curve(one: Box, other: Box, bend: float) -> list[Point]:
    """From box to box, bent to the left of its way; only what lies outside both."""
    across, down = other.x - one.x, other.y - one.y
    length = math.hypot(across, down) or 1.0
    middle = (one.x + other.x) / 2 + bend * down / length, (one.y + other.y) / 2 - bend * across / length
    points = []
    for number in range(121):
        s = number / 120
        weights = (1 - s) ** 2, 2 * s * (1 - s), s * s
        x, y = (
            sum(weight * place for weight, place in zip(weights, places, strict=True))
            for places in ((one.x, middle[0], other.x), (one.y, middle[1], other.y))
        )
        if not one.holds((x, y)) and not other.wider(3).holds((x, y)):
            points.append((x, y))
    return points


def _loop(box: Box, level: float, number: int) -> list[Point]:
    """From a node back to itself: downwards from the lower nodes of a circle, else upwards."""
    side = 1 if box.y > level + ROOM_OF_LOOPS else -1
    wide, tall = 22.0 + 10 * number, 36.0 + 26 * number
    y = box.y + side * box.height / 2
    turns = [math.pi * number / 40 for number in range(41)]
    return [(box.x + wide * math.cos(turn), y + side * tall * math.sin(turn)) for turn in turns]


# ------------------------------------------------------------ labels


def _settle(lines: Sequence[_Line], nodes: Sequence[Box], room: Box) -> list[Box]:
    """A place for each label: near the middle of its line, and over no node, other label or, if possible, line."""
    shares = [0.5 + sign * step / 40 for step in range(17) for sign in ((1, -1) if step else (1,))]
    candidates = [[line.place(share) for share in shares] for line in lines]
    points = np.array([point for line in lines for point in line.points]).reshape(-1, 2)
    owners = np.repeat(np.arange(len(lines)), [len(line.points) for line in lines])
    # What a label hides of nodes and lines does not change; what it hides of other labels does.
    fixed = []
    for number, own in enumerate(candidates):
        of_others = points[owners != number], owners[owners != number]
        fixed.append(
            [
                10 * _covered(place, nodes, room) + 12 * _crossed(place, *of_others) + 40 * abs(share - 0.5)
                for share, place in zip(shares, own, strict=True)
            ]
        )
    places = [own[0] for own in candidates]
    for _ in range(PASSES):
        for number, own in enumerate(candidates):
            others = _edges_of([place.wider(2) for at, place in enumerate(places) if at != number])
            costs = [cost + 10 * _shared(place, others) for cost, place in zip(fixed[number], own, strict=True)]
            places[number] = own[costs.index(min(costs))]
    return places


def _covered(place: Box, nodes: Sequence[Box], room: Box) -> float:
    """How much of nodes, and of what is off the page, a label has there."""
    off_page = place.width * place.height - place.shared(room)
    return sum(place.wider(3).shared(node) for node in nodes) + off_page


def _crossed(place: Box, points: np.ndarray, owners: np.ndarray) -> int:
    """How many lines a label hides there, by their points."""
    held = np.all(np.abs(points - (place.x, place.y)) <= (place.width / 2, place.height / 2), axis=1)
    return len(np.unique(owners[held]))


def _edges_of(boxes: Sequence[Box]) -> np.ndarray:
    """The left, right, upper and lower edges of boxes, a row each."""
    x, y, width, height = np.array([(box.x, box.y, box.width, box.height) for box in boxes]).reshape(-1, 4).T
    return np.array([x - width / 2, x + width / 2, y - height / 2, y + height / 2])


def _shared(place: Box, others: np.ndarray) -> float:
    """The area that a box has in common with others, which are given by their edges."""
    (left,), (right,), (top,), (bottom,) = _edges_of([place])
    across = np.minimum(right, others[1]) - np.maximum(left, others[0])
    down = np.minimum(bottom, others[3]) - np.maximum(top, others[2])
    return float(np.sum(np.maximum(across, 0.0) * np.maximum(down, 0.0)))


# ------------------------------------------------------------ drawing


def _drawn_line(line: _Line) -> Iterator[str]:
    given = line.edge.given
    colour = LIKELY if given else UNLIKELY
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line.points)
    dashes: dict[str, str] = {} if given else {"stroke_dasharray": "5 4"}
    yield element(
        "polyline", "", points=points, fill="none", stroke=colour, stroke_width=1.8 if given else 1.3, **dashes
    )
    if line.edge.one != line.edge.other:
        yield _arrow(line.points[-min(6, len(line.points))], line.points[-1], colour)


def _arrow(behind: Point, tip: Point, colour: str) -> str:
    angle = math.atan2(tip[1] - behind[1], tip[0] - behind[0])
    corners = [
        tip,
        *((tip[0] - 9 * math.cos(angle + turn), tip[1] - 9 * math.sin(angle + turn)) for turn in (0.4, -0.4)),
    ]
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners), fill=colour)


def _drawn_label(line: _Line, place: Box) -> Iterator[str]:
    """On ground of its own, so that no line runs through the letters."""
    yield _rectangle(place.wider(1), rx=3, fill=PAPER)
    yield from _text_lines(line.text, place, LABEL_SIZE, INK if line.edge.given else FAINT)


def _drawn_node(node: _Node) -> Iterator[str]:
    box = node.box
    yield _rectangle(box, rx=9, fill="#eef3f3", stroke=INK, stroke_width=1.2)
    name, top = short(node.name, LONGEST_LINE), box.y - box.height / 2 + 7
    yield label(name, box.x, top + NAME_SIZE, size=NAME_SIZE, text_anchor="middle", font_weight=600)
    tall = _text_size(node.asked, ASKED_SIZE)[1]
    below = Box(box.x, top + NAME_SIZE * LINE + tall / 2, box.width, tall)
    yield from _text_lines(node.asked, below, ASKED_SIZE, FAINT)


def _text_lines(lines: Sequence[str], box: Box, size: float, fill: str) -> Iterator[str]:
    """Lines in the middle of a box."""
    for number, text in enumerate(lines):
        y = box.y - len(lines) * size * LINE / 2 + (number + 0.8) * size * LINE
        yield label(text, box.x, y, size=size, fill=fill, text_anchor="middle")


def _rectangle(box: Box, **attributes: str | float) -> str:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    return element("rect", "", x=left, y=top, width=box.width, height=box.height, **attributes)


def _wrapped(text: str) -> list[str]:
    """A line for each part: what stands between commas or ANDs that are in no brackets and no quotes."""
    parts = (wrap(part, LONGEST_LINE, max_lines=LINES_OF_PART, placeholder="…") for part in _parts(safe(text)))
    lines = [line for part in parts for line in part]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "…"]


def _parts(text: str) -> Iterator[str]:
    """Cut a text behind its outermost commas, and ahead of its outermost ANDs."""
    depth, quoted, begin = 0, False, 0
    for at, letter in enumerate(text):
        quoted ^= letter == "'"
        depth += 0 if quoted else {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if quoted or depth > 0:
            continue
        if text.startswith(", ", at):
            yield text[begin : at + 1]
            begin = at + 2
        elif text.startswith(" AND ", at):
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _text_size(lines: Sequence[str], size: float) -> tuple[float, float]:
    """About how wide and high lines of text will be: whoever opens the picture has a font of their own."""
    return max((len(line) for line in lines), default=0) * size * 0.58, len(lines) * size * LINE
