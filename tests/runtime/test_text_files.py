"""The workers read CSV and JSON lines exactly as Spark does: every cell, and every line that holds no row."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from anabranch import Session
from anabranch.files.csv_lines import Dialect
from anabranch.files.formats import Columns, CsvFormat, JsonFormat, LineFormat
from anabranch.files.text import read_block
from anabranch.language.types import Type
from anabranch.runtime import inputs
from anabranch.runtime.sources.files import DEFAULT_OPTIONS
from anabranch.runtime.sources.schema import CORRUPT, SPARK_TYPES

TYPES = [Type.STRING, Type.INTEGER, Type.DOUBLE, Type.BOOLEAN, Type.TIMESTAMP, Type.DATE]
NAMES = ["s", "x", "u"]

# ---------------------------------------------------------------- both readers

Read = tuple[Counter[str], Counter[str]]


def by_spark(
    spark: SparkSession, path: Path, kind: Type, file_format: str, options: Mapping[str, str], needed: Sequence[str]
) -> Read:
    """The rows that Spark reads, and the texts of those that it cannot read."""
    types = {"s": Type.STRING, "x": kind, "u": Type.STRING, CORRUPT: Type.STRING}
    fields = [spark_types.StructField(name, SPARK_TYPES[type_]) for name, type_ in types.items()]
    reader = spark.read.format(file_format).options(**(DEFAULT_OPTIONS[file_format] | options))
    table = reader.schema(spark_types.StructType(fields)).load(str(path)).select(*needed, CORRUPT).toArrow()
    is_read = table[CORRUPT].is_null()
    rows = plain(table.filter(is_read).select(needed)).to_pylist()
    return Counter(map(repr, rows)), Counter(table.filter(table[CORRUPT].is_valid())[CORRUPT].to_pylist())


def by_workers(data: bytes, lines: LineFormat) -> Read:
    """The same by the package."""
    table, rejected = read_block(data, lines, "stream")
    texts = Counter(json.loads(text)["text"] for text in rejected["row"].to_pylist())
    return Counter(map(repr, plain(table).to_pylist())), texts


def plain(table: pa.Table) -> pa.Table:
    """The table with times as integers, because Python's times have fewer years."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.timestamp("us")).cast(pa.int64()))
        elif pa.types.is_date(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.int32()))
    return table


def columns(kind: Type, needed: Sequence[str]) -> Columns:
    return Columns(needed, [kind if name == "x" else Type.STRING for name in needed])


def compare_csv(
    spark: SparkSession,
    folder: Path,
    kind: Type,
    lines: Sequence[str],
    separator: str = ",",
    escape: str = "\\",
    needed: Sequence[str] = NAMES,
) -> None:
    """Compare both readers on the lines of one file; if they differ, name the line."""
    own = CsvFormat(columns(kind, needed), NAMES, Dialect(separator, escape))

    def read(some: Sequence[str]) -> tuple[Read, Read]:
        path = folder / "lines.csv"
        body = "".join(line + "\n" for line in some).encode()
        path.write_bytes((separator.join(NAMES) + "\n").encode() + body)
        return by_spark(spark, path, kind, "csv", {"sep": separator, "escape": escape}, needed), by_workers(body, own)

    _compare(read, lines)


def compare_json(spark: SparkSession, folder: Path, kind: Type, lines: Sequence[str]) -> None:
    """The same for lines of JSON."""

    def read(some: Sequence[str]) -> tuple[Read, Read]:
        path = folder / "lines.json"
        path.write_bytes("".join(line + "\n" for line in some).encode())
        own = by_workers(path.read_bytes(), JsonFormat(columns(kind, NAMES[:2])))
        return by_spark(spark, path, kind, "json", {}, NAMES[:2]), own

    _compare(read, lines)


def _compare(read: Callable[[Sequence[str]], tuple[Read, Read]], lines: Sequence[str]) -> None:
    expected, actual = read(lines)
    if actual == expected:
        return
    while len(lines) > 1:  # find one line that differs
        half = len(lines) // 2
        left = read(lines[:half])
        lines = lines[:half] if left[0] != left[1] else lines[half:]
    expected, actual = read(lines)
    assert actual == expected, lines


# ---------------------------------------------------------------- cells of each type

