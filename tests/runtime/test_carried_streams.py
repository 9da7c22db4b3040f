"""On Spark: PATTERN queries whose chains are carried, and an archive that is joined with a live stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ROWS, same, stream, write_parquet
from tests.runtime.streams import Office

from anabranch import Session

#: Somebody is where somebody else was: the place joins goals, so the query is unsafe.
FOLLOWS = "CREATE QUERY coffee AS PATTERN at(x, l) THEN at(y, l) WHERE x <> y ACCURACY 0.05 {options};"
#: The same in a short time, while nobody is at the coffee machine: operands with WITHIN, and without a common key.
COMBINED = """
CREATE QUERY follows AS PATTERN at(x, l) THEN at(y, l) WHERE x <> y WITHIN 2;
CREATE QUERY drinks AS PATTERN at(_, 'coffee');
CREATE QUERY coffee AS follows AND NOT drinks ACCURACY 0.05 {options};
"""
MOVES = [
    *ROWS,
    ("eve", "hall", 3, 0.5),
    ("ann", "hall", 4, 0.25),
    ("bob", "coffee", 4, 0.75),
    ("eve", "coffee", 5, 0.5),
]


def numbers(rows: Iterable[Mapping[str, Any]]) -> dict[int, tuple]:
    """The probability, its interval and the method of each answer."""
    return {row["t"]: tuple(row[name] for name in ("probability", "lower", "upper", "method")) for row in rows}


@pytest.mark.parametrize("text", [FOLLOWS, COMBINED], ids=["query", "combination"])
@pytest.mark.parametrize(("options", "method"), [("", "exact"), ("METHOD SAMPLING", "sampling")])
def test_an_unsafe_query_resumes_from_its_checkpoint(
    spark: SparkSession, tmp_path: Path, text: str, options: str, method: str
) -> None:
    query = text.format(options=options)
    first = Office(spark, tmp_path, query_text=query)
    first.add("1", *MOVES[:3])
    first.add("2", *MOVES[3:6])
    first.process_files()
    first.stop()
    second = Office(spark, tmp_path, query_text=query)
    second.add("3", *MOVES[6:])
    second.process_files()
    second.end()
    second.stop()
    streamed = numbers(row for file in second.output.glob("*.parquet") for row in pq.read_table(file).to_pylist())
    session = Session(spark)
    session.execute(stream("at", f"'{tmp_path}/in/*.parquet'") + query)
    batch = numbers(session.run("coffee").toArrow().to_pylist())
    assert {row[-1] for row in batch.values()} == {method}
    assert streamed.keys() == batch.keys() >= ({2, 3, 4} if text == FOLLOWS else {4})
    for t, row in streamed.items():
        assert row[:3] == pytest.approx(batch[t][:3], abs=1e-12)


def test_an_archive_next_to_a_live_stream_does_not_hold_it_back(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "archive.parquet", ROWS)
    declaration = stream("was", f"'{tmp_path}/archive.parquet'") + stream("at", f"'{tmp_path}/in/*.parquet'")
    query = "CREATE QUERY coffee AS PATTERN was(x, 'hall') THEN at(x, 'hall') GROUP BY x;"
    office = Office(spark, tmp_path, declaration, query)
    office.add("1", ("ann", "hall", 10, 0.5))
    office.process_files()
    assert office.answers == {}, "instant 10 is not complete"
    office.add("2", ("bob", "hall", 20, 0.5), ("bob", "hall", 21, 1.0))
    office.process_files()
    assert same(office.answers, {(10, "ann"): 0.25, (20, "bob"): 0.5})
    office.stop()
    resumed = Office(spark, tmp_path, declaration, query)
    resumed.add("3", ("007", "hall", 30, 0.5), ("007", "coffee", 31, 1.0))
    resumed.process_files()
    assert same(resumed.answers, {(10, "ann"): 0.25, (20, "bob"): 0.5, (21, "bob"): 0.5, (30, "007"): 0.25})
    resumed.stop()
