"""Messages: golden files, and properties of every message."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.errors import Finding, Span, WorkbookError
from anabranch.language.parser import parse
from tests.language.golden_errors import WORKBOOKS, messages


@pytest.mark.parametrize("workbook", WORKBOOKS, ids=lambda path: path.stem)
def test_messages_equal_the_golden_files(workbook: Path) -> None:
    assert messages(workbook) == workbook.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("workbook", WORKBOOKS, ids=lambda path: path.stem)
def test_findings_are_sorted_by_position(workbook: Path) -> None:
    positions = [tuple(map(int, line.split(":")[1:3])) for line in messages(workbook).splitlines()]
    assert positions == sorted(positions)
    assert len(positions) > 1


def test_an_error_is_one_line_with_its_position_and_the_marked_source() -> None:
    with pytest.raises(WorkbookError) as caught:
        parse("CREATE QUERY q AS\n  PATTERN at(p) WERE p = 1;", "coffee.abq")
    assert str(caught.value).startswith("coffee.abq:2:17: expected THEN, WHERE, ")
    assert str(caught.value).endswith("found 'WERE'; did you mean WHERE?")
    assert caught.value.report().splitlines()[1:] == ["    PATTERN at(p) WERE p = 1;", "                  ^^^^"]


def test_the_position_is_right_after_strings_with_odd_line_ends() -> None:
    text = "CREATE RELATION r (a) FROM 'x\u2028y\x0bz';\r\nCREATE RELATION r (b)\rFROM 5;"
    with pytest.raises(WorkbookError) as caught:
        parse(text)
    assert caught.value.findings[0].span == Span(3, 6, 3, 7)
    assert caught.value.findings[0].marked(text).splitlines() == ["  FROM 5;", "       ^"]


def test_a_byte_order_mark_is_ignored() -> None:
    assert parse("\ufeffCREATE RELATION r (a);").statements[0].name == "r"
    with pytest.raises(WorkbookError) as caught:
        parse("\ufeffCRATE RELATION r (a);")
    assert caught.value.findings[0].span == Span(1, 1, 1, 6)
    assert "CRATE" in caught.value.report()


def test_a_finding_without_a_position_points_to_the_start() -> None:
    assert Finding("c", "m").line("f") == "f:1:1: m"
    assert Finding("c", "m").marked("text") == ""


@pytest.mark.parametrize("word", ["BEFORE", "AFTER"])
def test_a_relation_of_two_words_is_suggested_with_its_first_word(word: str) -> None:
    with pytest.raises(WorkbookError) as caught:
        parse(f"CREATE QUERY q AS RELATE ALL a FINISHES {word} SOME b FROM x;")
    assert caught.value.findings[0].hint == f"the relation is called ENDS {word}"
