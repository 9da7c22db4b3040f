"""The chart as an SVG picture: well-formed, self-contained, and safe for any data."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch.charts import chart_svg
from anabranch.drawing.svg import LIKELY, TRUE, UNLIKELY, Svg
from tests.charts.answers import HOSTILE, answers, minutes
from tests.drawing.pictures import element_names, elements
from tests.drawn import examples

ANSWERS = answers([(0, "ana", 0.25), (5, "ben", 1.0), (60, "ana", 0.75)])


def test_bars_are_at_their_time_and_as_high_as_their_probability() -> None:
    picture = chart_svg(ANSWERS, title="Coffee", threshold=0.5)
    likely, unlikely = (
        sorted((float(bar.attrib["x"]), float(bar.attrib["height"])) for bar in elements(picture, "rect", fill=colour))
        for colour in (LIKELY, UNLIKELY)
    )
    assert [height for _, height in unlikely] == [9.0]
    assert [height for _, height in likely] == [36.0, 27.0], "1.0 at 5 minutes, 0.75 at 60 minutes"
    assert unlikely[0][0] < likely[0][0], "0.25 at 0 minutes"


def test_true_events_are_marked() -> None:
    truth = pa.table({"t": minutes(0, 30, 999), "p": ["ana", "ben", "ben"]})
    picture = chart_svg(ANSWERS, truth=truth, span=(minutes(0)[0].as_py(), minutes(60)[0].as_py()))
    assert len(elements(picture, "polygon", fill=TRUE)) == 2
    assert "really happened" in picture


def test_a_notebook_displays_the_picture() -> None:
    picture = chart_svg(ANSWERS)
    assert isinstance(picture, Svg)
    assert picture._repr_svg_() == picture


def test_the_picture_is_self_contained() -> None:
    picture = chart_svg(ANSWERS, title="Coffee", threshold=0.5, truth=pa.table({"t": minutes(0), "p": ["ana"]}))
    assert re.findall(r"https?://[^\"' ]+", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|<style|url\(|href", picture)


@given(st.text(max_size=30), st.text(max_size=30))
@examples(25)
def test_any_name_and_title_gives_a_well_formed_picture(name: str, title: str) -> None:
    name, title = (text.encode("utf-8", "replace").decode("utf-8") for text in (name, title))
    picture = chart_svg(answers([(0, name, 0.5)]), title=title)
    assert element_names(picture) <= {"svg", "title", "rect", "text", "line"}


def test_hostile_names_are_escaped() -> None:
    picture = chart_svg(answers([(0, HOSTILE, 0.5)]), title=HOSTILE)
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture


def test_groups_beyond_the_limit_are_counted() -> None:
    many = answers([(row, f"person-{row:02}", row / 30) for row in range(30)])
    picture = chart_svg(many, limit=3)
    assert "person-27" in picture
    assert "person-26" not in picture
    assert "… and 27 more" in picture


def test_no_answers_give_a_picture() -> None:
    assert "svg" in element_names(chart_svg(ANSWERS.slice(0, 0)))
