"""What holds between variables as a picture: well-formed, readable, and safe whatever a condition holds."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.plan import ConstraintGraph, Edge
from anabranch.show.graph import Box, draw_graph
from anabranch.show.svg import LIKELY, PAPER, UNLIKELY, Svg
from tests.drawn import examples
from tests.show.answers import HOSTILE
from tests.show.test_svg import NAMESPACE, parsed

COLLISION = ConstraintGraph(
    (("v1", "kind = 'A'"), ("v2", "kind = 'B'"), ("v3", "kind = 'C'")),
    (
        Edge("v1", "v2", "0 to 5 later, < 1 apart", True),
        Edge("v2", "v3", "1 to 5 later, < 1 apart", True),
        Edge("v1", "v3", "1 to 10 later, < 2 apart", False),
    ),
)

WIDTH = 0.55
"""Of a letter, as a share of its height: what a common sans-serif font needs on average."""


def found(picture: str, name: str) -> list[ElementTree.Element]:
    return list(parsed(picture).iter(NAMESPACE + name))


def words(picture: str) -> list[str]:
    return ["".join(text.itertext()) for text in found(picture, "text")]


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name])


def all_pairs(count: int) -> ConstraintGraph:
    """A variable with all others, each with a label of usual length."""
    names = [f"v{number}" for number in range(1, count + 1)]
    pairs = enumerate(itertools.combinations(names, 2))
    edges = (Edge(one, other, f"{n} to {n + 10} DAYS later, < {n}000 apart", n % 3 > 0) for n, (one, other) in pairs)
    return ConstraintGraph(tuple((name, "anomaly >= 1.5") for name in names), tuple(edges))


def test_variables_and_conditions_are_written() -> None:
    said = words(draw_graph(COLLISION, "collision"))
    for told in ("collision", "v1", "v2", "v3", "kind = 'A'", "0 to 5 later,", "< 1 apart", "1 to 10 later,"):
        assert told in said


def test_what_was_asked_is_solid_and_what_follows_is_dashed_and_lighter() -> None:
    lines = found(draw_graph(COLLISION, "collision"), "polyline")
    looks = sorted((line.attrib["stroke"], "stroke-dasharray" in line.attrib) for line in lines)
    assert looks == sorted([(LIKELY, False), (LIKELY, False), (UNLIKELY, True)])
    assert "asked┅follows" in words(draw_graph(COLLISION, "collision"))[1]


def test_each_condition_begins_a_line_and_what_is_in_brackets_or_quotes_is_not_torn() -> None:
    nodes = (("a", "kind = 'x, y AND z' AND wind > 5 AND t IN [1, 2]"), ("b", ""))
    said = words(draw_graph(ConstraintGraph(nodes, ()), "parts"))
    assert said[3:6] == ["kind = 'x, y AND z'", "AND wind > 5", "AND t IN [1, 2]"]


def test_only_what_there_is_stands_in_the_key() -> None:
    graph = ConstraintGraph(COLLISION.nodes, COLLISION.edges[:2])
    assert "follows" not in draw_graph(graph, "collision")


@pytest.mark.parametrize("count", range(2, 7))
def test_labels_hide_neither_each_other_nor_variables(count: int) -> None:
    """All pairs of up to six variables, by the places and sizes of what is written."""
    picture = draw_graph(all_pairs(count), "all pairs")
    boxes = [box_of(text) for text in found(picture, "text")]
    assert len(boxes) == 2 + 2 * count + count * (count - 1), "title and key; two lines a variable and a pair"
    for one, other in itertools.combinations(boxes, 2):
        assert one.shared(other) == 0, (one, other)
    nodes = [rect_of(rect) for rect in found(picture, "rect") if rect.get("fill") != PAPER]
    labels = [rect_of(rect) for rect in found(picture, "rect") if rect.get("fill") == PAPER][1:]
    assert (len(nodes), len(labels)) == (count, count * (count - 1) // 2)
    for label, node in itertools.product(labels, nodes):
        assert label.shared(node) == 0


def box_of(text: ElementTree.Element) -> Box:
    """About the place of a line of text."""
    size = number(text, "font-size")
    wide = len("".join(text.itertext())) * size * WIDTH
    shift = {"middle": 0.0, "end": -wide / 2, "start": wide / 2}[text.get("text-anchor", "start")]
    return Box(number(text, "x") + shift, number(text, "y") - 0.35 * size, wide, 0.9 * size)


def rect_of(rect: ElementTree.Element) -> Box:
    width, height = number(rect, "width"), number(rect, "height")
    return Box(number(rect, "x") + width / 2, number(rect, "y") + height / 2, width, height)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_everything_is_on_the_page(count: int) -> None:
    picture = draw_graph(all_pairs(count), "all pairs")
    wide, high = (number(parsed(picture), name) for name in ("width", "height"))
    for text in found(picture, "text"):
        box = box_of(text)
        assert 0 <= box.x - box.width / 2 <= box.x + box.width / 2 <= wide
        assert 0 <= box.y - box.height / 2 <= box.y + box.height / 2 <= high


def test_a_counted_variable_has_a_line_to_itself() -> None:
    graph = ConstraintGraph((("v*5", "anomaly >= 1.5"),), (Edge("v*5", "v*5", "at most 3 DAYS apart", True),))
    picture = draw_graph(graph, "warm")
    assert len(found(picture, "polyline")) == 1
    assert not found(picture, "polygon"), "it needs no arrow"
    label, node = (
        text for text in found(picture, "text") if "".join(text.itertext()) in ("at most 3 DAYS apart", "v*5")
    )
    assert number(label, "y") < number(node, "y") - 40


def test_several_lines_between_two_variables_are_apart() -> None:
    edges = (Edge("a", "b", "0 to 5 later", True), Edge("b", "a", "< 1 apart", True), Edge("a", "b", "x", False))
    picture = draw_graph(ConstraintGraph((("a", ""), ("b", "")), edges), "")
    middles = {line.attrib["points"].split()[50].split(",")[1] for line in found(picture, "polyline")}
    assert len(middles) == 3


def test_no_variables_and_unknown_ones_are_a_picture_too() -> None:
    assert parsed(draw_graph(ConstraintGraph((), ()), "nothing")).tag == f"{NAMESPACE}svg"
    astray = ConstraintGraph((("a", ""),), (Edge("a", "nobody", "< 1 apart", True),))
    assert "< 1 apart" not in words(draw_graph(astray, "astray"))


def test_a_notebook_shows_the_picture() -> None:
    picture = draw_graph(COLLISION, "collision")
    assert isinstance(picture, Svg)
    assert picture._repr_svg_() == picture


def test_hostile_conditions_are_text_and_long_ones_are_cut() -> None:
    graph = ConstraintGraph(
        ((HOSTILE, HOSTILE), ("b", "x" * 5000)), (Edge(HOSTILE, "b", HOSTILE + ", " + "y " * 999, True),)
    )
    picture = draw_graph(graph, HOSTILE)
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture
    assert any(text.endswith("…") for text in words(picture))
    assert len(picture) < 10_000


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=80)), max_size=5), st.text(max_size=20), st.booleans())
@examples(25)
def test_any_text_gives_a_well_formed_picture(nodes: list[tuple[str, str]], title: str, is_given: bool) -> None:
    texts = [title, *(text for node in nodes for text in node)]
    title, *rest = (text.encode("utf-8", "replace").decode("utf-8") for text in texts)
    named = tuple(zip(rest[::2], rest[1::2], strict=True))
    edges = tuple(Edge(one, other, asked, is_given) for (one, asked), (other, _) in zip(named, named[1:], strict=False))
    known = {"svg", "title", "rect", "text", "tspan", "polyline", "polygon"}
    picture = parsed(draw_graph(ConstraintGraph(named, edges), title))
    assert {each.tag.removeprefix(NAMESPACE) for each in picture.iter()} <= known
