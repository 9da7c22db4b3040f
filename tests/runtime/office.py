"""A small office for the tests of batch and streaming: who went from the hall to the coffee room."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

SCHEMA = pa.schema([("person", pa.string()), ("place", pa.string()), ("t", pa.int64()), ("p", pa.float64())])
ROWS = [
    ("ann", "hall", 1, 0.5),
    ("ann", "coffee", 2, 0.8),
    ("bob", "hall", 1, 1.0),
    ("bob", "coffee", 2, 0.25),
    ("007", "hall", 2, 0.5),
    ("007", "coffee", 3, 0.5),
]
ANSWERS = {(2, "ann"): 0.4, (2, "bob"): 0.25, (3, "007"): 0.25}


def stream(name: str = "at", source: str = "", time: str = "t", person: str = "person", more: str = "") -> str:
    """The declaration of a stream; `source` is written after FROM."""
    origin = f" FROM {source}" if source else ""
    return f"CREATE STREAM {name} KEY ({person}) VALUE (place) TIME {time} MODEL INDEPENDENT {more}{origin};\n"


def query(name: str = "coffee", over: str = "at", more: str = "GROUP BY x") -> str:
    """The declaration of a query over such a stream."""
    return f"CREATE QUERY {name} AS PATTERN {over}(x, 'hall') THEN {over}(x, 'coffee') {more};\n"


def table(rows: Sequence[tuple] = ROWS, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows as an Arrow table."""
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.table([pa.array(column, kind) for column, kind in columns], schema=schema)


def write_parquet(
    path: Path, rows: Sequence[tuple] | pa.Table = ROWS, schema: pa.Schema = SCHEMA, **options: Any
) -> Path:
    """Write a Parquet file; it appears complete, by a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}"
    pq.write_table(rows if isinstance(rows, pa.Table) else table(rows, schema), draft, **options)
    return publish(draft, path)


def write_csv(path: Path, rows: Sequence[tuple] = ROWS, names: str = "person,place,t,p", sep: str = ",") -> Path:
    """Write a CSV file with a header; it appears complete, by a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}"
    lines = [sep.join("" if cell is None else str(cell) for cell in row) for row in rows]
    draft.write_text("\n".join([names.replace(",", sep), *lines]) + "\n")
    return publish(draft, path)


_times = itertools.count(int(time.time()) - 100_000)


def publish(draft: Path, path: Path) -> Path:
    """Rename a file, with a time one second after the last one: a stream reads files in the order of their times."""
    modified = next(_times)
    os.utime(draft, (modified, modified))
    return draft.rename(path)


def answers_of(rows: Sequence[Mapping[str, Any]]) -> dict[tuple, float]:
    """The probabilities by the columns before them; no answer occurs twice."""
    probabilities: dict[tuple, float] = {}
    for row in rows:
        names = list(row)
        key = tuple(row[name] for name in names[: names.index("probability")])
        assert key not in probabilities, f"{key} occurs twice"
        assert row["lower"] == row["probability"] == row["upper"]
        assert row["method"] == "exact"
        probabilities[key] = row["probability"]
    return probabilities


def collect(frame: DataFrame) -> dict[tuple, float]:
    """The answers of a query."""
    return answers_of(frame.toArrow().to_pylist())


def written(folder: Path) -> dict[tuple, float]:
    """The answers in a folder of Parquet files, read without Spark."""
    files = sorted(folder.glob("*.parquet"))
    return answers_of([row for file in files for row in pq.read_table(file).to_pylist()])


def same(actual: dict[tuple, float], expected: dict[tuple, float], within: float = 1e-12) -> bool:
    """Whether two sets of answers are equal."""
    return actual.keys() == expected.keys() and all(abs(actual[key] - expected[key]) <= within for key in expected)
