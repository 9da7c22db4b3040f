"""The constraints between the variables of a query as an SVG picture: variables on a circle, lines between them.

Constraints that the query states are solid lines, implied constraints are dashed. A line is read along its arrow:
'a → b, 0 to 5 later' means that b is 0 to 5 after a. A label is put where on its line it hides the least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.drawing import svg
from anabranch.drawing.geometry import Box, Point, arrow_barbs
from anabranch.plan import ConstraintGraph, Edge
from anabranch.text import safe, short

HEAD = 66
"""The height of the title and the key, in pixels."""

NAME_SIZE, CONDITION_SIZE, LABEL_SIZE = 14.0, 11.0, 11.5
LINE = 1.3
"""The height of a line of text, relative to its font size."""

LONGEST_LINE, LINES_OF_CONDITION, MOST_LINES = 32, 2, 5
"""Limits, since a condition can have thousands of characters: characters of a line, lines of a condition, and lines of
all conditions of a variable or an edge."""

BOW = 44.0
"""Pixels that a line bends if several join the same two variables."""

LOOP_MARGIN = 70
"""Pixels above and below for lines from a variable to itself and their labels."""

PASSES = 6
"""How often the positions of all labels are improved, given the positions of the others."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A variable on the page, with the lines of its conditions."""

    name: str
    conditions: list[str]
    box: Box


