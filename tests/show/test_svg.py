"""The chart as a picture: well-formed, self-contained, and safe whatever the data hold."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch.show import chart_svg
from anabranch.show.svg import LIKELY, TRUE, UNLIKELY, Svg
from tests.drawn import examples
from tests.show.answers import HOSTILE, answers, minutes

SOME = answers([(0, "ana", 0.25), (5, "ben", 1.0), (60, "ana", 0.75)])
NAMESPACE = "{http://www.w3.org/2000/svg}"


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 (we drew it ourselves)


def shapes(picture: str, name: str, fill: str) -> list[dict[str, str]]:
    return [found.attrib for found in parsed(picture).iter(NAMESPACE + name) if found.get("fill") == fill]


def test_bars_stand_at_their_time_and_as_high_as_their_probability() -> None:
    picture = chart_svg(SOME, title="Coffee", threshold=0.5)
    likely, less = shapes(picture, "rect", LIKELY), shapes(picture, "rect", UNLIKELY)
    assert sorted(float(bar["height"]) for bar in likely) == [27.0, 36.0]
    assert [float(bar["height"]) for bar in less] == [9.0]
    places = [float(bar["x"]) for bar in (less[0], *sorted(likely, key=lambda bar: -float(bar["height"])))]
    assert places == sorted(places), "0.25 at 0, 1.0 at 5, 0.75 at 60 minutes"


def test_the_truth_is_marked() -> None:
    truth = pa.table({"t": minutes(0, 30, 999), "p": ["ana", "ben", "ben"]})
    picture = chart_svg(SOME, truth=truth, span=(minutes(0)[0].as_py(), minutes(60)[0].as_py()))
    assert len(shapes(picture, "polygon", TRUE)) == 2
    assert "really happened" in picture


def test_a_notebook_shows_the_picture() -> None:
    picture = chart_svg(SOME)
    assert isinstance(picture, Svg)
    assert picture._repr_svg_() == picture


def test_the_picture_stands_alone() -> None:
    picture = chart_svg(SOME, title="Coffee", threshold=0.5, truth=pa.table({"t": minutes(0), "p": ["ana"]}))
    assert re.findall(r"https?://[^\"' ]+", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|<style|url\(|href", picture)


@given(st.text(max_size=30), st.text(max_size=30))
@examples(25)
def test_any_name_and_title_gives_a_well_formed_picture(name: str, title: str) -> None:
    name, title = (text.encode("utf-8", "replace").decode("utf-8") for text in (name, title))
    picture = parsed(chart_svg(answers([(0, name, 0.5)]), title=title))
    assert {found.tag.removeprefix(NAMESPACE) for found in picture.iter()} <= {"svg", "title", "rect", "text", "line"}


def test_hostile_names_are_text() -> None:
    picture = chart_svg(answers([(0, HOSTILE, 0.5)]), title=HOSTILE)
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture


def test_groups_beyond_the_limit_are_counted() -> None:
    many = answers([(row, f"person-{row:02}", row / 30) for row in range(30)])
    picture = chart_svg(many, limit=3)
    assert "person-27" in picture
    assert "person-26" not in picture
    assert "… and 27 more" in picture


def test_no_answers_is_a_picture_too() -> None:
    assert parsed(chart_svg(SOME.slice(0, 0))).tag == f"{NAMESPACE}svg"
