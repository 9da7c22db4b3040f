"""CREATE statements: clauses by model, columns, references, and the resulting catalog entries."""

from __future__ import annotations

import pytest
from tests.language.workbooks import codes, declared, findings

from anabranch.binding.binder import declare
from anabranch.binding.derived_streams import PREDICTORS
from anabranch.catalog import Catalog, Column, Model, Relation, Stream
from anabranch.inference.reporting import METHODS
from anabranch.language.parser import parse
from anabranch.language.types import Type


def test_entries() -> None:
    catalog = declared(
        "CREATE QUERY q AS PATTERN At(x, y);"  # before its stream
        "CREATE STREAM at KEY (person STRING) VALUE (location) TIME t INT MODEL INDEPENDENT PROBABILITY chance;"
        "CREATE RELATION hall (location, n DOUBLE)"
    )
    at, hall = catalog.get("AT"), catalog.get("Hall")
    assert isinstance(at, Stream) and isinstance(hall, Relation)
    assert at.keys == (Column("person", Type.STRING, declared=True),)
    assert at.values == (Column("location"),)
    assert at.time == Column("t", Type.INTEGER, declared=True)
    assert (at.model, at.probability) == (Model.INDEPENDENT, "chance")
    assert hall.columns == (Column("location"), Column("n", Type.DOUBLE, declared=True))
    assert [query.name for query in catalog.queries()] == ["q"]


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("FILTER", Model.INDEPENDENT), ("PARTICLE(100)", Model.INDEPENDENT), ("SMOOTH", Model.MARKOV),
        ("MARGINALS", Model.INDEPENDENT), ("VITERBI", Model.CERTAIN), ("MLE", Model.CERTAIN),
    ],
)  # fmt: skip
def test_an_inferred_stream_has_the_model_of_its_method(method: str, model: Model) -> None:
    catalog = declared(
        f"CREATE STREAM at KEY (tag) VALUE (l) TIME t INFERRED FROM reads USING HMM 'm/' METHOD {method};"
        "CREATE STREAM reads KEY (tag) VALUE (reader) TIME t;"
    )
    at = catalog.stream("at")
    assert at is not None and at.model is model


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("KEY (k) TIME t", []),
        ("KEY (k) VALUE (v) TIME t MODEL certain", []),
        ("KEY (k) TIME t SPACE (x, y) WATERMARK 0", []),
        ("KEY (k) VALUE (x, y) TIME t SPACE (x, y)", []),
        ("KEY (k) TIME t MODEL INTERVALS ORDER seq HORIZON [-5, 5.5] LENGTH n WINDOW (lo, hi)", []),
        ("KEY (k) TIME t TIMESTAMP MODEL INTERVALS ORDER seq HORIZON ['2026-01-01', '2026-02-01']", []),
        ("KEY (k) VALUE (x, y) TIME t MODEL PREDICTED ERROR (y = 0, X = 5) PERIOD 5 MINUTES", []),
        ("KEY (k) VALUE (x, y) TIME t MODEL PREDICTED ERROR (y = 0 NORMAL 1, X = spread) PERIOD 5", []),
        ("KEY (k) VALUE (x INT) TIME t MODEL PREDICTED ERROR k PERIOD 5", []),
        ("KEY (k) VALUE (p) TIME t MODEL INDEPENDENT PROBABILITY chance", []),
        ("KEY (k) VALUE (v)", ["clause-missing"]),
        ("TIME t", ["clause-missing"]),
        ("KEY (k) TIME t MODEL MARKOV", ["clause-missing"]),
        ("KEY (k) TIME t MODEL INTERVALS", ["clause-missing"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED ERROR 1", ["clause-missing"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED PERIOD 1", ["clause-missing"]),
        ("KEY (k) VALUE (v, w) TIME t MODEL PREDICTED PERIOD 1 ERROR (v = 1)", ["clause-missing"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED PERIOD 1 ERROR (v = 1, v = 2)", ["name-twice"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED PERIOD 1 ERROR -1", ["out-of-range"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED PERIOD 0 ERROR 1", ["out-of-range"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED PERIOD 1 ERROR 1 NORMAL 0", ["out-of-range"]),
        ("KEY (k) VALUE (v) TIME t MODEL PREDICTED PERIOD 1 ERROR (v = w NORMAL -2)", ["out-of-range"]),
        ("KEY (k) VALUE (v STRING) TIME t MODEL PREDICTED PERIOD 1 ERROR 1", ["value-type"]),
        ("KEY (k) VALUE (v, w BOOLEAN) TIME t MODEL PREDICTED PERIOD 1 ERROR 1", ["value-type"]),
        ("KEY (k) VALUE (v TIMESTAMP) TIME t MODEL PREDICTED PERIOD 1 ERROR 1", ["value-type"]),
        ("KEY (k STRING) VALUE (v) TIME t MODEL PREDICTED PERIOD 1 ERROR K", ["error-type"]),
        ("KEY (k) VALUE (v) TIME t TIMESTAMP MODEL PREDICTED PERIOD 1 ERROR t", ["error-type"]),
        ("KEY (k) TIME t USING KALMAN", ["clause-model"]),
        ("KEY (k) TIME t WATERMARK -1 SECOND", ["out-of-range"]),
        ("KEY (k) TIME t WATERMARK 5 IDLE AFTER 5", []),
        ("KEY (k) TIME t WATERMARK 5 IDLE AFTER 4", ["out-of-range"]),
        ("KEY (k) TIME t IDLE AFTER -1", ["out-of-range"] * 2),
        ("KEY (k) TIME t TIMESTAMP MAX AHEAD 2 DAYS", []),
        ("KEY (k) TIME t MAX AHEAD -1 DAY", ["out-of-range"]),
        ("KEY (k) TIME t INTEGER MAX AHEAD 5", []),
        ("KEY (k) TIME t DOUBLE MAX AHEAD 0", ["out-of-range"]),
        ("KEY (k) TIME t TIMESTAMP MAX AHEAD 0 DAYS", []),
        ("KEY (k, j) TIME t CLUSTERED BY (K, j)", []),
        ("KEY (k) VALUE (v) TIME t CLUSTERED BY (v)", ["unknown-column"]),
        ("KEY (k) TIME t CLUSTERED BY (k) INFERRED FROM u USING HMM 'm' METHOD FILTER",
         ["derived-reading", "unknown-stream"]),
        ("KEY (k) TIME t IDLE AFTER 5 INFERRED FROM u USING HMM 'm' METHOD MLE", ["derived-reading", "unknown-stream"]),
        ("KEY (k) TIME t ORDER seq", ["clause-model"]),
        ("KEY (k) TIME t LENGTH n WINDOW (a, b) HORIZON [1, 2]", ["clause-model"] * 3),
        ("KEY (k) TIME t ERROR 1 PERIOD 1", ["clause-model"] * 2),
        ("KEY (k) TIME t PROBABILITY p", ["clause-model"]),
        ("KEY (k) TIME t MODEL MARKOW ORDER seq", ["unknown-model"]),
        ("KEY (k) TIME t MODEL INTERVALS ORDER seq HORIZON [5, 5]", ["out-of-range"]),
        ("KEY (k) TIME t MODEL INTERVALS ORDER seq HORIZON ['soon', 5]", ["not-a-time"]),
        ("KEY (k) TIME t MODEL INTERVALS ORDER seq HORIZON [1, '2026-01-01']", ["type-mismatch"]),
        ("KEY (k) TIME t TIMESTAMP MODEL INTERVALS ORDER seq HORIZON [1, 2]", ["type-mismatch"]),
        ("KEY (k) TIME t INT MODEL INTERVALS ORDER seq HORIZON ['2026-01-01', '2026-02-01']", ["type-mismatch"]),
        ("KEY (k, K) TIME t", ["name-twice"]),
        ("KEY (k) VALUE (t) TIME T", ["name-twice"]),
        ("KEY (k) TIME t MODEL INTERVALS ORDER t", ["name-twice"]),
        ("KEY (k) VALUE (p) TIME t MODEL INDEPENDENT", ["name-twice"]),
        ("KEY (k) VALUE (v, prev_v) TIME t MODEL MARKOV", ["name-twice"]),
        ("KEY (k) VALUE (v, v_rate) TIME t MODEL PREDICTED ERROR 1 PERIOD 1", ["name-twice"]),
        ("KEY (k) TIME t SPACE (x, X)", ["name-twice"]),
        ("KEY (k) TIME t SPACE (x, y) GEODESIC ORIGIN (181, 0)", ["out-of-range"]),
        ("KEY (k) TIME t SPACE (x, y) GEODESIC ORIGIN (8, -91)", ["out-of-range"]),
        ("KEY (k TEXTT) TIME t", ["unknown-type"]),
        ("KEY (k) TIME t STRING", ["time-type"]),
        ("KEY (k) TIME t FROM ' '", ["empty-path"]),
        ("KEY (k) TIME t FROM 'x' OPTIONS (sep = 1, SEP = 2)", ["name-twice"]),
        ("KEY (k) TIME t FROM QUERY nobody", ["unknown-query"]),
        ("KEY (k) TIME t FROM QUERY s", ["not-a-query"]),
        ("KEY (k) TIME t INFERRED FROM nobody USING HMM 'm' METHOD MLE", ["unknown-stream"]),
        ("KEY (k) TIME t INFERRED FROM s USING HMM 'm' METHOD MLE", ["cycle"]),
        ("KEY (k) TIME t INFERRED FROM nobody USING CRF 'm' METHOD MLE", ["unknown-inference", "unknown-stream"]),
        ("KEY (k) TIME t INFERRED FROM s2 USING HMM '' METHOD MLE", ["empty-path", "unknown-stream"]),
        ("KEY (k) TIME t INFERRED FROM s2 USING HMM 'm' METHOD BEST", ["unknown-method", "unknown-stream"]),
        ("KEY (k) TIME t INFERRED FROM nobody USING HMM 'm' METHOD PARTICLE(0.5)", ["arity", "unknown-stream"]),
        ("KEY (k) TIME t INFERRED FROM nobody USING HMM 'm' METHOD MLE(5)", ["arity", "unknown-stream"]),
        ("KEY (k) TIME t MODEL MARKOV INFERRED FROM s2 USING HMM 'm' METHOD MLE", ["unknown-stream", "wrong-model"]),
    ],
)  # fmt: skip
def test_streams(clauses: str, expected: list[str]) -> None:
    assert sorted(codes(f"CREATE STREAM s {clauses}")) == sorted(expected)


def test_an_error_column_is_a_column_of_the_stream() -> None:
    catalog = declared("CREATE STREAM s KEY (k) VALUE (x, y) TIME t MODEL PREDICTED ERROR (y = 2, x = spread) PERIOD 5")
    stream = catalog.stream("s")
    assert stream is not None
    assert [column.name for column in stream.columns] == ["k", "x", "y", "t", "x_rate", "y_rate", "spread"]
    assert stream.columns[-1].type is Type.DOUBLE
    assert [(error.column, error.amount, error.source) for error in stream.errors] == [
        ("x", None, "spread"),
        ("y", 2, None),
    ]
    assert stream.error_columns == ("spread",)


POSITIONS = """
    CREATE STREAM positions KEY (car) VALUE (x, y, name STRING) TIME t SPACE (u, v);
    CREATE STREAM stays KEY (car) VALUE (x) TIME (t0, t);
    CREATE STREAM uncertain KEY (car) VALUE (x) TIME t MODEL INDEPENDENT;
    CREATE STREAM seen KEY (car) VALUE (x) TIME t;
    CREATE STREAM guessed KEY (car) VALUE (x) TIME t INFERRED FROM seen USING HMM 'm' METHOD MLE;
    CREATE STREAM two KEY (car, lane) VALUE (x) TIME t;
    CREATE STREAM fixes KEY (car) VALUE (lon, lat, speed) TIME t SPACE (lon, lat) GEODESIC;
    CREATE STREAM near KEY (car) VALUE (lon, lat, speed) TIME t SPACE (lon, lat) GEODESIC ORIGIN (8.2, -46.8);
    CREATE RELATION hall (x);
"""


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("KEY (car) VALUE (x, y) TIME t PREDICTED FROM positions ERROR 25 PERIOD 30", []),
        ("KEY (CAR) VALUE (U, y) TIME T PREDICTED FROM Positions ERROR (u = 2 NORMAL 9, y = 0) PERIOD 3", []),
        ("KEY (car) VALUE (x) TIME t MODEL PREDICTED PREDICTED FROM positions ERROR 2 PERIOD 3 USING KALMAN(5, 2)", []),
        ("KEY (car) VALUE (x, y) TIME t SPACE (x, y) PREDICTED FROM positions ERROR 25 PERIOD 30", []),
        ("KEY (lane, car) VALUE (x) TIME t PREDICTED FROM two ERROR 1 PERIOD 3", []),
        ("KEY (car) VALUE (Lon, speed, LAT) TIME t PREDICTED FROM near ERROR 1 PERIOD 3", []),
        ("KEY (car) VALUE (lon, lat) TIME t SPACE (lon, lat) GEODESIC ORIGIN (1, 2) PREDICTED FROM fixes "
         "ERROR 1 PERIOD 3", []),
        ("KEY (car) VALUE (speed) TIME t PREDICTED FROM fixes ERROR 1 PERIOD 3", []),
        ("KEY (car) VALUE (lon, lat) TIME t PREDICTED FROM fixes ERROR 1 PERIOD 3", ["geodesic-origin"]),
        ("KEY (car) VALUE (lat) TIME t PREDICTED FROM near ERROR 1 PERIOD 3", ["geodesic-origin"]),
        ("KEY (car) VALUE (x) TIME t INFERRED FROM stays USING HMM 'm' METHOD MLE", []),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM positions PERIOD 3", ["clause-missing"]),
        ("KEY (car) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3", ["clause-missing"]),
        ("KEY (car) VALUE (x) TIME t MODEL MARKOV PREDICTED FROM positions ERROR 1 PERIOD 3", ["wrong-model"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR spread PERIOD 3", ["error-column"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR -1 PERIOD 0", ["out-of-range"] * 2),
        ("KEY (car) VALUE (x) TIME (t0, t) PREDICTED FROM positions ERROR 1 PERIOD 3", ["event-duration"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM nobody ERROR 1 PERIOD 3", ["unknown-stream"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM hall ERROR 1 PERIOD 3", ["not-a-stream"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM s ERROR 1 PERIOD 3", ["cycle"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM uncertain ERROR 1 PERIOD 3", ["wrong-model"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM stays ERROR 1 PERIOD 3", ["event-duration"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM guessed ERROR 1 PERIOD 3", ["derived-twice"]),
        ("KEY (car) VALUE (x) TIME t INFERRED FROM guessed USING HMM 'm' METHOD MLE", ["derived-twice"]),
        ("KEY (car) VALUE (z) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3", ["unknown-column"]),
        ("KEY (kar) VALUE (x) TIME when PREDICTED FROM positions ERROR 1 PERIOD 3", ["unknown-column"] * 2),
        ("KEY (car) VALUE (x) TIME t SPACE (x, u) PREDICTED FROM positions ERROR 1 PERIOD 3", ["unknown-column"]),
        ("KEY (car) VALUE (name) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3", ["value-type"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM two ERROR 1 PERIOD 3", ["key-columns"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3 USING KALMEN", ["unknown-method"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3 USING LINEAR(1)", ["arity"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3 USING KALMAN(1)", ["arity"]),
        ("KEY (car) VALUE (x) TIME t PREDICTED FROM seen ERROR 1 PERIOD 3 USING KALMAN(0, -1)", ["out-of-range"] * 2),
    ],
)  # fmt: skip
def test_streams_predicted_from_positions(clauses: str, expected: list[str]) -> None:
    assert sorted(codes(f"{POSITIONS} CREATE STREAM s {clauses}")) == sorted(expected)


def test_a_stream_predicted_from_positions_has_rate_columns() -> None:
    catalog = declared(
        f"{POSITIONS} CREATE STREAM s KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR 1 PERIOD 3"
    )
    stream = catalog.stream("s")
    assert stream is not None and stream.model is Model.PREDICTED
    assert [column.name for column in stream.columns] == ["car", "x", "t", "x_rate"]


def test_the_prediction_methods_are_those_of_inference() -> None:
    assert tuple(PREDICTORS) == METHODS


def test_streams_relations_and_queries_share_one_namespace() -> None:
    (finding,) = findings("CREATE RELATION a (x);\nCREATE STREAM A KEY (k) TIME t;")
    assert finding.code == "declared-twice"
    assert "first at 1:1" in finding.message


def test_create_or_replace_replaces_a_declaration_of_an_earlier_workbook() -> None:
    catalog = declared("CREATE STREAM a KEY (k) TIME t")
    assert declare(parse("CREATE OR REPLACE STREAM A KEY (k, m) TIME t"), catalog) == []
    assert [column.name for column in catalog.require_stream("a").keys] == ["k", "m"]
    assert len(catalog.entries) == 1


@pytest.mark.parametrize("statement", ["STREAM a KEY (k) TIME t", "RELATION b (x)", "QUERY c AS PATTERN a(x)"])
def test_a_name_of_an_earlier_workbook_is_only_replaced_on_request(statement: str) -> None:
    catalog = declared("CREATE STREAM a KEY (k) TIME t; CREATE RELATION b (x); CREATE QUERY c AS PATTERN a(x)")
    before = dict(catalog.entries)
    (finding,) = declare(parse(f"CREATE {statement}"), catalog)
    what, name = statement.split()[:2]
    assert finding.code == "declared-twice"
    assert finding.message == f"there is already a {what.lower()} '{name}'"
    assert finding.hint == f"use another name, or write CREATE OR REPLACE {what}"
    assert catalog.entries == before
    assert declare(parse(f"CREATE OR REPLACE {statement}"), catalog) == []


def test_the_last_create_or_replace_of_a_workbook_holds() -> None:
    catalog = declared("CREATE RELATION a (x); CREATE OR REPLACE RELATION a (y); CREATE OR REPLACE RELATION a (z);")
    (column,) = catalog.relation("a").columns
    assert column.name == "z"


@pytest.mark.parametrize("create", ["CREATE", "CREATE OR REPLACE"])
def test_a_stream_cannot_replace_a_relation(create: str) -> None:
    catalog = declared("CREATE RELATION a (x)")
    (finding,) = declare(parse(f"{create} STREAM a KEY (k) TIME t"), catalog)
    assert finding.message == "there is already a relation 'a'"
    assert finding.hint == "use another name; a stream cannot replace a relation"


def test_a_later_workbook_can_use_earlier_declarations() -> None:
    catalog = declared("CREATE STREAM a KEY (k) TIME t")
    assert declare(parse("CREATE QUERY q AS PATTERN a(k) GROUP BY k"), catalog) == []
    assert declare(parse("CREATE STREAM b KEY (k) TIME t FROM QUERY q"), catalog) == []


def test_nothing_is_declared_if_there_are_findings() -> None:
    catalog = Catalog()
    (finding,) = declare(parse("CREATE RELATION a (x); CREATE RELATION b (y, y)"), catalog)
    assert finding.code == "name-twice"
    assert catalog.entries == {}


def test_cycles_of_streams_and_queries_are_refused() -> None:
    text = (
        "CREATE STREAM a KEY (k) TIME t FROM QUERY q; CREATE QUERY q AS PATTERN b(x) THEN c(x);"
        "CREATE STREAM b KEY (k) VALUE (v) TIME t INFERRED FROM a USING HMM 'm' METHOD MLE;"
        "CREATE STREAM c KEY (k) TIME t;"
    )
    assert [finding.message for finding in findings(text) if finding.code == "cycle"] == [
        "'a' depends on itself: a reads q reads b reads a"
    ]


def test_all_findings_are_reported_sorted_by_position() -> None:
    text = (
        "CREATE QUERY q AS PATTERN nobody(x) THRESHOLD 2;\n"
        "CREATE STREAM s KEY (k) MODEL MARKOV;\n"
        "CREATE QUERY r AS PATTERN s(x, y) WHERE z = 1;"
    )
    found = findings(text)
    assert [finding.code for finding in found] == [
        "unknown-stream", "out-of-range", "clause-missing", "clause-missing", "arity", "unknown-variable",
    ]  # fmt: skip
    assert all(finding.span for finding in found)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", ".hidden", "c:", "a*", "_Quarantine"])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    assert codes(f"CREATE RELATION `{name}` (x)") == ["not-a-folder"]