@dataclass(frozen=True, slots=True)
class _Line:
    """An edge on the page: the points of its curve outside both nodes, and the lines of its label."""

    edge: Edge
    points: list[Point]
    text: list[str]

    def label_box(self, share: float) -> Box:
        """Return the box of the label at a share of the line's length; the label of a loop is beyond its far end."""
        x, y = self.points[round(share * (len(self.points) - 1))]
        wide, tall = _text_size(self.text, LABEL_SIZE)
        if self.edge.one == self.edge.other:
            x, y = self.points[len(self.points) // 2]
            y += math.copysign(tall / 2 + 4, y - self.points[0][1])
        return Box(x, y, wide, tall)


def draw_graph(graph: ConstraintGraph, title: str) -> svg.Svg:
    """Draw the constraints between variables.

    Parameters
    ----------
    graph : ConstraintGraph
        The variables and their constraints, from `Plan.graph`.
    title : str
        The title of the picture.

    Returns
    -------
    Svg
        The text of the picture, which a notebook displays.
    """
    width, height = _page_size(graph)
    nodes = {node.name: node for node in _placed_nodes(graph, width, height)}
    lines = [line for line in _lines(graph, nodes, (HEAD + height) / 2) if len(line.points) > 1]
    inside = Box(width / 2, height / 2, width - 12, height - 12)
    label_boxes = _place_labels(lines, [node.box for node in nodes.values()], inside)
    parts = svg.header(short(title), _signs(graph.edges), width, key_baseline=50)
    # From bottom to top: implied constraints, stated constraints, labels, variables.
    for line in sorted(lines, key=lambda line: line.edge.stated):
        parts += _drawn_line(line)
    for line, box in zip(lines, label_boxes, strict=True):
        parts += _drawn_label(line, box)
    for node in nodes.values():
        parts += _drawn_node(node)
    return svg.page(parts, width, height, f"Constraints of {short(title)}" if title else "Constraints")


def _signs(edges: Sequence[Edge]) -> list[tuple[str, str, str]]:
    signs = [("━", svg.LIKELY, "stated"), ("┅", svg.UNLIKELY, "implied")]
    return signs if any(not edge.stated for edge in edges) else signs[:1]


# ------------------------------------------------------------ positions


def _page_size(graph: ConstraintGraph) -> tuple[float, float]:
    """Return a size with room for the labels of all pairs; up to two variables are on one level."""
    count, loops = len(graph.nodes), LOOP_MARGIN if _has_loops(graph) else 0
    if count <= 2:
        return 720.0, HEAD + 150.0 + loops
    grown = 100.0 * (count - 3)
    return min(760.0 + grown, 1260.0), HEAD + min(360.0 + grown, 900.0) + 2 * loops


def _has_loops(graph: ConstraintGraph) -> bool:
    return any(edge.one == edge.other for edge in graph.edges)


def _placed_nodes(graph: ConstraintGraph, width: float, height: float) -> Iterator[_Node]:
    """Yield the variables along an ellipse, in their order from the left or the top."""
    count, loops = len(graph.nodes), LOOP_MARGIN if _has_loops(graph) else 0
    first = -math.pi if count == 2 else -math.pi / 2
    angles = [first + 2 * math.pi * number / count for number in range(count)]
    conditions = [_wrapped(condition) for _, condition in graph.nodes]
    sizes = [_node_size(name, lines) for (name, _), lines in zip(graph.nodes, conditions, strict=True)]
    across = 0.0 if count == 1 else width / 2 - svg.EDGE - max((wide for wide, _ in sizes), default=0.0) / 2
    # A triangle reaches less far below its centre than above it; stretch it to fill the page.
    lowest = max(map(math.sin, angles), default=1.0)
    top, bottom = HEAD + 44 + loops, height - 56 - loops
    level = (HEAD + height + loops) / 2 - 8
    for (name, _), lines, size, angle in zip(graph.nodes, conditions, sizes, angles, strict=True):
        y = top + (bottom - top) * (math.sin(angle) + 1) / (lowest + 1) if count > 2 else level
        yield _Node(name, lines, Box(width / 2 + across * math.cos(angle), y, *size))


def _node_size(name: str, lines: Sequence[str]) -> tuple[float, float]:
    (name_wide, name_tall), (wide, tall) = (
        _text_size([short(name, LONGEST_LINE)], NAME_SIZE),
        _text_size(lines, CONDITION_SIZE),
    )
    return max(name_wide + 24, wide + 24, 56.0), name_tall + tall + 14


def _lines(graph: ConstraintGraph, nodes: dict[str, _Node], level: float) -> Iterator[_Line]:
    """Yield each edge as a curve from node to node; several between the same two bend away from each other."""
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
            # The side to which a line bends must not depend on the order of the two variables of an edge.
            points = _curve(one, other, bend if edge.one < edge.other else -bend)
        drawn[pair] += 1
        yield _Line(edge, points, _wrapped(edge.label))


def _curve(one: Box, other: Box, bend: float) -> list[Point]:
    """Return the points of a curve from box to box that lie outside both; it bends to the left of its direction."""
    across, down = other.x - one.x, other.y - one.y
    length = math.hypot(across, down) or 1.0
    middle = (one.x + other.x) / 2 + bend * down / length, (one.y + other.y) / 2 - bend * across / length
    points = []
    for number in range(121):
        s = number / 120
        weights = (1 - s) ** 2, 2 * s * (1 - s), s * s
        x, y = (
            sum(weight * value for weight, value in zip(weights, controls, strict=True))
            for controls in ((one.x, middle[0], other.x), (one.y, middle[1], other.y))
        )
        if not one.contains((x, y)) and not other.padded(3).contains((x, y)):
            points.append((x, y))
    return points


def _loop(box: Box, level: float, number: int) -> list[Point]:
    """Return the points of a loop at a node: below the lower nodes of a circle, above the others."""
    side = 1 if box.y > level + LOOP_MARGIN else -1
    wide, tall = 22.0 + 10 * number, 36.0 + 26 * number
    y = box.y + side * box.height / 2
    turns = [math.pi * number / 40 for number in range(41)]
    return [(box.x + wide * math.cos(turn), y + side * tall * math.sin(turn)) for turn in turns]


# ------------------------------------------------------------ labels


def _place_labels(lines: Sequence[_Line], nodes: Sequence[Box], page_box: Box) -> list[Box]:
    """Return a box for each label: near the middle of its line, over no node or label and, if possible, no line."""
    shares = [0.5 + sign * step / 40 for step in range(17) for sign in ((1, -1) if step else (1,))]
    candidates = [[line.label_box(share) for share in shares] for line in lines]
    points = np.array([point for line in lines for point in line.points]).reshape(-1, 2)
    line_of = np.repeat(np.arange(len(lines)), [len(line.points) for line in lines])
    # What a label hides of nodes and lines does not depend on the other labels.
    fixed_costs = []
    for number, boxes in enumerate(candidates):
        of_others = points[line_of != number], line_of[line_of != number]
        fixed_costs.append(
            [
                10 * _hidden_area(box, nodes, page_box) + 12 * _crossed_lines(box, *of_others) + 40 * abs(share - 0.5)
                for share, box in zip(shares, boxes, strict=True)
            ]
        )
    chosen = [boxes[0] for boxes in candidates]
    for _ in range(PASSES):
        for number, boxes in enumerate(candidates):
            others = _sides([box.padded(2) for index, box in enumerate(chosen) if index != number])
            costs = [
                cost + 10 * _total_overlap(box, others) for cost, box in zip(fixed_costs[number], boxes, strict=True)
            ]
            chosen[number] = boxes[costs.index(min(costs))]
    return chosen


def _hidden_area(box: Box, nodes: Sequence[Box], page_box: Box) -> float:
    """Return the area of nodes that a label would hide, plus its own area off the page."""
    off_page = box.width * box.height - box.overlap(page_box)
    return sum(box.padded(3).overlap(node) for node in nodes) + off_page


def _crossed_lines(box: Box, points: F64, line_of: I64) -> int:
    """Return how many lines a label would cross, by their points."""
    inside = np.all(np.abs(points - (box.x, box.y)) <= (box.width / 2, box.height / 2), axis=1)
    return len(np.unique(line_of[inside]))


def _sides(boxes: Sequence[Box]) -> F64:
    """Return four rows with the left, right, upper and lower sides of boxes."""
    x, y, width, height = np.array([(box.x, box.y, box.width, box.height) for box in boxes]).reshape(-1, 4).T
    return np.array([x - width / 2, x + width / 2, y - height / 2, y + height / 2])


def _total_overlap(box: Box, others: F64) -> float:
    """Return the sum of the overlaps of a box with others, which are given by their sides."""
    (left,), (right,), (top,), (bottom,) = _sides([box])
    across = np.minimum(right, others[1]) - np.maximum(left, others[0])
    down = np.minimum(bottom, others[3]) - np.maximum(top, others[2])
    return float(np.sum(np.maximum(across, 0.0) * np.maximum(down, 0.0)))


# ------------------------------------------------------------ drawing


def _drawn_line(line: _Line) -> Iterator[str]:
    is_stated = line.edge.stated
    colour = svg.LIKELY if is_stated else svg.UNLIKELY
    points = svg.point_list(line.points)
    dashes: dict[str, str] = {} if is_stated else {"stroke_dasharray": "5 4"}
    yield svg.element(
        "polyline", "", points=points, fill="none", stroke=colour, stroke_width=1.8 if is_stated else 1.3, **dashes
    )
    if line.edge.one != line.edge.other:
        yield _arrow(line.points[-min(6, len(line.points))], line.points[-1], colour)


def _arrow(behind: Point, tip: Point, colour: str) -> str:
    corners = [tip, *arrow_barbs(behind, tip, length=9, spread=0.4)]
    return svg.element("polygon", points=svg.point_list(corners), fill=colour)


def _drawn_label(line: _Line, box: Box) -> Iterator[str]:
    """Draw a label on its own background, so that no line runs through the letters."""
    yield _rectangle(box.padded(1), rx=3, fill=svg.PAPER)
    yield from _text_lines(line.text, box, LABEL_SIZE, svg.INK if line.edge.stated else svg.FAINT)


def _drawn_node(node: _Node) -> Iterator[str]:
    box = node.box
    yield _rectangle(box, rx=9, fill="#eef3f3", stroke=svg.INK, stroke_width=1.2)
    name, top = short(node.name, LONGEST_LINE), box.y - box.height / 2 + 7
    yield svg.label(name, box.x, top + NAME_SIZE, size=NAME_SIZE, text_anchor="middle", font_weight=600)
    tall = _text_size(node.conditions, CONDITION_SIZE)[1]
    below = Box(box.x, top + NAME_SIZE * LINE + tall / 2, box.width, tall)
    yield from _text_lines(node.conditions, below, CONDITION_SIZE, svg.FAINT)


def _text_lines(lines: Sequence[str], box: Box, size: float, fill: str) -> Iterator[str]:
    """Draw lines of text in the middle of a box."""
    for number, text in enumerate(lines):
        y = box.y - len(lines) * size * LINE / 2 + (number + 0.8) * size * LINE
        yield svg.label(text, box.x, y, size=size, fill=fill, text_anchor="middle")


def _rectangle(box: Box, **attributes: str | float) -> str:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    return svg.element("rect", "", x=left, y=top, width=box.width, height=box.height, **attributes)


def _wrapped(text: str) -> list[str]:
    """Return the lines of a text; it is also split at commas and ANDs outside brackets and quotes."""
    parts = (wrap(part, LONGEST_LINE, max_lines=LINES_OF_CONDITION, placeholder="…") for part in _parts(safe(text)))
    lines = [line for part in parts for line in part]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "…"]


def _parts(text: str) -> Iterator[str]:
    """Split a text after its outermost commas and before its outermost ANDs."""
    depth, quoted, begin = 0, False, 0
    for index, letter in enumerate(text):
        quoted ^= letter == "'"
        depth += 0 if quoted else {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if quoted or depth > 0:
            continue
        if text.startswith(", ", index):
            yield text[begin : index + 1]
            begin = index + 2
        elif text.startswith(" AND ", index):
            yield text[begin:index]
            begin = index + 1
    yield text[begin:]


def _text_size(lines: Sequence[str], size: float) -> tuple[float, float]:
    """Return the approximate width and height of lines of text; the font depends on the viewer."""
    return max((len(line) for line in lines), default=0) * size * 0.58, len(lines) * size * LINE
