"""The parser: text to syntax trees."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from anabranch.constrain.syntax import Counted
from anabranch.errors import Span, WorkbookError
from anabranch.language import nodes, parser
from anabranch.language.nodes import (
    And,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Duration,
    InList,
    InRange,
    IsNull,
    Literal,
    Negate,
    Not,
    Or,
    Variable,
    Wildcard,
    Windowed,
)
from anabranch.language.parser import parse
from anabranch.pattern.syntax import Goal, Kleene
from anabranch.sequence.syntax import Delay

X, Y, Z = Variable("x"), Variable("y"), Variable("z")


def statement(text: str) -> Any:
    (only,) = parse(text).statements
    return only


def where(condition: str) -> Any:
    return statement(f"CREATE QUERY q AS PATTERN s(x) WHERE {condition};").body.where


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x = 1", Compare("=", X, Literal(1))),
        ("x != 'it''s'", Compare("<>", X, Literal("it's"))),
        ("x <> .5", Compare("<>", X, Literal(0.5))),
        ("x >= -1e-3", Compare(">=", X, Literal(-0.001))),
        ("x < -9223372036854775808", Compare("<", X, Literal(-(2**63)))),
        ("x = TRUE OR y = false", Or((Compare("=", X, Literal(True)), Compare("=", Y, Literal(False))))),
        ("x OR y AND NOT z", Or((X, And((Y, Not(Z)))))),
        ("x AND (y AND z)", And((X, Y, Z))),
        ("(x OR y) AND z", And((Or((X, Y)), Z))),
        ("NOT x = y", Not(Compare("=", X, Y))),
        ("x - y - z = 0", Compare("=", Arithmetic("-", Arithmetic("-", X, Y), Z), Literal(0))),
        ("x - (y - z) = 0", Compare("=", Arithmetic("-", X, Arithmetic("-", Y, Z)), Literal(0))),
        ("x + y * z % 2 = z", Compare("=", Arithmetic("+", X, Arithmetic("%", Arithmetic("*", Y, Z), Literal(2))), Z)),
        ("-x = - -1", Compare("=", Negate(X), Negate(Literal(-1)))),
        ("x -1 = 0", Compare("=", Arithmetic("-", X, Literal(1)), Literal(0))),
        ("x IN [-3, 5]", InRange(X, Literal(-3), Literal(5))),
        ("x NOT BETWEEN 1 AND 2 AND y", And((InRange(X, Literal(1), Literal(2), True), Y))),
        ("x NOT IN (1, 'a', NULL)", InList(X, (Literal(1), Literal("a"), Literal(None)), True)),
        ("x IS NULL OR y IS NOT NULL", Or((IsNull(X), IsNull(Y, True)))),
        ("x.t - y <= 2 HOURS", Compare("<=", Arithmetic("-", Attribute("x", "t"), Y), Duration(2, "HOUR"))),
        ("x.tag['none'] = y.tag", Compare("=", Attribute("x", "tag", Literal("none")), Attribute("y", "tag"))),
        ("WITHIN(v, 'POLYGON((0 0))')", Call("WITHIN", (Variable("v"), Literal("POLYGON((0 0))")))),
        ("x < y WITHIN 3 AND z", And((Windowed(Compare("<", X, Y), Duration(3, None)), Z))),
        ("NOT x = y WITHIN 2 HOURS OR z", Or((Not(Windowed(Compare("=", X, Y), Duration(2, "HOUR"))), Z))),
        ("(x AND (y WITHIN -1) OR z)", Or((And((X, Windowed(Y, Duration(-1, None)))), Z))),
        ("(x OR y) WITHIN 5 AND z", And((Windowed(Or((X, Y)), Duration(5, None)), Z))),
        ("hall(x) AND Intersects(x, y)", And((Call("hall", (X,)), Call("Intersects", (X, Y))))),
    ],
)  # fmt: skip
def test_conditions(text: str, tree: nodes.Expr) -> None:
    assert where(text) == tree


def test_within_at_the_end_of_where_is_the_clause() -> None:
    body = statement("CREATE QUERY q AS PATTERN s(x) WHERE x < y WITHIN 3 AND z WITHIN 4 SECONDS THRESHOLD 0.5;").body
    assert body.where == And((Windowed(Compare("<", X, Y), Duration(3, None)), Z))
    assert body.within == Duration(4, "SECOND")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("+", Kleene()),
        ("+<p>", Kleene((Variable("p"),))),
        ("+< | TRUE>", Kleene((), Literal(True))),
        ("+<|TRUE>", Kleene((), Literal(True))),
        ("+<p, q | x > 3>", Kleene((Variable("p"), Variable("q")), Compare(">", X, Literal(3)))),
        ("+<p | (x > y) AND y>z>", Kleene((Variable("p"),), And((Compare(">", X, Y), Compare(">", Y, Z))))),
        ("+<p | x >= `then`>", Kleene((Variable("p"),), Compare(">=", X, Variable("then")))),
    ],
)
@pytest.mark.parametrize("after", ["", " THEN t(x)", " WHERE x > 5", " THRESHOLD 0.5", " GROUP BY x"])
def test_kleene_plus_and_the_tokens_after_it(text: str, tree: Kleene, after: str) -> None:
    assert statement(f"CREATE QUERY q AS PATTERN s(x, y){text}{after}").body.steps[0].kleene == tree


def test_goals_have_terms_and_filters() -> None:
    step = statement("CREATE QUERY q AS PATTERN s(p, 'a', -3, _, TRUE, `_`)[p > 1]").body.steps[0]
    terms = (Variable("p"), Literal("a"), Literal(-3), Wildcard(), Literal(True), Variable("_"))
    assert step.goal == Goal("s", terms, Compare(">", Variable("p"), Literal(1)))


def test_a_where_in_parentheses_applies_to_its_prefix() -> None:
    query = statement("CREATE QUERY q AS PATTERN ((a(x) WHERE x) THEN b(y) WHERE y) THEN c(z) WHERE z").body
    assert [step.where for step in query.steps] == [X, Y, None]
    assert query.where == Z
    both = statement("CREATE QUERY q AS PATTERN ((a(x) THEN b(y) WHERE x) WHERE y)").body
    assert both.steps[-1].where == And((X, Y))
    assert statement("CREATE QUERY q AS PATTERN ((a(x) THEN b(y)))").body.steps[1].where is None


def test_clauses_may_have_any_order() -> None:
    clauses = ["WHERE x = 1", "GROUP BY x, y", "THRESHOLD 0.5", "ACCURACY 0.1", "CONFIDENCE 0.9", "SEED 3"]
    forwards = parse("CREATE QUERY q AS PATTERN s(x, y) " + " ".join(clauses))
    backwards = parse("CREATE QUERY q AS PATTERN s(x, y) " + " ".join(reversed(clauses)))
    assert forwards == backwards
    stream = ["KEY (k)", "VALUE (v)", "TIME t", "ORDER seq", "MODEL INTERVALS", "FROM 'x'", "LENGTH n"]
    assert parse("CREATE STREAM s " + " ".join(stream)) == parse("CREATE STREAM s " + " ".join(reversed(stream)))


def test_keywords_are_names_where_a_name_is_expected() -> None:
    text = """
        CREATE STREAM order KEY (key STRING, window) VALUE (value, model) TIME time TIMESTAMP ORDER order
          LENGTH length WINDOW (from, to) PROBABILITY probability FROM TABLE table.query.stream;
        CREATE QUERY query AS PATTERN pattern(where, group) THEN then(in, is)
          WHERE in = is AND within > 1 AND not_(by) AND error < 5 GROUP BY threshold, where THRESHOLD 0.1;
        CREATE QUERY as AS SEQUENCE (from, !miss, delay) FROM within AS from, b AS miss, c AS delay
          WHERE from.where = miss.delay AND second.day = 5 DAYS MISS miss 0.1 DELAY delay EXPONENTIAL(5) WITHIN 1 DAY;
        CREATE QUERY r AS RELATE ALL all (MEETS OR STARTS) AT LEAST 2 at FROM some AS all, least AS at;
    """
    order, query, sequence, relate = (declared.name for declared in parse(text).statements)
    assert (order, query, sequence, relate) == ("order", "query", "as", "r")


def test_keywords_ignore_case_and_names_keep_it() -> None:
    upper = statement("CREATE QUERY Q AS PATTERN S(X) WHERE X IN [1, 2] THRESHOLD 0.5")
    lower = statement("create query Q as pattern S(X) where X in [1, 2] threshold 0.5")
    assert upper == lower
    assert upper.name == "Q"


def test_names_may_be_quoted_or_unicode() -> None:
    names = [
        declared.name
        for declared in parse("CREATE RELATION `two ``words``` (a); CREATE RELATION Größe (名前)").statements
    ]
    assert names == ["two `words`", "Größe"]


def test_sources() -> None:
    def source(text: str) -> Any:
        return statement(f"CREATE STREAM s KEY (k) TIME t {text}").source

    options = (nodes.Option("sep", ";"), nodes.Option("header", True), nodes.Option("skip", -1))
    assert source("FROM 'x.csv' OPTIONS (sep = ';', header = TRUE, skip = -1)") == nodes.FileSource("x.csv", options)
    assert source("FROM 'lake/' FORMAT Parquet") == nodes.FileSource("lake/", format="parquet")
    assert source("FROM 'x.csv' FORMAT 'yyyy'") == source("FORMAT 'yyyy' FROM 'x.csv'") == nodes.FileSource("x.csv")
    assert source("FROM 'x' FORMAT csv OPTIONS (sep = ';') FORMAT 'yyyy'") == nodes.FileSource("x", options[:1], "csv")
    assert source("FROM kafka 'at' OPTIONS (sep = ';')") == nodes.ConnectorSource("KAFKA", "at", options[:1])
    assert source("FROM SOURCE 'rate'") == nodes.ConnectorSource("SOURCE", "rate")
    assert source("FROM TABLE a.b") == nodes.TableSource("a.b")
    assert source("FROM TABLE a.`b.c`") == nodes.TableSource("a.`b.c`")
    assert source("FROM QUERY q") == nodes.QuerySource("q")
    inferred = nodes.InferredSource("r", "HMM", "m/", "PARTICLE", 100)
    assert source("INFERRED FROM r USING hmm 'm/' METHOD particle(100)") == inferred
    assert source("PREDICTED FROM r") == nodes.PredictedSource("r", "LINEAR")
    assert source("PREDICTED FROM r USING linear") == nodes.PredictedSource("r")
    assert source("USING kalman(0.5, 2) PERIOD 5 PREDICTED FROM r") == nodes.PredictedSource("r", "KALMAN", (0.5, 2))
    assert source("") is None


def test_streams_of_every_model() -> None:
    stream = statement(
        "CREATE STREAM s KEY (k) TIME t MODEL PREDICTED ERROR (x = 25, y = 10) PERIOD 3 MINUTES SPACE (x, y) GEODESIC "
        "WATERMARK 10 HORIZON ['2026-01-01', 5.5]"
    )
    assert stream.error == (nodes.ErrorBound("x", 25), nodes.ErrorBound("y", 10))
    assert stream.period == Duration(3, "MINUTE")
    assert (stream.space, stream.geodesic) == (("x", "y"), True)
    assert stream.watermark == Duration(10, None)
    assert stream.horizon == (Literal("2026-01-01"), Literal(5.5))
    assert statement("CREATE STREAM s ERROR 2.5").error == (nodes.ErrorBound(None, 2.5),)


def test_errors_may_be_columns_and_normal() -> None:
    def errors(text: str) -> Any:
        return statement(f"CREATE STREAM s ERROR {text} PERIOD 5").error

    assert errors("spread") == (nodes.ErrorBound(None, None, "spread"),)
    assert errors("25 NORMAL 10") == (nodes.ErrorBound(None, 25, None, 10),)
    assert errors("normal NORMAL 0.5") == (nodes.ErrorBound(None, None, "normal", 0.5),)
    both = (nodes.ErrorBound("x", None, "spread", 2), nodes.ErrorBound("y", 10))
    assert errors("(x = spread NORMAL 2, y = 10)") == both


def test_queries_of_the_other_kinds() -> None:
    sequence = statement(
        "CREATE QUERY q AS SEQUENCE (x, !y, z) FROM r MISS y 0.1 DELAY x GAMMA(2, 3 HOURS), y EMPIRICAL 'f'"
    ).body
    assert [component.negative for component in sequence.components] == [False, True, False]
    assert sequence.delay == (
        Delay("x", "GAMMA", (Duration(2, None), Duration(3, "HOUR"))), Delay("y", "EMPIRICAL", (), "f"),
    )  # fmt: skip
    given = statement(
        "CREATE QUERY q AS SEQUENCE (x, y, z) FROM r OCCURS y 0.8 "
        "DELAY z WITHOUT y EXPONENTIAL(5), z WITH (y, w) FITTED 'f'"
    ).body
    assert [(item.component, item.probability) for item in given.occurs] == [("y", 0.8)]
    assert [item.given and (item.given.happened, item.given.components) for item in given.delay] == [
        (False, ("y",)), (True, ("y", "w")),
    ]  # fmt: skip
    relate = statement(
        "CREATE QUERY q AS RELATE ALL a (MEETS OR met  BY) SOME b FROM i AS a, i AS b TIMEOUT 5 MINUTES"
    ).body
    assert (relate.first.at_least, relate.second.at_least) == (None, 1)
    assert relate.relations == ("MEETS", "MET BY")
    monitor = statement(
        "CREATE QUERY q AS MONITOR a FROM c BUFFER 5 DISCARD least contribution MAX DELAY 5 EVERY 1 SECOND"
    ).body
    assert (monitor.buffer, monitor.discard, monitor.max_delay) == (5, "LEAST CONTRIBUTION", Duration(5, None))
    constrain = statement("CREATE QUERY q AS CONSTRAIN v*5, w, AT LEAST 3 u FROM e").body
    assert constrain.names == (Counted("v", 5), Counted("w"), Counted("u", 3, grows=True))


def test_statements_may_be_empty_and_the_last_semicolon_is_optional() -> None:
    assert parse("").statements == ()
    assert parse(" ; -- nothing ; here\n ;;").statements == ()
    assert len(parse("CREATE RELATION a (x);; CREATE RELATION b (x) -- ;").statements) == 2


def test_spans_are_positions_in_the_whole_text() -> None:
    text = "CREATE RELATION r (a);\n\nCREATE QUERY q AS\n  PATTERN s(x)\n  WHERE NOT (x = 1) AND f(x);"
    relation, query = parse(text).statements
    assert relation.span == Span(1, 1, 1, 22)
    assert query.span == Span(3, 1, 5, 29)
    negation, call = query.body.where.items
    assert (negation.span, call.span) == (Span(5, 9, 5, 20), Span(5, 25, 5, 29))
    assert query.clause_span("WHERE") == Span(5, 3, 5, 29)
    assert query.clause_span("THRESHOLD") == query.span


def test_every_invalid_statement_is_reported() -> None:
    with pytest.raises(WorkbookError) as caught:
        parse("CRATE a; CREATE RELATION r (x); CREATE b; CREATE QUERY q AS PATTERN s(x) SEED 1 SEED 2; CREATE c (")
    assert [finding.code for finding in caught.value.findings] == ["syntax", "syntax", "clause-twice", "unterminated"]


def test_a_statement_that_was_parsed_before_is_not_parsed_again() -> None:
    text = "CREATE RELATION hall (location) FROM 'hall.csv';\n"
    (first,) = parse(text).statements
    assert parse(text).statements[0] is first
    moved = parse(f"\n  {text}").statements[0]
    assert moved == first
    assert (moved.span.line, moved.span.column) == (2, 3)
    assert parse(f"{text}CREATE RELATION other (name);").statements[0] is first


def test_statements_that_imply_others_or_have_errors_are_as_at_first() -> None:
    implying = "CREATE QUERY q AS WITH p AS (PATTERN at(x)) PATTERN p(x) GROUP BY x;"
    assert len(parse(implying).statements) == 3
    assert parse(implying).statements == parse(implying).statements
    wrong = "CREATE STREAM s KEY (a) KEY (b) TIME t;"
    reports = []
    for _ in range(2):
        with pytest.raises(WorkbookError) as caught:
            parse(wrong)
        reports.append(str(caught.value))
    assert reports[0] == reports[1]


def test_few_statements_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser._recent, "_built", {})
    monkeypatch.setattr(parser._Recent, "_MOST", 2)
    monkeypatch.setattr(parser._Recent, "_LONGEST", 30)
    texts = [f"CREATE RELATION r{number} (a);" for number in range(3)]
    kept = [parse(text).statements[0] for text in texts]
    again = [parse(text).statements[0] for text in texts[1:]]
    assert all(map(operator.is_, again, kept[1:]))
    assert parse(texts[0]).statements[0] is not kept[0]
    long = "CREATE RELATION long (a, b, c, d, e, f);"
    assert parse(long).statements[0] is not parse(long).statements[0]
