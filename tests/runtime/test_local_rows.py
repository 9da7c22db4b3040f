"""DataFrames of other libraries, Arrow tables and lists of rows as inputs: answers are those of a Spark DataFrame."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, collect, query, same, stream, table
from tests.runtime.test_sources import run_all

from anabranch import Session
from anabranch.catalog import Column, Relation
from anabranch.errors import AnabranchError, DataError
from anabranch.runtime.sources.local_rows import local_rows

Sighting = namedtuple("Sighting", SCHEMA.names)


@dataclass
class Seen:
    person: str
    place: str
    t: int
    p: float


class Exported:
    """A table of a library that is not known here, with the Arrow PyCapsule interface."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def views() -> pa.Table:
    """The types that Polars exports: views of strings, dictionaries, unsigned integers."""
    rows = table()
    person, place = rows["person"].cast(pa.string_view()), rows["place"].dictionary_encode()
    return pa.table({"person": person, "place": place, "t": rows["t"].cast(pa.uint32()), "p": rows["p"]})


def sources() -> dict[str, Any]:
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS]
    frame = table().to_pandas()
    return {
        "pandas": frame,
        "categories": frame.astype({"person": "category", "place": "string", "t": "Int64"}),
        "indexed": frame.assign(extra=[object()] * len(frame)).set_index(["t", "person"]),
        "arrow": table(),
        "batch": table().combine_chunks().to_batches()[0],
        "reader": table().to_reader(),
        "exported": Exported(views()),
        "dicts": [row | ({"note": 1} if row["t"] == 2 else {}) for row in rows],
        "named_tuples": [Sighting(*row) for row in ROWS],
        "dataclasses": [Seen(*row) for row in ROWS],
        "spark_rows": [Row(**row) for row in rows],
        "tuples": [(person, np.str_(place), np.int32(t), np.float32(p)) for person, place, t, p in ROWS],
    }  # fmt: skip


def test_every_local_input_gives_the_answers_of_a_spark_frame(spark: SparkSession) -> None:
    inputs = sources()
    session = Session(spark)
    session.execute("".join(stream(f"s_{name}") + query(name, f"s_{name}") for name in inputs))
    for name, source in inputs.items():
        session.bind(f"s_{name}", source, SCHEMA.names if name == "tuples" else None)
    answers = run_all(session, list(inputs))
    assert {name: found for name, found in answers.items() if not same(found, ANSWERS, 1e-6)} == {}


def test_a_polars_frame_is_an_input(spark: SparkSession) -> None:
    session = office(spark)
    session.bind("at", polars.from_arrow(table()))
    assert same(collect(session.run("coffee")), ANSWERS)
    with pytest.raises(AnabranchError, match=r"cannot bind a LazyFrame to at; call its collect\(\) first"):
        session.bind("at", polars.from_arrow(table()).lazy())


def office(spark: SparkSession | None = None) -> Session:
    session = Session(spark)
    session.execute(stream("at") + query())
    return session


def test_times_without_a_zone_are_in_utc(spark: SparkSession) -> None:
    moment = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 - this hour does not exist in Zurich
    rows = [{"person": "ann", "place": place, "t": moment + timedelta(seconds=t), "p": 1.0}
            for t, place in enumerate(("hall", "coffee"))]  # fmt: skip
    session = Session(spark)
    session.execute(stream("a") + query("q_a", "a") + stream("b") + query("q_b", "b"))
    session.bind("a", rows)
    session.bind("b", pd.DataFrame(rows))
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Zurich")
        answers = run_all(session, ["q_a", "q_b"])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    expected = {(datetime(2026, 3, 29, 2, 30, 1, tzinfo=UTC), "ann"): 1.0}
    assert answers == {"q_a": expected, "q_b": expected}