NUMBERS = """0 -0 +0 7 -7 +7 007 1. .5 . - + 1e3 1E-3 1e+3 1e 1e400 -1e400 1e-400 4.9e-324 0.1 0.30000000000000004
    123456789012345678 1234567890123456789 9223372036854775807 9223372036854775808 -9223372036854775808
    99999999999999999999999999 0.1234567890123456789 9007199254740993 9007199254740992.5 1.7976931348623157e308
    1d 1f 1D 1L 0x10 0x1p3 0x1.8p1d 1_000 1,5 NaN nan Inf -Inf +Inf inf Infinity -Infinity +Infinity INF
    1e22 1e23 123456789012345678e-22 8.5e-23 2.5e-5 100000000000000000000 0.000000000000000000000000000001 ٣ １
    5e-1 0e0 00.5 -.5 +.5e1 1e0005 1e00005 1..2 1.2.3 1e5.5 --1 +-1 true""".split()
BOOLEANS = "true false TRUE False tRuE t f yes no 0 1 truE1 falſe".split()
DATES = """2026-01-31 2026-1-3 2026-02-29 2024-02-29 1900-02-29 2000-02-29 2026-13-01 2026-00-10 2026-1 2026 20260131
    02026-01-31 +2026-01-31 -2026-01-31 0000-01-01 9999-12-31 10000-01-01 2026-01-31T 2026-01-31Tnoon 2026-01-32
    2026/01/31 31.01.2026 123 18000 1582-10-10 2026-01- 2026- -1 2026-001-01 1500-02-29""".split()
CLOCKS = """00:00:00 23:59:59 24:00:00 12:60:00 12:00:60 1:2:3 12:00 12 12:00:00.5 12:00:00.123456789 12:00:00.
    12:00:00.1234567 12:: 12:00:0 001:00:00 12:00:00Z 12:00:00z 12:00:00+01:00 12:00:00-18:00 12:00:00+18:01
    12:00:00+1:00 12:00:00+01:5 12:00:00+0100 12:00:00+01 12:00:00+1 12:00:00UTC 12:00:00UTC+1 12:00:00GMT+01:00
    12:00:00GMT 12:00:00EST 12:00:00PST 12:00:00Europe/Zurich 12:00:00europe/zurich 12:00:00.5Europe/Zurich
    12:00:00+01:00:30 12:00:00+01:00:3 12:00:00.5.5 12:00Z 12Z 12:00:00T 02:30:00Europe/Zurich
    12:00:00UT-2 12:00:00X""".split()
TIMES = [
    *DATES,
    *(f"{day}{gap}{clock}" for day in ("2026-03-29", "2026-1-3", "1850-06-01") for gap in "T " for clock in CLOCKS),
    "2026-10-25 02:30:00Europe/Zurich", "2026-01-31 12:00:00 Europe/Zurich", "2026-01-31  12:00:00", "12:00:61",
    "2026-01-31t12:00:00", "9999-12-31T23:59:59.999999Z", "294247-01-10T04:00:54.775807Z", "294248-01-01T00:00:00Z",
]  # fmt: skip
CELLS = {
    Type.STRING: ["a", "é", "b c", "NULL", "😀"], Type.INTEGER: NUMBERS, Type.DOUBLE: NUMBERS, Type.BOOLEAN: BOOLEANS,
    Type.TIMESTAMP: TIMES, Type.DATE: TIMES,
}  # fmt: skip
SPACES = ("", "", "", " ", "\t", "  ", "\x7f", "\x01", "\u00a0")


def spaced(cells: Sequence[str]) -> list[str]:
    """Cells, each also with spaces and control characters around it."""
    chosen = random.Random(1)
    return [*cells, *(chosen.choice(SPACES) + cell + chosen.choice(SPACES) for cell in cells)]


