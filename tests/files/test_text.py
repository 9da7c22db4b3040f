"""Text becomes the values that Python reads from it, in compiled loops and line by line.

`tests/runtime/test_text_files.py` compares both with Spark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.files import blocks
from anabranch.files.csv_lines import Dialect
from anabranch.files.formats import Columns, CsvFormat, JsonFormat
from anabranch.files.reader import UnreadableFile
from anabranch.files.text import NOT_UTF8, TextReader, read_block
from anabranch.language.types import Type
from anabranch.transport.checks import UNREADABLE

NAMES = ["text", "whole", "number", "flag", "time", "day"]
TYPES = [Type.STRING, Type.INTEGER, Type.DOUBLE, Type.BOOLEAN, Type.TIMESTAMP, Type.DATE]
CSV = CsvFormat(Columns(NAMES, TYPES), NAMES, Dialect())
JSON = JsonFormat(Columns(NAMES, TYPES))
SOME = CsvFormat(Columns(["whole", "text"], [Type.INTEGER, Type.STRING]), NAMES, Dialect())

#: Times with an offset, and with a fraction or without.
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))])
SECONDS = st.integers(-62_000_000_000, 253_000_000_000) | st.floats(-62e9, 253e9)
TIMES = st.builds(lambda seconds, zone: datetime.fromtimestamp(0, zone) + timedelta(seconds=seconds), SECONDS, ZONES)
ROWS = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1),
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
        "number": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.none() | st.booleans(),
        "time": st.none() | TIMES,
        "day": st.none() | st.dates(),
    }
)


def read(data: str | bytes, lines: CsvFormat | JsonFormat = CSV) -> list[dict[str, Any]]:
    """The rows of lines that can all be read."""
    table, rejected = read_block(data.encode() if isinstance(data, str) else data, lines, "s")
    assert rejected.num_rows == 0, rejected.to_pylist()
    return table.to_pylist()


def rejected(data: str | bytes, lines: CsvFormat | JsonFormat = CSV) -> list[tuple[str, str]]:
    """The reasons and the texts of lines that cannot be read."""
    table = read_block(data.encode() if isinstance(data, str) else data, lines, "s")[1]
    return [(row["reason"], json.loads(row["row"])["text"]) for row in table.to_pylist()]


def csv_cell(value: Any, escape: str = '"') -> str:
    if value is None:
        return ""
    text = value.isoformat() if isinstance(value, date) else str(value)
    if isinstance(value, str):
        return '"' + text.replace(escape, 2 * escape).replace('"', '"' if escape == '"' else escape + '"') + '"'
    return text


def by_text(row: dict[str, Any]) -> str:
    return repr([row[name].isoformat() if isinstance(row[name], datetime) else row[name] for name in NAMES])


def same_rows(found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> bool:
    """Whether rows are equal in some order: those that Python has read are the last ones."""
    plain = [{**row, "time": row["time"] and row["time"].astimezone(UTC)} for row in expected]
    return sorted(map(by_text, found)) == sorted(map(by_text, plain))


@given(st.lists(ROWS, min_size=1, max_size=8), st.sampled_from(['"', "\\"]))
def test_csv_rows_are_read_as_they_were_written(rows: list[dict[str, Any]], escape: str) -> None:
    lines = [",".join(csv_cell(row[name], escape) for name in NAMES) for row in rows]
    # A text of spaces is kept; only a line of nothing else would be blank.
    written = CsvFormat(CSV.columns, NAMES, Dialect(escape=escape))
    assert same_rows(read("".join(line + "\n" for line in lines), written), rows)


@given(st.lists(ROWS, min_size=1, max_size=8), st.booleans())
def test_json_rows_are_read_as_they_were_written(rows: list[dict[str, Any]], ascii_only: bool) -> None:
    plain = [
        {**row, "time": row["time"] and row["time"].isoformat(), "day": row["day"] and str(row["day"])} for row in rows
    ]
    lines = [json.dumps(row, ensure_ascii=ascii_only) for row in plain]
    assert same_rows(read("\r\n".join(lines), JSON), rows)


@st.composite
def json_lines(draw: st.DrawFn) -> list[str]:
    """Objects with some of many fields, in some order and spacing; a line may lack a byte."""
    space = st.sampled_from(["", " ", "\t "])
    values = {"text": '"a"', "whole": "1", "tex": '"b, {"', "whole number": "2.5e3", "é": "null", "more": "-0.5"}
    values |= {f"field {number}": "true" for number in range(80)}
    usual = draw(st.lists(st.sampled_from([*values]), unique=True)) + draw(st.sampled_from([[], [*values]]))
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        names = draw(st.sampled_from([usual[:6], usual[1:], [*reversed(usual[-70:])], ["text", "whole"]]))
        before, after = draw(space), draw(space)
        fields = (f'{before}"{name}"{after}:{before}{values[name]}{after}' for name in dict.fromkeys(names))
        line = f"{before}{{{','.join(fields)}{after}}}{after}"
        gap = draw(st.integers(0, 4 * len(line)))
        lines.append(line[:gap] + line[gap + 1 :])
    return lines


@given(json_lines())
def test_json_lines_with_other_fields_than_the_line_before(lines: list[str]) -> None:
    lines = [line for line in lines if line.strip()]
    expected, wrong = [], []
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            wrong.append((UNREADABLE, line))
        else:
            expected.append((str(found.get("text")), str(found.get("whole"))))
    columns = JsonFormat(Columns(["whole", "text"], [Type.INTEGER, Type.STRING]))
    data = "\n".join(lines)
    rows, _ = read_block(data.encode(), columns, "s")
    assert sorted((str(row["text"]), str(row["whole"])) for row in rows.to_pylist()) == sorted(expected)
    assert rejected(data, columns) == wrong


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 19), st.integers(-30, 30))
def test_every_notation_of_a_number_is_the_nearest_double(value: float, digits: int, exponent: int) -> None:
    cells = [
        repr(value),
        f"{value:.{digits}e}",
        f"{value:.{digits}g}",
        f"{value}".replace("e", "E"),
        f"{digits}e{exponent}",
    ]
    cells += [f"{digits * 123456789012345}e{exponent}", f"0.{'0' * (digits % 7)}{abs(hash(value)) % 10**digits}"]
    rows = read("".join(f",,{cell},,,\n" for cell in cells))
    assert sorted(row["number"] for row in rows) == sorted(map(float, cells))


def test_blank_lines_and_all_line_ends() -> None:
    lines = "a,1,,,,\r\n\r\n \t\nb,2,,,,\rc,3,,,,"
    assert [(row["text"], row["whole"]) for row in read(lines)] == [("a", 1), ("b", 2), ("c", 3)]
    assert read(b"", CSV) == []
    assert [row["text"] for row in read('{"text":"a"}\r\n\n \r{"text":"b"}', JSON)] == ["a", "b"]


def test_cells_that_a_line_lacks_are_null_unless_all_columns_are_read() -> None:
    assert [(row["text"], row["whole"]) for row in read("a\nb,1,2,3,4,5,6\nc,2\n", SOME)] == [
        ("a", None), ("b", 1), ("c", 2),
    ]  # fmt: skip
    assert rejected("a\nb,1,2,,,,6\n") == [(UNREADABLE, "a"), (UNREADABLE, "b,1,2,,,,6")]
    tabs = CsvFormat(SOME.columns, NAMES, Dialect("\t"))
    assert [(row["text"], row["whole"]) for row in read(" \t \t\na\n", tabs)] == [("a", None)]


def test_lines_that_are_not_text() -> None:
    assert rejected(b"\xff,1,,,,\nb,2,,,,\n") == [(NOT_UTF8, "\ufffd,1,,,,")]
    assert rejected(b'{"text":"\xc3","whole":1}\n{"text":"\\"b","whole":2}\n', JSON) == [
        (NOT_UTF8, '{"text":"\ufffd","whole":1}'),
    ]  # fmt: skip


def test_json_values_of_other_types() -> None:
    lines = ['{"whole":"1"}', '{"number":"1"}', '{"flag":1}', '{"flag":"true"}', '{"time":1.5}', '{"day":1}', "7", "["]
    assert rejected("\n".join(lines), JSON) == [(UNREADABLE, line) for line in lines]
    (row,) = read('{"text":[1, {"a":2}],"number":7,"time":1}', JSON)
    assert (row["text"], row["number"], row["time"]) == ('[1, {"a":2}]', 7.0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert rejected('[{"whole":1},{"whole":""}]', JSON) == [(UNREADABLE, '[{"whole":1},{"whole":""}]')] * 2
    assert rejected('{"text":' + "[" * 5000, JSON)[0][0] == UNREADABLE


def test_the_last_of_repeated_keys_counts_and_all_must_fit() -> None:
    assert [row["whole"] for row in read('{"whole":1,"whole":2}', JSON)] == [2]
    assert rejected('{"whole":"no","whole":2}', JSON) == [(UNREADABLE, '{"whole":"no","whole":2}')]


def test_days_that_do_not_exist() -> None:
    lines = [
        f",,,,,{day}" for day in ("2026-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-01", "2026-01-00")
    ]
    assert rejected("\n".join(lines)) == [(UNREADABLE, line) for line in lines]
    assert [str(row["day"]) for row in read(",,,,,2024-02-29\n,,,,,2000-02-29")] == ["2024-02-29", "2000-02-29"]


def test_a_header_has_the_columns_at_their_places() -> None:
    SOME.check_header("TEXT,Whole")
    SOME.check_header('"text","whole","other"')
    CSV.check_header(",".join(NAMES))
    for line in ("whole,text", "text", ""):
        with pytest.raises(UnreadableFile, match="has the columns .*, not text, whole, number, flag, time, day"):
            SOME.check_header(line)
    with pytest.raises(UnreadableFile, match="has the columns"):
        CSV.check_header(",".join([*NAMES, "more"]))


def test_a_header_after_many_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "late.csv"
    path.write_text("\ufeff" + " \r\n" * 30 + "text,whole\nann,1\n", encoding="utf-8")
    lines = CsvFormat(Columns(["text", "whole"], [Type.STRING, Type.INTEGER]), ["text", "whole"], Dialect())
    for size in (1, 20, 1000):
        monkeypatch.setattr(blocks, "_FIRST_BLOCK", size)
        monkeypatch.setattr(blocks, "_BLOCK", size)
        found = b"".join(TextReader(lines)._blocks(str(path), None, None))
        assert found.strip() == b"ann,1", size
