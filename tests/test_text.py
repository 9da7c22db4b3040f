"""Values as text: one line, without control characters."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.text import can_draw, cell, probability_text, safe, short


@given(st.text())
def test_safe_text_is_printable_and_on_one_line(text: str) -> None:
    assert safe(text).isprintable()
    assert safe(text, ascii_only=True).isascii()
    assert safe(text, ascii_only=True).isprintable()


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_printable_text_is_unchanged(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pa.scalar(None, pa.string()), "NULL"),
        (pa.scalar(True), "true"),
        (pa.scalar(12), "12"),
        (pa.scalar(0.1 + 0.2), "0.3"),
        (pa.scalar(float("nan")), "nan"),
        (pa.scalar("[red]a\x1b[2J\n"), "[red]a\\x1b[2J\\n"),
        (pa.scalar("\u202eevil"), "\\u202eevil"),
        (pa.scalar(b"\x00\xff"), "0x00ff"),
        (pa.scalar(1_000_000, pa.timestamp("us", "UTC")), "1970-01-01 00:00:01"),
        (pa.scalar(1_500_000, pa.timestamp("us")), "1970-01-01 00:00:01.500000"),
        (pa.scalar(2**62, pa.timestamp("s")), None),
        (pa.scalar({"tag": 7, "reader": "a\nb"}), "{tag: 7, reader: a\\nb}"),
        (pa.scalar([1.5, None]), "[1.5, NULL]"),
        (pa.scalar("x" * 1_000_000), "x" * 59 + "…"),
    ],
)
def test_cells(value: pa.Scalar, expected: str | None) -> None:
    shown = cell(value)
    assert shown.isprintable()
    assert expected is None or shown == expected


def test_a_truncated_text_ends_with_an_ellipsis() -> None:
    assert short("abcdef", 4) == "abc…"
    assert short("abcd", 4) == "abcd"


@given(st.floats(0, 1))
def test_only_0_and_1_are_shown_as_0_and_1(p: float) -> None:
    assert (probability_text(p) == "0.000") == (p == 0)
    assert (probability_text(p) == "1.000") == (p == 1)


@pytest.mark.parametrize(("encoding", "drawn"), [("utf-8", True), ("ascii", False), ("latin-1", False), ("no", False)])
def test_encodings_with_block_characters(encoding: str, drawn: bool) -> None:
    assert can_draw(encoding) is drawn
