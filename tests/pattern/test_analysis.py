"""The class of a query, and the reason in words: the paper's own examples, and what sets our model apart from it."""

from __future__ import annotations

import pytest
from tests.pattern.local import bound_query

from anabranch.errors import WorkbookError
from anabranch.pattern.analysis import EXTENDED, REGULAR, SAFE, UNSAFE, analyse
from anabranch.pattern.explain import plan

DECLARATIONS = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
CREATE STREAM seen KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM carries KEY (person STRING, thing STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE RELATION hall (place STRING);
CREATE RELATION office (person STRING, place STRING);
CREATE RELATION person (person STRING);
"""


def analysis_of(pattern: str):
    return analyse(bound_query(f"{DECLARATIONS} CREATE QUERY q AS PATTERN {pattern};", "q"))


@pytest.mark.parametrize(
    ("pattern", "classification", "reason"),
    [
        ("at('joe', '220') THEN at('joe', l)[hall(l)] THEN at('joe', '220')", REGULAR, "no variable is shared"),
        ("at('joe', 'a') THEN at('joe', l)+<| hall(l)> THEN at('joe', 'c')", REGULAR, "no variable is shared"),
        ("at(_, 'a') THEN at(_, 'b')", REGULAR, "no variable is shared"),
        (
            "at(p, l1) THEN at(p, l2)+<p | hall(l2)> THEN at(p, l3) WHERE office(p, l1)",
            EXTENDED,
            "p stands in the same",
        ),
        ("at(p, 'a')+<p | TRUE>", EXTENDED, "p stands in the same key position"),
        ("at(p, 'a') THEN seen(p, 'b')", EXTENDED, "p stands in the same key position"),
        ("carries(p, d, z) THEN carries(p, e, y)", EXTENDED, "p stands in the same key position"),
        (
            "carries(x, y, z) THEN carries(x, y, _)+<x, y | TRUE> THEN at(x, u) WHERE person(x) AND hall(u)",
            SAFE,
            "goal 3 does not have it",
        ),
        ("seen(p, a) THEN seen(p, b) THEN at(q, c)", SAFE, "goal 3 does not have it"),
        ("at(p, a) THEN at(p, b) THEN at(q, c)", UNSAFE, "one key of at can feed both goal 1 and goal 3"),
        ("at(p, l) THEN at(q, l)", UNSAFE, "in goal 1 it is a value, not a key"),
        ("at('joe', l)+<l | TRUE>", UNSAFE, "in goal 1 it is a value, not a key"),
        ("carries(x, y, _) THEN carries(y, x, _)", UNSAFE, "goals of one stream have it in different key positions"),
        ("at('joe', a) THEN at('joe', b) WHERE a <> b", UNSAFE, "a condition joins a, b"),
        ("at('joe', a) THEN at('joe', l)+<| l <> a>", UNSAFE, "a condition joins a, l"),
    ],
)
def test_every_query_has_its_class_and_the_reason(pattern: str, classification: str, reason: str) -> None:
    analysis, findings = analysis_of(pattern)
    assert not findings
    assert analysis.classification == classification
    assert any(reason in why for why in analysis.why), analysis.why


def test_a_key_constant_tells_goals_of_one_stream_apart() -> None:
    analysis, _ = analysis_of("carries(x, 'lamp', a) THEN carries(x, 'lamp', b) THEN carries(y, 'key', c)")
    assert analysis.classification == SAFE


def test_safe_and_unsafe_queries_are_refused_with_their_class() -> None:
    for pattern, article in (
        ("seen(p, a) THEN seen(p, b) THEN at(q, c)", "a safe"),
        ("at(p, l) THEN at(q, l)", "an unsafe"),
    ):
        told = plan(bound_query(f"{DECLARATIONS} CREATE QUERY q AS PATTERN {pattern};", "q"))
        assert told.refused is not None
        assert f"q is {article} query" in told.refused.message
        assert "refused" in str(told)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("at(p, l) THEN at(q, m) GROUP BY p", "the query is not independent on p"),
        ("at(p, l) THEN at(p, m) GROUP BY l", "the query is not independent on l"),
    ],
)
def test_grouping_by_what_the_query_is_not_independent_on_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(WorkbookError, match=message):
        plan(bound_query(f"{DECLARATIONS} CREATE QUERY q AS PATTERN {pattern};", "q"))


def test_a_single_goal_makes_every_key_a_chain_of_its_own() -> None:
    analysis, _ = analysis_of("carries(_, 'lamp', 'a')")
    assert analysis.classification == REGULAR
    assert len(analysis.chain) == 1
    assert analysis.chain_positions == ((0,),)
    named, _ = analysis_of("carries(p, d, 'a') GROUP BY d, p")
    assert named.single
    assert named.group_by == (("d", 1), ("p", 0))


def test_the_plan_prints_itself_in_text_and_in_a_notebook() -> None:
    told = plan(bound_query(f"{DECLARATIONS} CREATE QUERY q AS PATTERN at(p, 'a') THEN at(p, '<b>') GROUP BY p;", "q"))
    assert str(told).splitlines()[0] == "q: PATTERN"
    assert "extended regular" in str(told)
    assert "rows are spread by p" in str(told)
    assert told._repr_html_().startswith("<table>")
