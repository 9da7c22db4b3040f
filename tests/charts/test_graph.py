"""The constraints between variables as a picture: well-formed, readable, and safe for any condition."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.charts.graph import draw_graph
from anabranch.drawing.geometry import Box
from anabranch.drawing.svg import LIKELY, PAPER, UNLIKELY, Svg
from anabranch.plan import ConstraintGraph, Edge
from tests.charts.answers import HOSTILE
from tests.drawing.pictures import element_names, elements, parsed, texts
from tests.drawn import examples

COLLISION = ConstraintGraph(
    (("v1", "kind = 'A'"), ("v2", "kind = 'B'"), ("v3", "kind = 'C'")),
    (
        Edge("v1", "v2", "0 to 5 later, < 1 apart", True),
        Edge("v2", "v3", "1 to 5 later, < 1 apart", True),
        Edge("v1", "v3", "1 to 10 later, < 2 apart", False),
    ),
)

WIDTH = 0.55
"""The average width of a letter in a common sans-serif font, relative to the font size."""


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name])


def all_pairs(count: int) -> ConstraintGraph:
    """Return a graph with an edge between all pairs, each with a label of usual length."""
    names = [f"v{number}" for number in range(1, count + 1)]
    pairs = enumerate(itertools.combinations(names, 2))
    edges = (Edge(one, other, f"{n} to {n + 10} DAYS later, < {n}000 apart", n % 3 > 0) for n, (one, other) in pairs)
    return ConstraintGraph(tuple((name, "anomaly >= 1.5") for name in names), tuple(edges))


def test_variables_and_conditions_are_written() -> None:
    expected = {"collision", "v1", "v2", "v3", "kind = 'A'", "0 to 5 later,", "< 1 apart", "1 to 10 later,"}
    assert expected <= set(texts(draw_graph(COLLISION, "collision")))


def test_stated_constraints_are_solid_and_implied_ones_are_dashed_and_lighter() -> None:
    lines = elements(draw_graph(COLLISION, "collision"), "polyline")
    looks = sorted((line.attrib["stroke"], "stroke-dasharray" in line.attrib) for line in lines)
    assert looks == sorted([(LIKELY, False), (LIKELY, False), (UNLIKELY, True)])
    assert "stated┅implied" in texts(draw_graph(COLLISION, "collision"))[1]


def test_each_condition_begins_a_line_and_brackets_and_quotes_are_not_split() -> None:
    nodes = (("a", "kind = 'x, y AND z' AND wind > 5 AND t IN [1, 2]"), ("b", ""))
    lines = texts(draw_graph(ConstraintGraph(nodes, ()), "parts"))
    assert lines[3:6] == ["kind = 'x, y AND z'", "AND wind > 5", "AND t IN [1, 2]"]


def test_the_key_has_no_implied_constraints_if_there_are_none() -> None:
    graph = ConstraintGraph(COLLISION.nodes, COLLISION.edges[:2])
    assert "implied" not in draw_graph(graph, "collision")


@pytest.mark.parametrize("count", range(2, 7))
def test_labels_hide_neither_other_labels_nor_variables(count: int) -> None:
    """Compares the boxes of all texts, for all pairs of up to six variables."""
    picture = draw_graph(all_pairs(count), "all pairs")
    boxes = [box_of(text) for text in elements(picture, "text")]
    assert len(boxes) == 2 + 2 * count + count * (count - 1), "title, key, and two lines per variable and per pair"
    for one, other in itertools.combinations(boxes, 2):
        assert one.overlap(other) == 0, (one, other)
    nodes = [rect_of(rect) for rect in elements(picture, "rect") if rect.get("fill") != PAPER]
    labels = [rect_of(rect) for rect in elements(picture, "rect") if rect.get("fill") == PAPER][1:]
    assert (len(nodes), len(labels)) == (count, count * (count - 1) // 2)
    for label, node in itertools.product(labels, nodes):
        assert label.overlap(node) == 0


def box_of(text: ElementTree.Element) -> Box:
    """Return the approximate box of a line of text."""
    size = number(text, "font-size")
    width = len("".join(text.itertext())) * size * WIDTH
    shift = {"middle": 0.0, "end": -width / 2, "start": width / 2}[text.get("text-anchor", "start")]
    return Box(number(text, "x") + shift, number(text, "y") - 0.35 * size, width, 0.9 * size)


def rect_of(rect: ElementTree.Element) -> Box:
    width, height = number(rect, "width"), number(rect, "height")
    return Box(number(rect, "x") + width / 2, number(rect, "y") + height / 2, width, height)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_all_texts_are_on_the_page(count: int) -> None:
    picture = draw_graph(all_pairs(count), "all pairs")
    wide, high = (number(parsed(picture), name) for name in ("width", "height"))
    for text in elements(picture, "text"):
        box = box_of(text)
        assert 0 <= box.x - box.width / 2 <= box.x + box.width / 2 <= wide
        assert 0 <= box.y - box.height / 2 <= box.y + box.height / 2 <= high


def test_a_counted_variable_has_a_line_to_itself() -> None:
    graph = ConstraintGraph((("v*5", "anomaly >= 1.5"),), (Edge("v*5", "v*5", "at most 3 DAYS apart", True),))
    picture = draw_graph(graph, "warm")
    assert len(elements(picture, "polyline")) == 1
    assert not elements(picture, "polygon"), "a loop has no arrow"
    label, node = (
        text for text in elements(picture, "text") if "".join(text.itertext()) in ("at most 3 DAYS apart", "v*5")
    )
    assert number(label, "y") < number(node, "y") - 40


def test_several_lines_between_two_variables_are_separate() -> None:
    edges = (Edge("a", "b", "0 to 5 later", True), Edge("b", "a", "< 1 apart", True), Edge("a", "b", "x", False))
    picture = draw_graph(ConstraintGraph((("a", ""), ("b", "")), edges), "")
    middles = {line.attrib["points"].split()[50].split(",")[1] for line in elements(picture, "polyline")}
    assert len(middles) == 3


def test_an_empty_graph_and_unknown_variables_give_a_picture() -> None:
    assert "svg" in element_names(draw_graph(ConstraintGraph((), ()), "nothing"))
    dangling = ConstraintGraph((("a", ""),), (Edge("a", "nobody", "< 1 apart", True),))
    assert "< 1 apart" not in texts(draw_graph(dangling, "dangling"))


def test_a_notebook_displays_the_picture() -> None:
    picture = draw_graph(COLLISION, "collision")
    assert isinstance(picture, Svg)
    assert picture._repr_svg_() == picture


def test_hostile_conditions_are_escaped_and_long_ones_are_truncated() -> None:
    graph = ConstraintGraph(
        ((HOSTILE, HOSTILE), ("b", "x" * 5000)), (Edge(HOSTILE, "b", HOSTILE + ", " + "y " * 999, True),)
    )
    picture = draw_graph(graph, HOSTILE)
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture
    assert any(text.endswith("…") for text in texts(picture))
    assert len(picture) < 10_000


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=80)), max_size=5), st.text(max_size=20), st.booleans())
@examples(25)
def test_any_text_gives_a_well_formed_picture(nodes: list[tuple[str, str]], title: str, is_given: bool) -> None:
    raw = [title, *(text for node in nodes for text in node)]
    title, *rest = (text.encode("utf-8", "replace").decode("utf-8") for text in raw)
    named = tuple(zip(rest[::2], rest[1::2], strict=True))
    edges = tuple(
        Edge(one, other, condition, is_given) for (one, condition), (other, _) in zip(named, named[1:], strict=False)
    )
    picture = draw_graph(ConstraintGraph(named, edges), title)
    assert element_names(picture) <= {"svg", "title", "rect", "text", "tspan", "polyline", "polygon"}
