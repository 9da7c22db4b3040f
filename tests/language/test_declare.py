"""CREATE statements: clauses against models, columns, references, and what the catalogue holds afterwards."""

from __future__ import annotations

import pytest

from anabranch.catalog import Catalog, Column, Model, Relation, Stream
from anabranch.language.binder import declare
from anabranch.language.parser import parse
from anabranch.language.types import Type
from tests.language.workbooks import codes, declared, findings


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
        ("KEY (k) TIME t WATERMARK -1 SECOND", ["out-of-range"]),
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
        ("KEY (k TEXTT) TIME t", ["unknown-type"]),
        ("KEY (k) TIME t STRING", ["time-type"]),
        ("KEY (k) TIME t FROM ' '", ["empty-path"]),
        ("KEY (k) TIME t FROM 'x' OPTIONS (a = 1, A = 2)", ["name-twice"]),
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


def test_a_name_is_declared_once_in_a_workbook_whatever_its_kind() -> None:
    (finding,) = findings("CREATE RELATION a (x);\nCREATE STREAM A KEY (k) TIME t;")
    assert finding.code == "declared-twice"
    assert "first at 1:1" in finding.message


def test_a_later_workbook_declares_a_name_anew() -> None:
    catalog = declared("CREATE RELATION a (x)")
    assert declare(parse("CREATE STREAM a KEY (k) TIME t"), catalog) == []
    assert isinstance(catalog.get("a"), Stream)


def test_a_later_workbook_sees_what_is_declared() -> None:
    catalog = declared("CREATE STREAM a KEY (k) TIME t")
    assert codes("CREATE QUERY q AS PATTERN a(x)", catalog) == []
    assert codes("CREATE STREAM b KEY (k) TIME t FROM QUERY q", catalog) == []


def test_nothing_is_declared_where_something_is_wrong() -> None:
    catalog = Catalog()
    assert codes("CREATE RELATION a (x); CREATE RELATION b (y, y)", catalog) == ["name-twice"]
    assert catalog.entries == {}


def test_streams_and_queries_may_not_go_in_circles() -> None:
    text = (
        "CREATE STREAM a KEY (k) TIME t FROM QUERY q; CREATE QUERY q AS PATTERN b(x) THEN c(x);"
        "CREATE STREAM b KEY (k) VALUE (v) TIME t INFERRED FROM a USING HMM 'm' METHOD MLE;"
        "CREATE STREAM c KEY (k) TIME t;"
    )
    assert [finding.message for finding in findings(text) if finding.code == "cycle"] == [
        "'a' is made of itself: a from q from b from a"
    ]


def test_all_findings_come_at_once_in_order_of_place() -> None:
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


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", ".hidden", "c:", "a*"])
def test_a_name_that_would_lead_a_folder_astray_is_refused(name: str) -> None:
    assert codes(f"CREATE RELATION `{name}` (x)") == ["not-a-folder"]
