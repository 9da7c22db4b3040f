"""The class of a PATTERN query and the reasons: the examples of the paper, and cases where our model differs."""

from __future__ import annotations

import pytest
from tests.local import bound_query

from anabranch.pattern.analysis import analyse
from anabranch.pattern.classes import EXTENDED, REGULAR, SAFE, UNSAFE
from anabranch.pattern.explain import plan
from anabranch.pattern.interval_plans import why_not_by_intervals

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
            "p is in the same",
        ),
        ("at(p, 'a')+<p | TRUE>", EXTENDED, "p is in the same key position"),
        ("at(p, 'a') THEN seen(p, 'b')", EXTENDED, "p is in the same key position"),
        ("carries(p, d, z) THEN carries(p, e, y)", EXTENDED, "p is in the same key position"),
        (
            "carries(x, y, z) THEN carries(x, y, _)+<x, y | TRUE> THEN at(x, u) WHERE person(x) AND hall(u)",
            SAFE,
            "goal 3 does not have it",
        ),
        ("seen(p, a) THEN seen(p, b) THEN at(q, c)", SAFE, "goal 3 does not have it"),
        ("at(p, a) THEN at(p, b) THEN at(q, c)", UNSAFE, "one key of at can feed both goal 1 and goal 3"),
        ("at(p, l) THEN at(q, l)", UNSAFE, "in goal 1 it is a value, not a key"),
        ("at('joe', l)+<l | TRUE>", UNSAFE, "in goal 1 it is a value, not a key"),
        ("at(p, l)+<| TRUE> THEN at(p, m)", UNSAFE, "p is shared, but the + of goal 1 does not share it"),
        (
            "carries(x, y, _) THEN carries(y, x, _)",
            UNSAFE,
            "goals of the same stream have it in different key positions",
        ),
        ("at(p, 'a') THEN NOT at(p, 'b') THEN at(p, 'c')", EXTENDED, "p is in the same key position"),
        ("at(_, 'a') THEN NOT at(q, 'b') THEN NOT at(q, 'd') THEN at(_, 'c')", REGULAR, "no variable is shared"),
        ("at(p, 'a') THEN NOT at(q, 'b') THEN at(p, 'c')", UNSAFE, "p is shared, but goal 2 does not have it"),
        ("(at(p, 'a') OR seen(p, 'b')) THEN at(p, 'c')", EXTENDED, "p is in the same key position"),
        ("(at(p, l) OR at(l, p)) THEN at(p, 'c')", UNSAFE, "p is shared, but in goal 1 it is a value, not a key"),
        ("at(p, 'a') THEN at(p, 'b') WITHIN 3", EXTENDED, "p is in the same key position"),
        (
            "at('joe', a) THEN at('joe', b) WHERE a <> b",
            UNSAFE,
            "a condition at goal 2 joins variables of different goals: a, b",
        ),
        (
            "at('joe', a) THEN at('joe', l)+<| l <> a>",
            UNSAFE,
            "a condition at goal 2 joins variables of different goals: a, l",
        ),
    ],
)
def test_every_query_has_a_class_and_a_reason(pattern: str, classification: str, reason: str) -> None:
    analysis = analysis_of(pattern)
    assert analysis.classification == classification
    assert any(reason in why for why in analysis.why), analysis.why


def test_key_constants_separate_goals_of_the_same_stream() -> None:
    analysis = analysis_of("carries(x, 'lamp', a) THEN carries(x, 'lamp', b) THEN carries(y, 'key', c)")
    assert analysis.classification == SAFE


@pytest.mark.parametrize(
    ("pattern", "classification"),
    [
        ("at(p, a)[p <> 'sue'] THEN at(p, b) THEN at('sue', c)", SAFE),
        ("at(p, a) THEN at(p, b)[p <> 'sue'] THEN at('sue', c)", SAFE),
        ("at(p, a) THEN at(p, b) THEN at('sue', c) WHERE p <> 'sue'", SAFE),
        ("at(p, a)[p = 'joe' OR p = 'ann'] THEN at(p, b) THEN at(q, c)[q = 'sue']", SAFE),
        ("at(p, a)[person(p)] THEN at(p, b) THEN at(q, c)[NOT person(q)]", SAFE),
        ("at(p, a)[p < 'm'] THEN at(p, b) THEN at(q, c)[q > 'n']", UNSAFE),
        ("at(p, a)[person(p)] THEN at(p, b) THEN at('sue', c)", UNSAFE),
        ("at(p, a) THEN at(p, b) THEN at(q, c) WHERE q = 'sue' AND p <> 'sue'", UNSAFE),
        ("at(p, a) THEN at(q, 'x') THEN at(q, b)[q <> 'sue'] THEN at('sue', c)", UNSAFE),
        ("at(p, a)[p <> 'sue'] THEN at(q, 'x') THEN at('sue', c)", REGULAR),
    ],
)
def test_filters_and_relations_separate_keys(pattern: str, classification: str) -> None:
    assert analysis_of(pattern).classification == classification