def test_tuples_of_a_relation_and_columns_of_nulls_need_no_types(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute("""
        CREATE STREAM s KEY (k) VALUE (v) TIME t MODEL MARKOV; CREATE RELATION odd (n);
        CREATE QUERY q AS PATTERN s(k, v)[odd(v)] GROUP BY k;
    """)
    session.bind("s", [{"k": "a", "v": v, "prev_v": None, "t": 1, "p": 0.25} for v in (1, 2, 3)])
    session.bind("odd", [(1,), (3,)])
    assert collect(session.run("q")) == {(1, "a"): 0.5}


def test_a_million_rows_of_pandas_are_converted_by_column() -> None:
    n = 1_000_000
    frame = pd.DataFrame(
        {"person": np.char.mod("%d", np.arange(n) % 999), "place": "hall", "t": np.arange(n), "p": 0.5}
    )
    frame = frame.astype({"person": "string", "place": "string"})
    calls = 0

    class Counting(pd.DataFrame):
        def __getitem__(self, key: Any) -> Any:
            nonlocal calls
            calls += 1
            return super().__getitem__(key)

    rows = local_rows(Counting(frame), AT, None)
    assert rows.table.num_rows == n
    assert calls < 100
    assert rows.table["t"].chunk(0).buffers()[1].address == frame["t"].to_numpy().ctypes.data, "numbers are not copied"


AT = Relation("at", (Column("person"), Column("t")), None)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "the list for at is empty, so it has no columns; bind an empty DataFrame"),
        ([(1, 2)], "the rows of at are tuples without column names; pass columns=['person', 'place', 't', 'p']"),
        (["ann"], "the rows of at are of type str; use dicts, named tuples, dataclasses, or tuples with columns=[...]"),
        ([{}, (1,)], "the rows of at are not alike: row 1 is a tuple, and row 0 a dict; use one type for all rows"),
        (
            [Sighting(*ROWS[0]), Sighting._make([*ROWS[1][:3], 1]), tuple.__new__(Sighting, (1, 2))],
            "row 2 has 2 values for 4 columns (person, place, t, p); pass one value for each",
        ),
        (5, "cannot bind a int to at; pass a DataFrame (Spark, pandas, Polars), an Arrow table, a list of rows or a"),
        (SimpleNamespace(collect=list), "cannot bind a SimpleNamespace to at; call its collect() first"),
        (pd.DataFrame([[1, 2]], columns=["t", "t"]), "the input of at has two columns t; rename one of them"),
    ],
)  # fmt: skip
def test_what_cannot_be_bound_is_one_line(source: Any, message: str) -> None:
    session = office()
    with pytest.raises(AnabranchError) as refused:
        session.bind("at", source)
    (line,) = str(refused.value).splitlines()
    assert message in line


def test_a_column_that_cannot_be_read_matters_only_where_it_is_needed(spark: SparkSession) -> None:
    rows = local_rows([{"person": 2**70, "t": 1, "note": {1: object()}}], AT, None)
    assert set(rows.unreadable) == {"person", "note"}
    with pytest.raises(DataError, match="column person of the input of at cannot be read: "):
        rows.frame(spark, AT, AT.columns)


def test_a_frame_that_does_not_fit_the_run_is_one_line(spark: SparkSession, tmp_path: Any) -> None:
    session = office(spark)
    session.execute("CREATE RELATION hall (place); CREATE QUERY h AS PATTERN at(x, y)[hall(y)];")
    live = spark.readStream.schema("person string, place string, t long, p double").parquet(str(tmp_path))
    session.bind("at", live)
    for use in (session.run, session.validate, session.rows):
        with pytest.raises(DataError) as refused:
            use("at" if use != session.run else "coffee")
        assert str(refused.value) == "the input of at is a streaming DataFrame; use start, or bind a batch DataFrame"
    session.bind("hall", live)
    with pytest.raises(DataError, match="the input of hall is a streaming DataFrame; bind a batch DataFrame"):
        session.start("h", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    session.bind("at", table())
    with pytest.raises(DataError, match="the input of at is not a streaming DataFrame; bind one, or use run"):
        session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    files = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert files == [], "a refused start does not claim the checkpoint"