@pytest.mark.parametrize("kind", TYPES)
def test_csv_cells(kind: Type, spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{number},{cell},z" for number, cell in enumerate(spaced(CELLS[kind])) if "," not in cell]
    quoted = [f'{number},"{cell}","z"' for number, cell in enumerate(CELLS[kind])]
    compare_csv(spark, tmp_path, kind, [*lines, *quoted])


@pytest.mark.parametrize("kind", TYPES)
def test_json_cells(kind: Type, spark: SparkSession, tmp_path: Path) -> None:
    texts = [json.dumps({"s": str(number), "x": cell}) for number, cell in enumerate(spaced(CELLS[kind]))]
    # Spark multiplies seconds by a million without a check: the result is any time. The workers quarantine such rows.
    most = 10 if kind is Type.TIMESTAMP else 1000
    numbers = [cell for cell in NUMBERS if len(cell.strip("+-")) <= most or not cell.strip("+-").isdigit()]
    bare = [f'{{"s": "{number}", "x": {cell}}}' for number, cell in enumerate(numbers)]
    others = [
        f'{{"x":{cell},"s":"q"}}'
        for cell in ("null", "true", "false", "True", '""', "{}", "[1, 2]", '{"a": [1, {"b": "c"}]}', "'single'", "nul",
                     "-INF", "+INF", "- 1", "01", "-01", "1.e5", "[1", '"a', "1e999", "-0", "-0.0")
    ]  # fmt: skip
    compare_json(spark, tmp_path, kind, [*texts, *bare, *others])


# ---------------------------------------------------------------- lines

CSV_LINES = [
    "", " ", "\t", "a,1,z", "a,1", "a,1,z,", ",,", "a,,", ",1,", '"",1,""', '"a",1,z', '"a,b",1,z', '"a"b,1,z',
    '"a""b",1,z', '"a"" b",1,z', '"a" ,1,z', '"a"  b,1,z', ' "a",1,z', 'a"b,1,z', 'a"b"c,1,z', '"a\\"b",1,z',
    '"a\\\\",1,z', '"a\\b",1,z', 'a\\,1,z', 'a\\"b,1,z', '"a,1,z', '"a\n', 'a,1,"z', 'a,1,z"', 'a,1,"z"', 'a,1,"z" ',
    '"""a""",1,z', '"""",1,z', '"a""",1,z', '""a,1,z', '"a"",1,z', '"a\\",1,z', "é,1,z", "😀,1,z", "a;1;z", "a\tb,1,z",
    "#a,1,z", "a,1,z\r", "\\,1,z", "'a',1,z", '"a" "b",1,z', 'a,1,"', 'a,1,""', '","', '"\\""',
]  # fmt: skip


@pytest.mark.parametrize("escape", ["\\", '"'])
@pytest.mark.parametrize("separator", [",", "\t", "|"])
def test_csv_lines(separator: str, escape: str, spark: SparkSession, tmp_path: Path) -> None:
    lines = [line.replace(",", separator) for line in CSV_LINES]
    compare_csv(spark, tmp_path, Type.INTEGER, lines, separator, escape)
    compare_csv(spark, tmp_path, Type.INTEGER, lines, separator, escape, needed=["x", "s"])


JSON_LINES = [
    "", "  ", '{"s": "a", "x": 1}', '{"s":"a","x":1} junk', '{"s":"a","x":1}{"s":"b"}', "{}", "[]", "null", "1", '"a"',
    '[{"s":"a","x":1},{"s":"b","x":2}]', '[{"s":"a","x":1},{"x":"no"}]', '[{"s":"a"},null]', "[1]", '[{"s":"a"}', "{",
    '{"s":"a",}', '{"s" "a"}', '{s:"a"}', "{'s':'a', 'x':1}", "{'s':'it\\'s','x':1}", '{"s":"a\\tb\\u00e9\\n","x":1}',
    '{"s":"\\ud83d\\ude00","x":1}', '{"s":"\\ud83d","x":1}', '{"s":"\\x","x":1}', '{"s":"a\tb","x":1}',
    '{"s":"a","x":1,"x":2}', '{"s":"a","x":"no","x":2}', '{"s":"a","S":"b","x":1}', '{"X":1,"s":"a"}',
    '{"s":"a","x":1,"other":{"x":[1,2,{"s":3}]}}', '{"s":{"a": 1 , "b":[ ]},"x":1}', '{"s":1.50,"x":1}',
    '{"s":true,"x":1}', '{"s":"","x":null}', '\t{"s":"a","x":1}\t', '{"s":"a","x":1}\r', '{"\\u0073":"a","x":1}',
    '{"s":"é😀","x":1}', "// comment", '{"s":"a" /* no */,"x":1}', '{"s":"a","x":99999999999999999999}', "\x01",
    '{"s":[],"x":1}', '{"s":"a","x":1]', '[{"s":"a","x":1}}', '{"s":"a\\/b","x":1}', '{"x":1.0,"s":"a"}', "é",
    '{"s":NaN,"x":1}', '{"s":"a","x":tru}', '{"s":"a","x":truex}', '{"s":"a","u":1x,"x":1}',
]  # fmt: skip


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    compare_json(spark, tmp_path, Type.INTEGER, JSON_LINES)


_FEW = settings(max_examples=8, suppress_health_check=[*HealthCheck])


@_FEW
@given(
    st.lists(st.text(alphabet='ab1",\\ é', max_size=14), min_size=100, max_size=400),
    st.sampled_from(["\\", '"']),
)
def test_drawn_csv_lines(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, lines: list[str], escape: str
) -> None:
    kept = [line + extra for line in lines for extra in ("", ",1,z") if not _is_undefined(line + extra)]
    folder = tmp_path_factory.mktemp("drawn")
    compare_csv(spark, folder, Type.INTEGER, kept, escape=escape)
    compare_csv(spark, folder, Type.INTEGER, kept, escape=escape, needed=["s", "x"])


def _is_undefined(line: str) -> bool:
    """Whether a backslash follows a quote within a quoted cell: Spark then reads on past the next separator."""
    return '"\\' in line


@_FEW
@given(st.lists(st.text(alphabet="01259.:-+TZ eE", max_size=20), min_size=200, max_size=600), st.sampled_from(TYPES))
def test_drawn_cells(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, cells: list[str], kind: Type
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    compare_csv(spark, folder, kind, [f"{number},{cell},z" for number, cell in enumerate(cells)])
    compare_json(spark, folder, kind, [json.dumps({"s": str(number), "x": cell}) for number, cell in enumerate(cells)])


@_FEW
@given(st.lists(st.text(alphabet="{}[]:,\"'\\sxu10.-en tralf", max_size=25), min_size=200, max_size=600))
def test_drawn_json_lines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    lines = [
        line for part in parts for line in (part, f'{{"s":{part}', f'{{"s":"a","x":{part}}}', f'{{"s":"{part}","x":1}}')
    ]
    compare_json(spark, tmp_path_factory.mktemp("drawn"), Type.INTEGER, lines)


# ---------------------------------------------------------------- whole files

ROWS = "ann,hall,1,0.5", "ann,coffee,2,0.8", "bob,hall,1,1", "bob,coffee,2,no", "eve,hall", "eve,hall,1,0.5,1"
HEADER = "person,place,t,p"
CSV_FILES = {
    "usual": "\n".join([HEADER, *ROWS]) + "\n",
    "no line end": "\n".join([HEADER, *ROWS]),
    "CRLF": "\r\n".join([HEADER, *ROWS]) + "\r\n",
    "CR": "\r".join([HEADER, *ROWS]),
    "mark of UTF-8": "\ufeff" + "\n".join([HEADER, *ROWS]),
    "blank lines": "\n \n" + HEADER + "\n\n\n" + "\n \n".join(ROWS),
    "quotes": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in (HEADER, *ROWS)),
    "more columns": "\n".join(f"{number},{line},z" for number, line in enumerate([HEADER, *ROWS])).replace(
        "0,", "n,", 1
    ),
    "only a header": HEADER + "\n",
    "no bytes": "",
}
DECLARATION = (
    "CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT FROM '{}';"
    "CREATE QUERY coffee AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;"
)


def outcome(spark: SparkSession, path: Path) -> tuple[object, ...]:
    """The answers, counts and quarantined rows of a query over a file."""
    session = Session(spark)
    session.execute(DECLARATION.format(path))
    answers = session.run("coffee").toArrow().to_pylist()
    quarantined = Counter(map(repr, session.quarantine("coffee").toArrow().to_pylist()))
    return sorted(map(repr, answers)), repr(session.counts("coffee")), quarantined


@pytest.mark.parametrize("name", CSV_FILES)
def test_csv_files(name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ("no bytes", "only a header"):  # a run without rows warns, so another file has one
        (tmp_path / "first.csv").write_text(HEADER + "\n" + ROWS[0])
    (tmp_path / "rows.csv").write_bytes(CSV_FILES[name].encode())
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(CSV_FILES[name].encode()))
    by_own = outcome(spark, tmp_path / "*.csv*")
    monkeypatch.setattr(inputs, "reader_of", lambda *_: None)
    assert by_own == outcome(spark, tmp_path / "*.csv*")


def test_json_files(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [line.split(",") for line in ROWS]
    lines = [json.dumps({"person": row[0], "place": row[1], "t": len(row), "p": 0.5}) for row in cells]
    text = "\ufeff" + "\r\n".join([*lines, '{"person": "eve", "t": "no"}', "", "[]"])
    (tmp_path / "rows.json").write_text(text)
    (tmp_path / "rows.json.gz").write_bytes(gzip.compress(text.encode()))
    by_own = outcome(spark, tmp_path / "*.json*")
    monkeypatch.setattr(inputs, "reader_of", lambda *_: None)
    assert by_own == outcome(spark, tmp_path / "*.json*")
