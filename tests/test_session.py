"""`ask`, and what sessions, plans and counts show of themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch as ab
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.transport.operator import Counts
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, collect, query, same, stream, table, write_csv

COFFEE = "PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x"


def test_ask_answers_a_query_over_inputs_of_any_kind(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA.names)
    answers = ab.ask(COFFEE, at=frame)
    assert answers.sparkSession is spark
    assert same(collect(answers), ANSWERS)
    answers = ab.ask("PATTERN at(x, y)[rooms(y)] THEN at(x, 'coffee') GROUP BY x", at=table(), rooms=[("hall",)])
    assert same(collect(answers), ANSWERS)
    session = ab.Session(spark)
    path = write_csv(tmp_path / "at.csv")
    assert same(collect(session.ask(f"{COFFEE} THRESHOLD 0.3", at=str(path))), {(2, "ann"): 0.4})
    assert session.catalog.names() == []


def test_ask_uses_the_declarations_and_inputs_of_the_session_and_changes_neither(spark: SparkSession) -> None:
    session = ab.Session(spark)
    session.execute(stream("at") + query())
    session.bind("at", table())
    assert same(collect(session.ask(COFFEE)), ANSWERS)
    one = [row for row in table().to_pylist() if row["person"] == "ann"]
    assert same(collect(session.ask(COFFEE, at=one)), {(2, "ann"): 0.4})
    certain = "CREATE STREAM c KEY (person) VALUE (place) TIME t; PATTERN c(x, 'hall') THEN c(x, 'coffee') GROUP BY x"
    assert collect(session.ask(certain, c=table())) == dict.fromkeys(ANSWERS, 1.0)
    assert same(collect(session.run("coffee")), ANSWERS)
    assert session.catalog.names() == ["at", "coffee"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN at(x) WHEN x", "<query>:1:15: expected THEN, WHERE, GROUP BY"),
        (
            "SELECT 1",
            "<query>:1:1: expected a name, CONSTRAIN, MONITOR, NOT, PATTERN, RELATE, SEQUENCE, WITH or (, "
            "found 'SELECT'",
        ),
        ("CREATE STREAM s KEY (k) TIME t;\nPATTERN zz(x)", "<query>:2:9: there is no stream 'zz'"),
        ("CREATE STREAM s KEY (k) TIME t", "ask takes one query, and this text has 0; use execute and run_all"),
        ("PATTERN s(x); PATTERN s(y)", "ask takes one query, and this text has 2; use execute and run_all"),
    ],
)
def test_an_error_in_a_question_has_its_position(text: str, message: str) -> None:
    with pytest.raises(AnabranchError) as refused:
        ab.Session().ask(text)
    assert str(refused.value).startswith(message), str(refused.value)


def test_a_workbook_has_no_query_without_a_name() -> None:
    with pytest.raises(WorkbookError, match="expected CREATE, found 'PATTERN'"):
        ab.Session().execute(COFFEE)


def test_a_name_is_declared_once_in_a_session() -> None:
    session = ab.Session()
    session.execute(stream("at") + query())
    with pytest.raises(WorkbookError, match="there is already a query 'coffee'; use another name, or write CREATE OR"):
        session.execute(query())
    session.execute(query(more="").replace("CREATE", "CREATE OR REPLACE"))
    assert session.explain("coffee").classification == "extended regular"


def test_a_session_shows_its_declarations() -> None:
    session = ab.Session()
    assert repr(session) == "<Session: nothing declared>"
    session.execute(stream("at") + query() + "".join(f"CREATE RELATION r{n} (a);" for n in range(12)))
    names = ", ".join(f"r{n}" for n in range(10))
    assert repr(session) == f"<Session: 1 stream (at), 12 relations ({names}, ...), 1 query (coffee)>"
    html = session._repr_html_()
    assert "<td>coffee</td><td>query</td><td><pre>CREATE QUERY coffee AS PATTERN at(x, &#x27;hall&#x27;)" in html
    assert html.count("<tr>") == 15


def test_a_plan_shows_itself() -> None:
    session = ab.Session()
    session.execute(stream("at") + query())
    plan = session.explain("coffee")
    assert repr(plan) == str(plan)
    assert repr(plan).startswith("coffee: PATTERN\n  class      extended regular")


def test_counts_show_what_is_not_zero() -> None:
    assert repr(Counts()) == "Counts(read=0, used=0, answers=0)"
    counts = Counts(read=1200, used=1199, late=1, answers=3)
    assert repr(counts) == "Counts(read=1200, used=1199, late=1, answers=3)"
    html = counts._repr_html_()
    assert re.findall('<th class="number">(.*?)</th>', html) == ["read", "used", "late", "answers"]
    assert re.findall('<td class="number">(.*?)</td>', html) == ["1,200", "1,199", "1", "3"]
