"""Binding of PATTERN: goals, variables, and the prefix at which each condition applies."""

from __future__ import annotations

import pytest
from tests.language.workbooks import bound, declared, wrong

from anabranch.binding.binder import bind
from anabranch.binding.typed import Constant, Member, Operation, Reference
from anabranch.catalog import Catalog, Stream
from anabranch.errors import WorkbookError
from anabranch.language.nodes import Literal, Variable, Wildcard
from anabranch.language.types import Type

WORKBOOK = """
    CREATE STREAM at KEY (person) VALUE (location) TIME t MODEL MARKOV;
    CREATE STREAM typed KEY (k STRING) VALUE (n INTEGER, since TIMESTAMP, day DATE) TIME t;
    CREATE STREAM iv KEY (k) TIME t MODEL INTERVALS ORDER seq;
    CREATE STREAM cars KEY (k) VALUE (x) TIME t MODEL PREDICTED ERROR 1 PERIOD 5;
    CREATE STREAM seen KEY (k) TIME t MODEL INDEPENDENT;
    CREATE RELATION hall (location);
    CREATE RELATION office (person, location);
    CREATE QUERY other AS PATTERN at(_, _);
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(WORKBOOK)


def test_a_pattern_with_all_clauses(catalog: Catalog) -> None:
    pattern = bound(
        "PATTERN at(P, l1) THEN at(p, l2)+<P | hall(l2)> THEN at(p, L3) WHERE office(p, l1) AND hall(l3) "
        "GROUP BY P THRESHOLD 0.1 ACCURACY 0.05 CONFIDENCE 0.9 SEED 4",
        catalog,
    )
    first, second, third = pattern.goals
    assert first.terms == (Variable("p"), Variable("l1"))
    assert [member.relation.name for member in first.selections] == ["office"]
    assert (second.kleene, second.shared, second.exported) == (True, ("p",), {"p"})
    assert isinstance(second.step_condition, Member)
    assert [member.relation.name for member in third.selections] == ["hall"]
    assert pattern.group_by == (("P", "p"),)
    assert (pattern.threshold, pattern.accuracy, pattern.confidence, pattern.seed) == (0.1, 0.05, 0.9, 4)
    assert pattern.streams == (catalog.stream("at"),)


def test_defaults(catalog: Catalog) -> None:
    pattern = bound("PATTERN at(_, 'a')+ THEN seen('k')+<| TRUE>", catalog)
    assert (pattern.threshold, pattern.accuracy, pattern.confidence, pattern.seed) == (0.0, 0.01, 0.99, 0)
    assert pattern.goals[0].terms == (Wildcard(), Literal("a"))
    assert [goal.step_condition for goal in pattern.goals] == [None, None]


@pytest.mark.parametrize(
    ("pattern", "goals"),
    [
        ("at(p, a) THEN at(p, b) THEN at(p, c) WHERE a = 1", [1, 0, 0]),
        ("at(p, a) THEN at(p, b) THEN at(p, c) WHERE b = a AND c = 2 AND a = 3", [1, 1, 1]),
        ("at(p, a) THEN at(p, b) THEN at(p, c) WHERE a = 1 OR c = 2", [0, 0, 1]),
        ("at(p, a) THEN at(p, b) WHERE 1 = 1", [1, 0]),
        ("at(p, a) THEN at(p, b) WHERE b IN [1, 5]", [0, 2]),
        ("at(p, a) THEN at(p, b)+<p, b> THEN at(p, c) WHERE b = 1", [0, 1, 0]),
        ("(at(p, a) THEN at(p, b) WHERE a = 1 AND b = 2) THEN at(p, c) WHERE b = 3", [1, 2, 0]),
    ],
)
def test_a_conjunct_applies_at_the_first_prefix_that_binds_its_variables(
    pattern: str, goals: list[int], catalog: Catalog
) -> None:
    assert [len(goal.selections) for goal in bound(f"PATTERN {pattern}", catalog).goals] == goals


def test_a_filter_and_a_step_condition_stay_with_their_goal(catalog: Catalog) -> None:
    pattern = bound("PATTERN at(p, a) THEN at(p, b)[b <> 'x']+<p | b = a>", catalog)
    assert pattern.goals[1].filter == Operation(
        "<>", (Reference(None, "b", Type.UNKNOWN), Constant("x", Type.STRING)), Type.BOOLEAN
    )
    assert pattern.goals[1].step_condition is not None
    assert pattern.goals[1].selections == ()


def test_a_variable_that_a_plus_does_not_export_can_be_bound_later(catalog: Catalog) -> None:
    pattern = bound("PATTERN at(p, a)+<p> THEN at(p, a) WHERE a = 'x'", catalog)
    assert [len(goal.selections) for goal in pattern.goals] == [0, 1]


def test_constants_are_converted_to_the_type_of_their_column(catalog: Catalog) -> None:
    goal = bound("PATTERN typed('a', 5, '1970-01-01T00:00:01', '1970-01-03')", catalog).goals[0]
    assert goal.terms == (Literal("a"), Literal(5), Literal(1_000_000), Literal(2))


def test_variables_have_the_type_of_their_columns(catalog: Catalog) -> None:
    pattern = bound("PATTERN at(k, n) THEN typed(k, n, s, d) WHERE n > 5 AND s > '2026-01-01'", catalog)
    (number,), (time,) = (goal.selections for goal in pattern.goals)
    assert [part.type for part in number.arguments] == [Type.INTEGER, Type.INTEGER]
    assert [part.type for part in time.arguments] == [Type.TIMESTAMP, Type.TIMESTAMP]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("att(p, l)", "unknown-stream"),
        ("hall(l)", "not-a-stream"),
        ("other(l)", "not-a-stream"),
        ("iv(k)", "wrong-model"),
        ("cars(k, x)", "wrong-model"),
        ("at(p)", "arity"),
        ("at(p, l, m)", "arity"),
        ("at(p, NULL)", "null-term"),
        ("typed(5, n, s, d)", "type-mismatch"),
        ("typed(k, 'a', s, d)", "type-mismatch"),
        ("typed(k, n, 'soon', d)", "type-mismatch"),
        ("typed(k, k, s, d)", "type-mismatch"),
        ("typed(k, n, s, d) THEN typed(n, m, s, d)", "type-mismatch"),
        ("at(p, l) WHERE q = 1", "unknown-variable"),
        ("at(p, l) THEN at(p, m)[l = m]", "not-exported"),
        ("at(p, l)[m = 1] THEN at(p, m)", "unknown-variable"),
        ("at(p, l)+<p | m = 1> THEN at(p, m)", "unknown-variable"),
        ("at(p, l)+<p> WHERE l = 1", "not-exported"),
        ("at(p, l)+<p> THEN at(p, m)+<p | l = m>", "not-exported"),
        ("at(p, l) THEN at(p, m)+", "not-shared"),
        ("at(p, l) THEN at(p, m)+<m>", "not-shared"),
        ("at(p, l) THEN NOT at(q, l) THEN at(q, m)", "bound-later"),
        ("at(p, l) THEN NOT at(p, m) THEN at(p, n) WHERE m = 1", "not-exported"),
        ("at(p, l) THEN NOT at(p, m) THEN at(p, n) GROUP BY m", "not-exported"),
        ("(at(p, l) OR at(p, _)) THEN at(p, m)", "not-in-both"),
        ("(at(p, l)[m = 1] OR at(p, l)) THEN at(p, m)", "unknown-variable"),
        ("at(p, l) WITHIN 0", "out-of-range"),
        ("at(p, l)+<x>", "unknown-variable"),
        ("at(p, l)+<p, P>", "name-twice"),
        ("(at(p, l) WHERE m = 1) THEN at(p, m)", "unknown-variable"),
        ("at(p, l) WHERE hall(p, l)", "arity"),
        ("at(p, l) WHERE at(p, l)", "not-a-relation"),
        ("at(p, l) WHERE other(p)", "not-a-relation"),
        ("at(p, l) WHERE halls(p)", "unknown-relation"),
        ("at(p, l) WHERE DISTANCE(p, l) < 1", "unknown-function"),
        ("at(p, l) WHERE at.person = 'a'", "not-a-variable"),
        ("at(p, l)+<p> GROUP BY l", "not-exported"),
        ("at(p, l) GROUP BY x", "unknown-variable"),
        ("at(p, l) GROUP BY p, P", "name-twice"),
        ("at(t, l) GROUP BY t", "answer-column"),
        ("at(p, l) ACCURACY 0", "out-of-range"),
        ("at(p, l) CONFIDENCE 1", "out-of-range"),
        ("at(p, l) SEED -1", "out-of-range"),
        ("at(p, l) THRESHOLD 1.01", "out-of-range"),
    ],
)
def test_invalid_patterns(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"PATTERN {query}", catalog) == [code]


def test_one_mistake_is_reported_once(catalog: Catalog) -> None:
    """An unknown stream causes no further findings."""
    assert wrong("PATTERN att(p, l)[hall(l)] THEN at(p, m) WHERE l = m AND ABS(l) > 3", catalog) == ["unknown-stream"]


def test_a_query_can_be_bound_again_with_known_types(catalog: Catalog) -> None:
    learned = declared(WORKBOOK + "CREATE QUERY q AS PATTERN at(p, l) WHERE l = 5;")
    query, stream = learned.query("q"), learned.stream("at")
    assert query is not None and isinstance(stream, Stream)
    assert bind(query, learned)
    learned.add(stream.with_types({"location": Type.STRING}))
    with pytest.raises(WorkbookError) as caught:
        bind(query, learned)
    assert [finding.code for finding in caught.value.findings] == ["type-mismatch"]
