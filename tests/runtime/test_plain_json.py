"""The columns of plain files of JSON lines are those that Spark infers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from anabranch.runtime.sources import small_files
from anabranch.runtime.sources.files import DEFAULT_OPTIONS
from anabranch.runtime.sources.plain_json import plain_json_schema

#: Values of each type, values that could be of several, and values that are left to Spark.
VALUES = [
    "null", '""', '" "', '"a"', '"1"', '"2026-01-31"', '"2026-01-31T10:00:00Z"', '"\\u00e9\\n"', '"é"', '"NaN"', "true",
    "false", "0", "-0", "7", "2147483648", "9223372036854775807", "-9223372036854775808", "1.0", "-0.25",
    "1e3", "1E400", "0.12345678901234567890", "9223372036854775808", "123456789012345678901234567890", "NaN", "[]",
    "[1]", "{}", '{"a":1}',
]  # fmt: skip


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def by_spark(spark: SparkSession, path: Path) -> spark_types.StructType:
    return spark.read.format("json").options(**DEFAULT_OPTIONS["json"]).load(str(path)).schema


def test_every_pair_of_values_has_the_type_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    pairs = list(combinations_with_replacement(VALUES, 2))
    lines = [
        "{" + ",".join(f'"c{number}":{pair[index]}' for number, pair in enumerate(pairs)) + "}" for index in (0, 1)
    ]
    inferred = by_spark(spark, write(tmp_path / "all.json", lines))
    n_certain = 0
    for number, pair in enumerate(pairs):
        found = plain_json_schema([str(write(tmp_path / "one.json", [f'{{"c": {value}}}' for value in pair]))])
        if found is not None:
            n_certain += 1
            assert found["c"].dataType == inferred[f"c{number}"].dataType, pair
    assert n_certain > len(pairs) / 2


NAMES = ["b", "a", "B2", "some name", "é", "\U0001f600", "\uffee", "x.y", "_"]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES[:23])), min_size=1, max_size=5),
    st.integers(0, 5),
)
def test_files_have_the_columns_that_spark_infers(
    spark: SparkSession, tmp_path: Path, rows: list[dict[str, str]], cut: int
) -> None:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    lines = ["{" + ", ".join(f"{json.dumps(name)}: {row[name]}" for name in row) + "}" for row in rows]
    first = write(folder / "0.json", lines[: max(cut, 1)])
    second = write(folder / "1.jsonl", lines[max(cut, 1) :] or lines)
    found = plain_json_schema([str(first), str(second)])
    assert found == by_spark(spark, folder)


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", '{"a":1}\n\n{"a":2}\n', '{"a":1}\r\n', '{"a":1,"a":2}\n', '{"a":1,"A":2}\n', '{"a":1}\n{"A":2}\n',
        '[{"a":1}]\n', "1\n", '{"a":1}}\n', '{"a":1\n', "{'a':1}\n", '\ufeff{"a":1}\n', '{"a":01}\n', '{"\\ud800":1}\n',
        '{"a":' + "[" * 5000,
    ],
)  # fmt: skip
def test_unusual_files_are_left_to_spark(text: str, tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(text, encoding="utf-8", newline="")
    assert plain_json_schema([str(path)]) is None


def test_large_compressed_and_partitioned_files_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(write(tmp_path / "in.json", ['{"a":1}']))
    assert plain_json_schema([path]) is not None
    assert plain_json_schema([]) is None
    assert plain_json_schema([path, str(write(tmp_path / "in.json.gz", ['{"a":1}']))]) is None
    (tmp_path / "k=1").mkdir()
    assert plain_json_schema([str(write(tmp_path / "k=1" / "in.json", ['{"a":1}']))]) is None
    (tmp_path / "bytes.json").write_bytes(b'{"a":"\xff"}\n')
    assert plain_json_schema([str(tmp_path / "bytes.json")]) is None
    monkeypatch.setattr(small_files, "MOST_BYTES", 3)
    assert plain_json_schema([path]) is None
