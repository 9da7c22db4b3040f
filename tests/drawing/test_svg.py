"""SVG elements: well-formed and escaped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anabranch.drawing.svg import DARK, INK, PAPER, Scale, element, header, label, page
from tests.drawing.pictures import elements, texts
from tests.drawn import examples


def test_numbers_have_up_to_two_decimals_and_text_is_escaped() -> None:
    assert (
        element("line", x1=1.0, stroke_width=0.456, id='a"<') == '<line x1="1" stroke-width="0.46" id="a&quot;&lt;"/>'
    )


def test_a_scale_of_no_length_has_one_position() -> None:
    assert [Scale(5, 5, 20, 80)(value) for value in (0, 5, 9)] == [20, 20, 20]
    assert [Scale(0, 10, 20, 80)(value) for value in (0, 5, 10)] == [20, 50, 80]


@given(st.text(max_size=30))
@examples(25)
def test_any_text_gives_a_well_formed_page(text: str) -> None:
    text = text.encode("utf-8", "replace").decode("utf-8")
    picture = page([*header(text, [("x", "red", text)], 800), label(text, 0, 0)], 800, 100, text)
    assert len(texts(picture)) == 3
    assert elements(picture, "title")


def test_each_colour_of_a_dark_picture_has_a_rule() -> None:
    picture = page([label("text", 0, 0)], 80, 20, "a picture", dark=True)
    (style,) = elements(picture, "style")
    for colour in (PAPER, INK):
        assert f'[fill="{colour}"]{{fill:{DARK[colour]}}}' in (style.text or "")
    assert not elements(page([], 80, 20, "a picture"), "style")
