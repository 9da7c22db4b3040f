"""The columns of plain CSV files are those that Spark infers."""

from __future__ import annotations

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
from anabranch.runtime.sources.plain_csv import plain_csv_schema

TIMES = spark_types.TimestampType()

#: Cells of each type, and cells that could be of several.
CELLS = [
    "", "0", "7", "-0", "-12", "007", "2147483647", "2147483648", "-2147483648", "-2147483649", "000000000012",
    "999999999999999999", "1000000000000000000", "99999999999999999999", "1.5", "-0.25", "1.0", "1.", ".5", "1e3",
    "0.123456789012345678", "12.1234567890123456789", "1d", "a", "A1", "T", "T1", "t12", "T12:30", "x y", "x ", " x",
    "true", "False", "trueish", "NaN", "nan", "Inf", "-Inf", "Infinity", "now", "epoch", "NULL", "null", "é", "_",
    "2026-01-31", "2026-02-30", "2026-1-3", "0000-01-01", "9999-12-31", "2026-01-31 10:00:00", "2026-01-31T10:00:00",
    "2026-01-31T24:00:00", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00.5", "10:00:00", "e5", "f", "D", "0x1", "1_0",
]  # fmt: skip


def write(path: Path, rows: Sequence[Sequence[str]], separator: str = ",") -> Path:
    path.write_text("".join(separator.join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def by_spark(spark: SparkSession, path: Path, **options: str) -> spark_types.StructType:
    reader = spark.read.format("csv").options(**DEFAULT_OPTIONS["csv"], **options, inferSchema="true")
    return reader.load(str(path)).schema


def test_every_pair_of_cells_has_the_type_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    pairs = list(combinations_with_replacement(CELLS, 2))
    names = [f"c{number}" for number in range(len(pairs))]
    inferred = by_spark(spark, write(tmp_path / "all.csv", [names, *zip(*pairs, strict=True)]))
    n_certain = 0
    for pair, expected in zip(pairs, inferred, strict=True):
        found = plain_csv_schema(
            [str(write(tmp_path / "one.csv", [["c", "d"], *([cell, "x"] for cell in pair)]))], {}, True, TIMES
        )
        if found is not None:
            n_certain += 1
            assert found["c"].dataType == expected.dataType, pair
    assert n_certain > len(pairs) / 3


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(st.sampled_from(CELLS[:50]), min_size=3, max_size=3), max_size=4),
    separator=st.sampled_from(",;\t|"),
    cut=st.integers(0, 4),
)
def test_files_have_the_columns_that_spark_infers(
    spark: SparkSession, tmp_path: Path, rows: list[list[str]], separator: str, cut: int
) -> None:
    header = ["a", "B", "some name"]
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    paths = [
        write(folder / f"{number}.csv", [header, *part], separator)
        for number, part in enumerate((rows[:cut], rows[cut:]))
    ]
    found = plain_csv_schema(list(map(str, paths)), {"sep": separator}, True, TIMES)
    if found is not None:
        assert found == by_spark(spark, folder, sep=separator)


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "a\n\n1\n", "a,A\n1,2\n", "a,\n1,2\n", "a, b\n1,2\n", 'a,b\n"1",2\n', "a,b\r\n1,2\r\n", "a,b\n1\n",
        "a,b\n1,2,3\n", "\ufeffa,b\n1,2\n", "a,b\n1\\,2\n", "a,b\n1\0,2\n",
    ],
)  # fmt: skip
def test_unusual_files_are_left_to_spark(text: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert plain_csv_schema([str(path)], {}, True, TIMES) is None


def test_large_compressed_and_partitioned_files_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(write(tmp_path / "in.csv", [["a"], ["1"]]))
    assert plain_csv_schema([path], {}, True, TIMES) is not None
    assert plain_csv_schema([path], {"quote": "'"}, True, TIMES) is None
    assert plain_csv_schema([path], {"sep": "::"}, True, TIMES) is None
    assert plain_csv_schema([path, str(write(tmp_path / "other.csv", [["b"], ["1"]]))], {}, True, TIMES) is None
    assert plain_csv_schema([str(write(tmp_path / "in.csv.gz", [["a"]]))], {}, True, TIMES) is None
    (tmp_path / "k=1").mkdir()
    assert plain_csv_schema([str(write(tmp_path / "k=1" / "in.csv", [["a"]]))], {}, True, TIMES) is None
    (tmp_path / "bytes.csv").write_bytes(b"a\n\xff\n")
    assert plain_csv_schema([str(tmp_path / "bytes.csv")], {}, True, TIMES) is None
    monkeypatch.setattr(small_files, "MOST_BYTES", 3)
    assert plain_csv_schema([path], {}, True, TIMES) is None


def test_times_are_left_to_spark_if_it_reads_them_as_old_versions_did(tmp_path: Path) -> None:
    path = str(write(tmp_path / "in.csv", [["a", "b"], ["2026-01-31", "1"]]))
    assert plain_csv_schema([path], {}, True, None) is None
    assert plain_csv_schema([path], {}, False, None) == spark_types.StructType(
        [spark_types.StructField(name, spark_types.StringType()) for name in "ab"]
    )