PAPER = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
CREATE STREAM carries KEY (person STRING, thing STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM r KEY (x STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM s KEY (x STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM u KEY (a STRING, y STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE RELATION hall (place STRING);
CREATE RELATION person (person STRING);
CREATE RELATION laptop (thing STRING);
CREATE RELATION office (place STRING);
CREATE RELATION own_office (person STRING, place STRING);
CREATE RELATION coffee_room (place STRING);
CREATE RELATION lecture_room (place STRING);
CREATE RELATION theta (x STRING, y STRING);
"""


@pytest.mark.parametrize(
    ("pattern", "classification", "lines"),
    [
        # 2.2: Joe got coffee; anyone goes to the coffee room without stopping at someone else's office.
        (
            "at('Joe', '220') THEN at('Joe', l)[coffee_room(l)] THEN at('Joe', '220')",
            REGULAR,
            ["no variable is shared", "streaming  yes"],
        ),
        (
            "at(p, l1) THEN at(p, l2)+<p | hall(l2)> THEN at(p, l3) "
            "WHERE person(p) AND own_office(p, l1) AND coffee_room(l3)",
            EXTENDED,
            ["p is in the same key position of every goal", "streaming  yes"],
        ),
        # 3.2 and 3.6: from a to c through the hall, for Joe and for anyone.
        ("at('Joe', 'a') THEN at('Joe', l)+<| hall(l)> THEN at('Joe', 'c')", REGULAR, ["method     exact"]),
        (
            "at(x, 'a') THEN at(x, l2)+<x | hall(l2)> THEN at(x, 'c') WHERE person(x)",
            EXTENDED,
            ["1 - prod(1 - p) over the chains"],
        ),
        # 3.9: somebody carried a laptop from the office to a lecture.
        (
            "carries(x, y, z) THEN carries(x, y, _)+<x, y | TRUE> THEN at(x, v) "
            "WHERE person(x) AND laptop(y) AND office(z) AND lecture_room(v)",
            SAFE,
            [
                "y is shared, but goal 3 does not have it",
                "plan       projection of x",
                "selection at goal 3",
                "seq",
                "projection of y",
                "reg: carries(x, y, z) THEN carries(x, y, _)+",
                "goal 3: at(x, v)",
                "square of the number of instants",
                "streaming  yes",
            ],
        ),
        # 3.11: filter and selection differ in what they mean, not in their class.
        ("r('a') THEN r('b')", REGULAR, ["no variable is shared"]),
        ("r('a') THEN r(y) WHERE y = 'b'", REGULAR, ["no variable is shared"]),
        # 3.17 with its plan.
        ("r(x) THEN s(x) THEN u('a', y)", SAFE, ["projection of x", "reg: r(x) THEN s(x)", "goal 3: u('a', y)"]),
        # h1 to h4 are hard.
        (
            "r(x) THEN s(y) WHERE theta(x, y)",
            UNSAFE,
            ["a condition at goal 2 joins variables of different goals: x, y"],
        ),
        ("r(_) THEN s(x)+<x | TRUE>", UNSAFE, ["the + of goal 2 repeats x"]),
        (
            "u(_, _) THEN s(x) THEN r(x)",
            UNSAFE,
            ["x joins goal 3 to an earlier one", "else sampling with accuracy 0.01"],
        ),
        ("r(x) THEN u(_, _) THEN s(x)", UNSAFE, ["x is shared, but goal 2 does not have it"]),
    ],
)
def test_the_plans_of_the_papers_examples(pattern: str, classification: str, lines: list[str]) -> None:
    explained = plan(analyse(bound_query(f"{PAPER} CREATE QUERY q AS PATTERN {pattern};", "q")))
    assert explained.refused is None
    assert explained.classification == classification
    for line in lines:
        assert line in str(explained), str(explained)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (
            "r(x) THEN s(x) THEN carries(_, _, z) THEN u(_, _) WHERE hall(z)",
            "goal 3 can match events that WHERE rejects",
        ),
        ("r(x) THEN s(x) THEN at(_, _) THEN u(_, _)", "goal 3 reads a MARKOV stream in the middle of the query"),
        ("r(x) THEN s(x) THEN carries(_, _, z)+<| hall(z)>", "goal 3 can match events that WHERE rejects"),
        ("r(x) THEN s(x) THEN carries(_, _, z) WHERE hall(z)", None),
        ("r(x) THEN s(x) THEN at(_, _)", None),
    ],
)
def test_plans_that_intervals_are_not_enough_for(pattern: str, reason: str | None) -> None:
    query = bound_query(f"{PAPER} CREATE QUERY q AS PATTERN {pattern};", "q")
    assert str(why_not_by_intervals(analyse(query))).startswith(str(reason))
    assert ("by the safe plan" in plan(analyse(query)).method) == (reason is None)


@pytest.mark.parametrize(
    ("pattern", "classification", "streams"),
    [
        ("at(p, l) GROUP BY p, l", REGULAR, True),
        ("at(p, l) THEN at(q, m) GROUP BY p", REGULAR, True),
        ("at(p, l) THEN at(p, m) GROUP BY l", EXTENDED, True),
        ("at(p, l) THEN at(q, l) WHERE p <> q GROUP BY p, l, q", REGULAR, True),
        ("at(p, l) THEN at(q, l) WHERE p <> q GROUP BY l, q", REGULAR, False),
        ("at(p, l) THEN at(q, l) WHERE p <> q GROUP BY p, q", UNSAFE, False),
        ("at(p, l) THEN at(p, m) WHERE l <> m GROUP BY p, m", EXTENDED, False),
        ("seen(p, l) THEN seen(p, m) THEN at(q, c) GROUP BY q", SAFE, False),
        ("seen(p, l) THEN seen(p, m) THEN at(q, c) GROUP BY p", REGULAR, True),
    ],
)
def test_the_class_of_a_grouped_query_is_that_of_one_binding(pattern: str, classification: str, streams: bool) -> None:
    analysis = analysis_of(pattern)
    assert (analysis.classification, analysis.by_automaton) == (classification, streams)
    assert any("is a query of its own" in why for why in analysis.why)


def test_with_a_single_goal_every_key_is_a_chain() -> None:
    analysis = analysis_of("carries(_, 'lamp', 'a')")
    assert analysis.classification == REGULAR
    assert len(analysis.chain) == 1
    assert analysis.chain_positions == ((0,),)
    named = analysis_of("carries(p, d, 'a') GROUP BY d, p")
    assert named.single
    assert named.group_by == (("d", 1), ("p", 0))


@pytest.mark.parametrize(("method", "readings"), [("SMOOTH", "all readings"), ("FILTER", "readings so far")])
def test_a_plan_says_what_the_model_of_an_inferred_stream_may_have(method: str, readings: str) -> None:
    declarations = (
        "CREATE STREAM reads KEY (who STRING) VALUE (reader STRING) TIME t INTEGER;"
        "CREATE STREAM here KEY (who STRING) VALUE (l STRING) TIME t INTEGER "
        f"INFERRED FROM reads USING HMM 'rooms/' METHOD {method};"
    )
    explained = plan(analyse(bound_query(f"{declarations} CREATE QUERY q AS PATTERN here(p, 'a') GROUP BY p;", "q")))
    (model,) = [step.does for step in explained.steps if step.id == "model"]
    assert model.startswith("rooms/; if it has stages.csv, stays go through stages")
    assert model.endswith(f"have its exponent for {readings}")


def test_a_plan_is_printed_as_text_and_as_html() -> None:
    explained = plan(
        analyse(bound_query(f"{DECLARATIONS} CREATE QUERY q AS PATTERN at(p, 'a') THEN at(p, '<b>') GROUP BY p;", "q"))
    )
    assert str(explained).splitlines()[0] == "q: PATTERN"
    assert "extended regular" in str(explained)
    assert "rows are routed by p" in str(explained)
    assert "<th>class</th><td>extended regular</td>" in explained._repr_html_()
