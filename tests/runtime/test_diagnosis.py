"""Quarantined rows in one line: the column, a value and the likely fix."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anabranch.files.text import NOT_UTF8
from anabranch.language.types import Type
from anabranch.runtime.diagnosis import TextFormat, explain_rejected, value_text
from anabranch.transport.checks import UNREADABLE

TYPES = {"person": Type.STRING, "t": Type.TIMESTAMP, "x": Type.DOUBLE, "n": Type.INTEGER, "ok": Type.BOOLEAN}


def explain(text: str, name: str = "csv", types: dict[str, Type] = TYPES, **options: str) -> str:
    return explain_rejected(UNREADABLE, json.dumps({"text": text}), TextFormat(name, types, options))


@pytest.mark.parametrize(
    ("cell", "spark_format"),
    [
        ("01.02.2026 10:30", "dd.MM.yyyy HH:mm"),
        ("01.02.2026", "dd.MM.yyyy"),
        ("21/02/2026 10:30:15", "dd/MM/yyyy HH:mm:ss"),
        ("02/21/2026", "MM/dd/yyyy"),
        ("2026/02/21 10:30:15.250", "yyyy/MM/dd HH:mm:ss.SSS"),
        ("21-02-2026T10:30:15", "dd-MM-yyyy''T''HH:mm:ss"),
    ],
)
def test_a_usual_format_of_times_is_recognised(cell: str, spark_format: str) -> None:
    fix = f"write OPTIONS (timestampFormat = '{spark_format}') after the path"
    assert explain(f"ann,{cell},0.5,1,true") == f"column t has '{cell}', which is no TIMESTAMP; {fix}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ann,soon,0.5,1,true", "column t has 'soon', which is no TIMESTAMP; write OPTIONS (timestampFormat = ...)"),
        ("ann,1700000000,0.5,1,true", "column t has '1700000000', which is no TIMESTAMP; declare it as INTEGER if"),
        ('ann,2026-01-01,"0,5",1,true', "column x has '0,5', which is no DOUBLE; write a decimal point instead of"),
        ("ann,2026-01-01,0.5,1.5,true", "column n has '1.5', which is no INTEGER; declare it as DOUBLE"),
        ("ann,2026-01-01,0.5,one,true", "column n has 'one', which is no INTEGER; declare it as STRING, or correct"),
        ("ann,2026-01-01,0.5,1,maybe", "column ok has 'maybe', which is no BOOLEAN; declare it as STRING"),
        ("ann;2026-01-01;0.5;1;true", "has 1 cells, but the header has 5; write OPTIONS (sep = ...) if another"),
        ("ann,2026-01-01,0,5,1,true", "has 6 cells, but the header has 5; write decimal points, or put numbers"),
        ('"ann', "has 1 cells, but the header has 5; write OPTIONS (multiLine = true) if a quoted cell"),
        (",,,,", "the line ',,,,' cannot be read"),
        (r'"the \"boss\", ann",2026-01-01,0.5,1,true', r"but the header has 5; write OPTIONS (escape = '\') after"),
        (r'"the \"boss\"",2026-01-01,0.5,1,true', r"cannot be read; write OPTIONS (escape = '\') after the path"),
    ],
)
def test_a_line_of_csv_names_its_column_or_its_number_of_cells(line: str, message: str) -> None:
    assert message in explain(line)


def test_a_separator_and_a_date_format_of_the_workbook_are_used() -> None:
    types = {"d": Type.DATE, "n": Type.INTEGER}
    assert explain("03.04.2026;7", types=types, sep=";") == (
        "column d has '03.04.2026', which is no DATE; write OPTIONS (dateFormat = 'dd.MM.yyyy') after the path"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "the line '{' is no JSON; write OPTIONS (multiLine = true) if a document has several lines"),
        ('{"T": "01.02.2026"}', "column t has '01.02.2026', which is no TIMESTAMP; write OPTIONS (timestampFormat ="),
        ('{"n": 1.5}', "column n has 1.5, which is no INTEGER; declare it as DOUBLE"),
        ("[1]", "the line '[1]' cannot be read"),
    ],
)
def test_a_line_of_json_names_its_column(line: str, message: str) -> None:
    assert explain(line, "json").startswith(message)


@pytest.mark.parametrize(
    ("reason", "row", "message"),
    [
        ("p is outside [0, 1]", {"p": 60.0}, "p is outside [0, 1], such as 60.0; divide percentages by 100"),
        ("p is outside [0, 1]", {"p": -1.0}, "p is outside [0, 1], such as -1.0"),
        ("t is NULL", {"person": "ann", "t": None}, "t is NULL"),
        ("late", {"t": 3}, "late"),
    ],
)
def test_a_row_that_its_model_does_not_allow_shows_the_value(reason: str, row: dict[str, Any], message: str) -> None:
    assert explain_rejected(reason, json.dumps(row), TextFormat("", {}, {})) == message


def test_values_are_safe_and_short() -> None:
    assert value_text("a\nb") == r"'a\nb'"
    assert len(value_text("x" * 1000)) < 70


def test_a_tab_in_the_options_separates_cells() -> None:
    assert "column t has 'soon'" in explain("ann\tsoon\t0.5\t1\ttrue", sep="\\t")


def test_a_line_that_is_no_text_names_an_encoding() -> None:
    row = json.dumps({"text": "zo\ufffd"})
    explained = explain_rejected(NOT_UTF8, row, TextFormat("csv", TYPES, {}))
    assert explained.startswith("the line is not valid UTF-8; write OPTIONS (encoding = 'ISO-8859-1') after the path")
