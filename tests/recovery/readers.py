"""Reads the answers of a stream with the tools that users have, and compares them with those of `run`."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from anabranch import Session


def read_by_spark(spark: SparkSession, folder: Path) -> pa.Table:
    return spark.read.parquet(str(folder)).toArrow()


def read_by_pandas(spark: SparkSession, folder: Path) -> pa.Table:
    return pa.Table.from_pandas(pd.read_parquet(folder), schema=pq.read_schema(next(folder.glob("*.parquet"))))


def read_by_pyarrow(spark: SparkSession, folder: Path) -> pa.Table:
    return pq.read_table(folder)


def read_by_duckdb(spark: SparkSession, folder: Path) -> pa.Table:
    duckdb = importlib.import_module("duckdb")
    with duckdb.connect() as connection:
        return connection.sql("SELECT * FROM read_parquet(?)", params=[f"{folder}/*.parquet"]).to_arrow_table()


READERS: dict[str, Callable[[SparkSession, Path], pa.Table]] = {
    "spark": read_by_spark,
    "pandas": read_by_pandas,
    "pyarrow": read_by_pyarrow,
    "duckdb": read_by_duckdb,
}


def installed_readers() -> list[str]:
    """The readers that can be used."""
    return [name for name in READERS if name == "spark" or importlib.util.find_spec(name)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers of a stream, as one reader sees them, compared with those of `run`.

    Attributes
    ----------
    answers : of `run`
    lost : those of `run` that the stream lacks, or has with another probability
    repeated : those that the stream has more often
    wrong : those of the stream that `run` does not give
    """

    query: str
    reader: str
    answers: int
    lost: int
    repeated: int
    wrong: int

    @property
    def is_same(self) -> bool:
        return not (self.lost or self.repeated or self.wrong)


def compare(session: Session, out: Path, names: Collection[str], readers: Collection[str]) -> list[Comparison]:
    """Compare all columns of the answers, bit by bit; `status` is a column of streams only."""
    found = []
    for name in names:
        table = session.run(name).toArrow()
        expected = _rows(table, table.schema)
        for reader in readers:
            rows = _rows(READERS[reader](session.spark, out / name), table.schema)
            extra = rows - expected
            wrong = sum(count for row, count in extra.items() if row not in expected)
            lost = (expected - rows).total()
            found.append(Comparison(name, reader, expected.total(), lost, extra.total() - wrong, wrong))
    return found


def _rows(table: pa.Table, schema: pa.Schema) -> Counter[str]:
    """How often each row occurs. The text of a float has all its bits."""
    return Counter(map(repr, table.select(schema.names).cast(schema).to_pylist()))
