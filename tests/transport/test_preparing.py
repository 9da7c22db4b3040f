"""Rows of a source become rows of a stream: WHERE, AS, computed columns and JOIN, against a row-by-row oracle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.workbooks import declared
from tests.oracles.reading import rows_of

from anabranch.binding.reading import Reading, bind_reading
from anabranch.catalog import Catalog, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.errors import DataError
from anabranch.language.findings import Findings
from anabranch.language.types import Type
from anabranch.planning.layouts import preparation_of
from anabranch.transport.preparation import Preparation
from anabranch.transport.preparing import check_partners, prepare_rows

TYPES = {"k": Type.STRING, "a": Type.INTEGER, "b": Type.DOUBLE, "c": Type.INTEGER, "t": Type.INTEGER}
RELATIONS = "CREATE RELATION r (a INTEGER, room STRING, floor INTEGER); CREATE RELATION some (x INTEGER);"
ROOMS = [(1, "hall", 0), (2, "lab", 2), (3, None, 1)]
SOME = [(1,), (2,)]

WHERES = (
    "", "a > 1", "NOT (a > 1 OR b < 0)", "a % 2 = 0 AND k <> 'x'", "b / a > 1", "k IS NULL OR a IN (1, 2)", "some(a)",
    "a BETWEEN 1 AND 2 OR c IS NOT NULL", "ABS(b) <= 1.5", "-a < c",
)  # fmt: skip
VALUES = ("v = a * 3.6", "v = a / c", "v = b % c", "c AS v", "v = b > a", "v = ABS(a - c) * 2", "v = a + b")
JOINS = ("", "JOIN r USING (a)", "LEFT JOIN r USING (a)", "LEFT JOIN r ON c = r.a AND a % 3 = r.floor")

cells = {
    "k": st.sampled_from(["x", "y", None]),
    "a": st.sampled_from([None, 0, 1, 2, 3, -4]),
    "b": st.sampled_from([None, 0.0, 1.5, -2.25, 1e300]),
    "c": st.sampled_from([None, 0, 1, 2]),
    "t": st.integers(0, 5),
}
sources = st.lists(st.fixed_dictionaries(cells), max_size=12)


def reading_of(declaration: str, types: dict[str, Type] = TYPES) -> tuple[Stream, Reading]:
    catalog = declared(RELATIONS + declaration)
    (stream,) = (entry for entry in catalog.entries.values() if isinstance(entry, Stream))
    findings = Findings()
    reading = bind_reading(stream, Catalog(catalog.entries), findings, types)
    assert reading is not None, findings.items
    return stream, reading


def preparation(declaration: str, types: dict[str, Type] = TYPES) -> Preparation:
    return preparation_of(*reading_of(declaration, types))


def table(rows: list[dict[str, Any]], coded: bool = False) -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows], ARROW_TYPES[kind]) for name, kind in TYPES.items()}
    if coded:  # as the workers read Parquet files
        columns |= {name: columns[name].dictionary_encode() for name in ("k", "c")}
    return pa.table(columns)


def relations() -> dict[str, pa.Table]:
    names, columns = ["a", "room", "floor"], list(zip(*ROOMS, strict=True))
    return {"r": pa.table(columns, names=names), "some": pa.table({"x": [1, 2]})}


@given(
    sources, st.sampled_from(WHERES), st.sampled_from(VALUES), st.sampled_from(JOINS), st.booleans(), st.integers(0, 12)
)
def test_rows_are_those_of_the_oracle_for_any_split(
    source: list[dict[str, Any]], where: str, value: str, join: str, coded: bool, cut: int
) -> None:
    room = ", room" if join else ""
    clauses = f"{join} WHERE {where}" if where else join
    # With JOIN r, a and floor are columns of both or of r.
    text = f"CREATE STREAM s KEY (k AS who) VALUE ({value}{room}) TIME t {clauses}"
    if "JOIN r ON" in join:
        text = text.replace(" a ", " s.a ").replace("(a ", "(s.a ").replace("-a", "-s.a").replace("/ a", "/ s.a")
        text = text.replace("> a)", "> s.a)").replace("some(a)", "some(s.a)").replace("+ b", "+ s.b")
    stream, reading = reading_of(text + ";")
    expected, bad, excluded = rows_of(source, reading, {"r": ROOMS, "some": SOME})
    prepared = preparation_of(stream, reading)
    parts = [prepare_rows(table(part, coded), "s", prepared, relations()) for part in (source[:cut], source[cut:])]
    rows = [row for part in parts for row in part.rows.to_pylist()]
    assert rows == expected
    assert sum(part.rejected.num_rows for part in parts) == len(bad)
    assert sum(part.excluded for part in parts) == excluded


def test_a_row_that_cannot_be_computed_is_quarantined_as_it_was_read() -> None:
    rows = [{"k": "x", "a": 1, "b": 0.0, "c": 0, "t": 1}, {"k": "x", "a": None, "b": 0.0, "c": 0, "t": 2}]
    found = prepare_rows(table(rows), "s", preparation("CREATE STREAM s KEY (k) VALUE (v = a / c) TIME t;"), {})
    assert found.rejected.to_pylist() == [
        {"stream": "s", "reason": "v cannot be computed", "row": '{"k": "x", "a": 1, "b": 0.0, "c": 0, "t": 1}'}
    ]
    assert found.rows.to_pylist() == [{"k": "x", "v": None, "t": 2}]


def test_excluded_rows_are_not_quarantined_for_times_that_nobody_needs() -> None:
    text = "CREATE STREAM s KEY (k) TIME t FORMAT 'yyyy-MM-dd' ZONE 'Europe/Zurich' WHERE k = 'x'"
    types = TYPES | {"t": Type.STRING}
    source = pa.table({"k": ["x", "y", "x", "x"], "t": ["2026-03-01", "soon", "soon", None]})
    found = prepare_rows(source, "s", preparation(f"{text};", types), {})
    assert found.excluded == 1
    assert [row["reason"] for row in found.rejected.to_pylist()] == ["t is not a time of the FORMAT 'yyyy-MM-dd'"]
    assert [row["k"] for row in found.rows.to_pylist()] == ["x", "x"]  # a NULL is a matter of the model
    # A row whose time cannot be read is not lost if WHERE asks for the time.
    found = prepare_rows(source, "s", preparation(f"{text} AND t > '2026-01-01';", types), {})
    assert (found.rows.num_rows, found.rejected.num_rows, found.excluded) == (1, 1, 2)


def test_models_read_the_columns_of_a_renamed_value() -> None:
    markov = preparation("CREATE STREAM s KEY (k) VALUE (loc AS place) TIME t MODEL MARKOV;", {})
    assert set(markov.sources) == {"k", "loc", "t", "prev_loc", "p"}
    predicted = preparation("CREATE STREAM s KEY (k) VALUE (m AS x) TIME t MODEL PREDICTED ERROR 1 PERIOD 5;", {})
    assert set(predicted.sources) == {"k", "m", "t", "m_rate"}


def test_a_relation_with_several_rows_of_a_key_cannot_be_joined() -> None:
    join = preparation("CREATE STREAM s KEY (k) VALUE (room) TIME t JOIN r USING (a);")
    twice = pa.table({"a": [1, 2, 2], "room": ["hall", "lab", "lab"], "floor": [0, 1, 1]})
    check_partners(join, {"r": twice})
    other = pa.table({"a": [1, 2, 2], "room": ["hall", "lab", "bar"], "floor": [0, 1, 1]})
    with pytest.raises(DataError, match="relation r has several rows with a = 2; JOIN needs one row per key"):
        check_partners(join, {"r": other})
