"""The oracle of PATTERN on small examples and closed forms, and the strategies of random cases."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed, references
from anabranch.catalog import Relation
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.pattern.query import BoundGoal, BoundPattern
from tests.cases import Case
from tests.drawn import examples
from tests.oracles.conditions import evaluate
from tests.oracles.pattern import TooManyWorlds, ask, at_least, bind_query
from tests.pattern.strategies import CLASSES, EXTENDED, GENERAL, MODELS, REGULAR, TIME, pattern_cases
from tests.splits import disordered_splits, splits

CERTAIN = "CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER;"
INDEPENDENT = "CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;"
MARKOV = "CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL MARKOV;"
HALL = "CREATE RELATION hall (v STRING);"


def path_rows(**paths: str) -> list[dict[str, Any]]:
    """Certain rows: in `path_rows(k="a-b")`, key k has value a at time 1, no event at 2, value b at 3."""
    return [
        {"k": key, "v": value, "t": t}
        for key, path in paths.items()
        for t, value in enumerate(path, start=1)
        if value != "-"
    ]


def certain_answers(query: str, rows: list[dict[str, Any]], hall: str = "") -> list[Any]:
    """The sorted answers of a query over a CERTAIN stream r."""
    answers = ask(f"{CERTAIN} {HALL} CREATE QUERY q AS {query};", "q", {"r": rows}, {"hall": {(v,) for v in hall}})
    assert set(answers.values()) <= {1.0}
    return sorted(answers)


def answer_probabilities(declaration: str, query: str, rows: list[dict[str, Any]]) -> dict[Any, float]:
    """The probabilities of the answers of a query over an uncertain stream r."""
    return ask(f"{declaration} CREATE QUERY q AS {query};", "q", {"r": rows})


# ---------------------------------------------------------------- one certain world


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        # The example of the language reference, and the three positions of a condition.
        ("PATTERN r(_, 'a') THEN r(_, 'b')", [3]),
        ("PATTERN r(_, 'a') THEN r(_, y) WHERE y = 'b'", []),
        ("PATTERN r(_, 'a') THEN r(_, y)[y = 'b']", [3]),
        ("PATTERN r(_, 'a') THEN r(_, y) WHERE y = 'c'", [2]),
        ("PATTERN (r(_, 'a') THEN r(_, y) WHERE y = 'c') THEN r(_, z)", [3]),
        ("PATTERN (r(_, x) WHERE x = 'a') THEN r(_, y)", [2]),
        ("PATTERN r(_, x)", [1, 2, 3]),
        ("PATTERN r(_, x) THEN r(_, y)", [2, 3]),
        ("PATTERN r(_, x) THEN r(_, x)", []),
        ("PATTERN r(k, k)", []),
    ],
)
def test_one_key_with_values_a_c_b(query: str, answers: list[int]) -> None:
    assert certain_answers(query, path_rows(k="acb")) == answers


def test_a_successor_agrees_before_it_is_chosen() -> None:
    rows = path_rows(k="a-b", m="-c-")
    assert certain_answers("PATTERN r(p, 'a') THEN r(p, y)", rows) == [3]
    assert certain_answers("PATTERN r(p, 'a') THEN r(q, y)", rows) == [2]
    assert certain_answers("PATTERN r(p, 'a') THEN r(q, y) WHERE p = q", rows) == []


def test_values_join_as_keys_do() -> None:
    assert certain_answers("PATTERN r(_, x) THEN r(_, 'b') THEN r(_, x)", path_rows(k="abca")) == [4]
    assert certain_answers("PATTERN r(_, x) THEN r(_, 'b') THEN r(_, y) WHERE x = y", path_rows(k="abca")) == []


def test_all_events_of_the_earliest_time_are_successors() -> None:
    rows = path_rows(k="a", m="-b", n="-c-b")
    assert certain_answers("PATTERN r(_, 'a') THEN r(_, y) WHERE y = 'b'", rows) == [2]
    assert certain_answers("PATTERN r(_, 'a') THEN r(_, y) WHERE y = 'c'", rows) == [2]


def test_events_of_one_time_do_not_follow_each_other() -> None:
    rows = [{"k": "k", "v": value, "t": 1} for value in "ab"]
    assert certain_answers("PATTERN r(_, 'a') THEN r(_, 'b')", rows) == []


def test_several_certain_rows_of_one_key_and_time_are_several_events() -> None:
    rows = [{"k": "k", "v": value, "t": t} for value, t in (("a", 1), ("b", 2), ("c", 2))]
    assert certain_answers("PATTERN r(p, 'a') THEN r(p, y) WHERE y = 'b'", rows) == [2]
    assert certain_answers("PATTERN r(p, 'a') THEN r(p, y) WHERE y = 'c'", rows) == [2]


def test_each_binding_is_a_group() -> None:
    rows = path_rows(k="ab", m="-ab")
    assert certain_answers("PATTERN r(p, 'a') THEN r(p, 'b') GROUP BY p", rows) == [(2, "k"), (3, "m")]


# ---------------------------------------------------------------- Kleene


@pytest.mark.parametrize(
    ("query", "path", "answers"),
    [
        # A condition ends the run when it fails; a filter skips the events that fail it.
        ("PATTERN r(p, 'a') THEN r(p, l)+<p | hall(l)>", "ahxh", [2]),
        ("PATTERN r(p, 'a') THEN r(p, l)[hall(l)]+<p | TRUE>", "ahxh", [2, 4]),
        ("PATTERN r(_, 'a') THEN r(_, l)+<| hall(l)>", "ahhx", [2, 3]),
        ("PATTERN r(p, 'a') THEN r(p, l)+<p | hall(l)> THEN r(p, m) WHERE NOT hall(m)", "ahhxh", [4]),
        ("PATTERN r(p, 'a') THEN r(p, l)+<p | hall(l)> THEN r(p, m) WHERE NOT hall(m)", "ax", []),
        # A Kleene as the first goal: any match begins a run.
        ("PATTERN r(_, l)+", "ab-c", [1, 2, 4]),
        ("PATTERN r(_, l)+<| hall(l)>", "xhhx", [2, 3]),
        ("PATTERN r(_, 'a')+ THEN r(_, 'b')", "aacb", [4]),
        ("PATTERN r(_, 'a')+ THEN r(_, y) WHERE y = 'b'", "aacb", []),
        # Unshared variables are new in each unfolding, shared ones are not.
        ("PATTERN r(_, 'a') THEN r(_, l)+<l | TRUE> THEN r(_, 'e')", "abcde", [5]),
        ("PATTERN r(_, l)+<l | TRUE> WHERE l = 'b'", "abab", [2, 4]),
        ("PATTERN r(_, 'a') THEN r(_, l)+<l | TRUE> THEN r(_, l)", "abcbc", [4]),
        # The condition may use variables bound earlier.
        ("PATTERN r(_, m) THEN r(_, l)+<| l > m> THEN r(_, 'a')", "bcda", [4]),
        ("PATTERN r(_, m) THEN r(_, l)+<| l > m> THEN r(_, 'a')", "bcaa", [3]),
        ("PATTERN r(_, m) THEN r(_, l)+<| l > m> THEN r(_, 'a')", "dcaa", []),
    ],
)
def test_kleene_of_one_key(query: str, path: str, answers: list[int]) -> None:
    assert certain_answers(query, path_rows(k=path), hall="h") == answers


@pytest.mark.parametrize(
    ("query", "path", "answers"),
    [
        # NOT: strictly between the two, and the successor is chosen as without it.
        ("PATTERN r(_, 'a') THEN NOT r(_, 'c') THEN r(_, 'b')", "ab", [2]),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'c') THEN r(_, 'b')", "acb", []),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'c') THEN r(_, 'b')", "acbab", [5]),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'c') THEN r(_, 'b')", "acab", [4]),
        ("PATTERN r(_, 'a') THEN NOT r(_, _) THEN r(_, 'b')", "a-b", [3]),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'a') THEN r(_, 'b')", "aab", [3]),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'b') THEN r(_, 'b')", "acb", [3]),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'c') THEN r(_, 'b')+", "abcb", [2, 4]),
        ("PATTERN r(_, 'a')+ THEN NOT r(_, 'c') THEN r(_, 'b')", "aacb", []),
        ("PATTERN r(_, 'a') THEN NOT r(_, 'c') THEN NOT r(_, 'd') THEN r(_, 'b')", "adb", []),
        ("PATTERN r(_, x) THEN NOT r(_, x) THEN r(_, 'b')", "acab", [4]),
        # OR: events of either.
        ("PATTERN (r(_, 'a') OR r(_, 'c')) THEN r(_, 'b')", "cb", [2]),
        ("PATTERN r(_, 'a') THEN (r(_, 'b') OR r(_, 'c'))", "acb", [2]),
        ("PATTERN r(_, 'a') THEN (r(_, 'b') OR r(_, 'c'))+", "acbdb", [2, 3, 5]),
        ("PATTERN r(_, 'a') THEN NOT (r(_, 'b') OR r(_, 'c')) THEN r(_, 'd')", "acd", []),
        # WITHIN: from the first event, the first one of a +, to the last.
        ("PATTERN r(_, 'a') THEN r(_, 'b') WITHIN 2", "a-b", [3]),
        ("PATTERN r(_, 'a') THEN r(_, 'b') WITHIN 2", "a--b", []),
        ("PATTERN r(_, 'a') THEN r(_, 'b') WITHIN 2", "aa-b", [4]),
        ("PATTERN r(_, 'a')+ WITHIN 1", "aaa", [1, 2, 3]),
        ("PATTERN r(_, 'a') THEN r(_, 'b')+ WITHIN 2", "abbb", [2, 3]),
    ],
)
def test_not_or_and_within(query: str, path: str, answers: list[int]) -> None:
    assert certain_answers(query, path_rows(k=path)) == answers


def test_events_at_the_instants_of_the_pair_do_not_void_it() -> None:
    rows = path_rows(k="a-b", m="c-c")
    assert certain_answers("PATTERN r('k', 'a') THEN NOT r(_, 'c') THEN r('k', 'b')", rows) == [3]
    assert certain_answers("PATTERN r('k', 'a') THEN NOT r(_, 'c') THEN r('k', 'b')", [*rows, *path_rows(n="-c")]) == []


def test_an_event_can_match_both_alternatives_with_different_values() -> None:
    query = "PATTERN (r(x, y) OR r(y, x)) THEN r('k', x)"
    assert certain_answers(f"{query} GROUP BY x", [*path_rows(m="v"), *path_rows(k="-m")]) == [(2, "m")]
    assert certain_answers(f"{query} GROUP BY x", [*path_rows(m="v"), *path_rows(k="-v")]) == [(2, "v")]


def test_unfoldings_share_a_key_only_if_it_is_declared() -> None:
    rows = path_rows(k="a-h", m="-x")
    assert certain_answers("PATTERN r(p, 'a') THEN r(p, l)+<p | hall(l)>", rows, hall="h") == [3]
    assert certain_answers("PATTERN r('k', 'a') THEN r(_, l)+<| hall(l)>", rows, hall="h") == []


def test_a_later_unfolding_follows_the_one_before_it() -> None:
    # The run continues from k at 2 to m at 3; k at 4 ends it.
    rows = path_rows(k="ah-x", m="--h-h")
    assert certain_answers("PATTERN r('k', 'a') THEN r(q, l)+<| hall(l)>", rows, hall="h") == [2, 3]
    assert certain_answers("PATTERN r('k', 'a') THEN r(q, l)+<q | hall(l)>", rows, hall="h") == [2]


# ---------------------------------------------------------------- closed forms


def independent(key: str, value: str | None, *probabilities: float) -> list[dict[str, Any]]:
    """The same alternative at 1, 2, ... with these probabilities."""
    return [{"k": key, "v": value, "t": t, "p": p} for t, p in enumerate(probabilities, start=1)]


def test_one_goal_has_the_probability_of_its_row() -> None:
    rows = independent("k", "a", 0.3, 0.0, 1.0)
    assert answer_probabilities(INDEPENDENT, "PATTERN r(_, 'a')", rows) == pytest.approx({1: 0.3, 3: 1.0})


def test_an_event_and_one_before_it() -> None:
    p = 0.3
    answers = answer_probabilities(INDEPENDENT, "PATTERN r('k', 'a') THEN r('k', 'a')", independent("k", "a", *[p] * 6))
    assert answers == pytest.approx({t: p * (1 - (1 - p) ** (t - 1)) for t in range(2, 7)}, abs=1e-12)


def test_keys_are_independent() -> None:
    rows = [row for key in "abcdef" for row in independent(key, "v", 0.5, 0.2)]
    answers = answer_probabilities(INDEPENDENT, "PATTERN r(p, _) THEN r(p, _)", rows)
    assert answers == pytest.approx({2: 1 - (1 - 0.5 * 0.2) ** 6}, abs=1e-12)


def test_each_group_has_its_probability() -> None:
    rows = independent("k", "a", 0.5, 0.5) + independent("m", "a", 0.1, 1.0)
    answers = answer_probabilities(INDEPENDENT, "PATTERN r(p, 'a') THEN r(p, 'a') GROUP BY p", rows)
    assert answers == pytest.approx({(2, "k"): 0.25, (2, "m"): 0.1})


def test_a_selection_tests_the_immediate_successor() -> None:
    """At t: b now, and the last event before t was a."""
    a, b = 0.2, 0.5
    rows = independent("k", "a", *[a] * 5) + independent("k", "b", *[b] * 5)
    answers = answer_probabilities(INDEPENDENT, "PATTERN r('k', x) THEN r('k', y) WHERE x = 'a' AND y = 'b'", rows)
    last_was_a = {t: sum(a * (1 - a - b) ** gap for gap in range(t - 1)) for t in range(2, 6)}
    assert answers == pytest.approx({t: b * p for t, p in last_was_a.items()}, abs=1e-12)


def test_a_two_state_chain() -> None:
    """P(a at t) of a chain that stays with probability s, from a."""
    stay, steps = 0.8, 8
    rows = [{"k": "k", "v": "a", "prev_v": None, "t": 1, "p": 1.0}]
    for t in range(2, steps + 1):
        for before, after in ("aa", "ab", "ba", "bb"):
            p = stay if before == after else 1 - stay
            rows.append({"k": "k", "v": after, "prev_v": before, "t": t, "p": p})
    answers = answer_probabilities(MARKOV, "PATTERN r('k', 'a')", rows)
    assert answers == pytest.approx({t: (1 + (2 * stay - 1) ** (t - 1)) / 2 for t in range(1, steps + 1)})
    # The first a after some b comes immediately after a b, because the key always has one of the two values.
    from_b_to_a = {t: (1 - answers[t - 1]) * (1 - stay) for t in range(3, steps + 1)}
    assert answer_probabilities(MARKOV, "PATTERN r('k', 'b')+ THEN r('k', 'a')", rows) == pytest.approx(from_b_to_a)


# ---------------------------------------------------------------- the meaning of rows


def test_duplicates_are_one_row_and_rows_with_different_p_are_added() -> None:
    duplicates = independent("k", "a", 0.25) * 2
    assert answer_probabilities(INDEPENDENT, "PATTERN r(_, 'a')", duplicates) == {1: 0.25}
    different_p = independent("k", "a", 0.25) + independent("k", "a", 0.5)
    assert answer_probabilities(INDEPENDENT, "PATTERN r(_, 'a')", different_p) == {1: 0.75}


def test_alternatives_of_one_key_exclude_each_other() -> None:
    rows = independent("k", "a", 0.5) + independent("k", "b", 0.5)
    assert answer_probabilities(INDEPENDENT, "PATTERN r(_, x)", rows) == {1: 1.0}


def test_the_value_nothing_is_no_event() -> None:
    rows = independent("k", None, 0.25, 1.0) + independent("k", "a", 0.5)
    assert answer_probabilities(INDEPENDENT, "PATTERN r(_, _)", rows) == {1: 0.5}
    assert certain_answers("PATTERN r(_, _)", [{"k": "k", "v": None, "t": 1}]) == []


def test_a_stream_without_values_has_events() -> None:
    declaration = "CREATE STREAM r KEY (k STRING) TIME t INTEGER MODEL INDEPENDENT;"
    rows = [{"k": "k", "t": t, "p": 0.5} for t in (1, 2)]
    assert answer_probabilities(declaration, "PATTERN r(x) THEN r(x)", rows) == {2: 0.25}


def test_a_value_with_some_null_columns_is_a_value() -> None:
    declaration = "CREATE STREAM r KEY (k STRING) VALUE (v STRING, w STRING) TIME t INTEGER;"
    rows = [{"k": "k", "v": "a", "w": None, "t": t} for t in (1, 2)]
    assert answer_probabilities(declaration, "PATTERN r(_, 'a', _)", rows) == {1: 1.0, 2: 1.0}
    assert answer_probabilities(declaration, "PATTERN r(_, x, y) WHERE y IS NULL", rows) == {1: 1.0, 2: 1.0}
    assert answer_probabilities(declaration, "PATTERN r(_, x, x)", rows) == {}
    assert answer_probabilities(declaration, "PATTERN r(_, x, y) THEN r(_, _, y)", rows) == {}


def markov(*rows: tuple[int, str | None, str | None, float]) -> list[dict[str, Any]]:
    """Rows of key k: time, previous value, value, probability."""
    return [{"k": "k", "t": t, "prev_v": before, "v": value, "p": p} for t, before, value, p in rows]


def test_a_markov_key_keeps_its_value_at_instants_of_other_keys() -> None:
    other_key = [{**row, "k": "m"} for row in markov((2, None, "a", 1.0))]
    rows = markov((1, None, "a", 0.5), (3, "a", "b", 1.0)) + other_key
    assert answer_probabilities(MARKOV, "PATTERN r('k', 'b')", rows) == {3: 0.5}


def test_a_markov_key_goes_to_nothing_from_a_value_without_rows() -> None:
    rows = markov((1, None, "a", 0.5), (1, None, "b", 0.5), (2, "a", "c", 0.5), (3, None, "d", 1.0), (3, "c", "e", 1.0))
    assert answer_probabilities(MARKOV, "PATTERN r('k', 'd')", rows) == {3: 0.75}
    assert answer_probabilities(MARKOV, "PATTERN r('k', 'e')", rows) == {3: 0.25}


def test_an_instant_whose_rows_have_probability_0_is_an_instant() -> None:
    rows = markov((1, None, "a", 1.0), (2, "a", "a", 0.0), (3, "a", "b", 1.0))
    assert answer_probabilities(MARKOV, "PATTERN r('k', 'b')", rows) == {}


def test_rows_for_an_impossible_previous_value_change_nothing() -> None:
    rows = markov((1, "b", "b", 1.0), (1, None, "a", 1.0), (2, "b", "b", 1.0), (2, "a", "a", 1.0))
    assert answer_probabilities(MARKOV, "PATTERN r('k', x) WHERE x = 'b'", rows) == {}


def test_a_query_can_use_streams_of_different_models() -> None:
    declarations = f"{MARKOV} CREATE STREAM s KEY (k STRING) TIME t INTEGER MODEL INDEPENDENT;"
    rows = {
        "r": markov((1, None, "a", 0.5), (2, "a", "a", 0.5)),
        "s": [{"k": "k", "t": t, "p": 0.5} for t in (2, 3)],
    }
    answers = ask(f"{declarations} CREATE QUERY q AS PATTERN r(p, 'a') THEN s(p);", "q", rows)
    # At 3: s at 3 after r at 2, or after r at 1 and not s at 2.
    assert answers == pytest.approx({2: 0.5 * 0.5, 3: 0.5 * (0.25 + 0.25 * 0.5)})


def test_too_many_worlds_and_probabilities_above_1_are_errors() -> None:
    with pytest.raises(TooManyWorlds):
        answer_probabilities(INDEPENDENT, "PATTERN r(_, _)", independent("k", "a", *[0.5] * 15))
    with pytest.raises(ValueError, match=r"sum to 1\.2"):
        answer_probabilities(INDEPENDENT, "PATTERN r(_, _)", independent("k", "a", 0.6) + independent("k", "b", 0.6))


def test_a_threshold_keeps_answers_of_at_least_this_probability() -> None:
    assert at_least({1: 0.2, 2: 0.1, 3: 0.3}, 0.2) == {1: 0.2, 3: 0.3}
    assert at_least({1: 0.0, 2: 0.1}, 0) == {2: 0.1}


# ---------------------------------------------------------------- conditions


def op(name: str, *arguments: Any) -> Operation:
    """An operation on constants, variables (`"x"`) and trees."""
    return Operation(name, tuple(map(_tree, arguments)), Type.UNKNOWN)


def _tree(argument: Any) -> Any:
    if isinstance(argument, str):
        return Reference(None, argument, Type.UNKNOWN)
    if argument is None or isinstance(argument, bool | int | float):
        return Constant(argument, Type.UNKNOWN)
    return argument


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (op("/", 7, 2), 3.5),
        (op("/", 1, 0), None),
        (op("/", 0.0, 0.0), None),
        (op("%", 7, 3), 1),
        (op("%", -7, 3), -1),
        (op("%", 7, -3), 1),
        (op("%", -7.5, 2), -1.5),
        (op("%", 7, 0), None),
        (op("+", "one", None), None),
        (op("negate", "one"), -1),
        (op("abs", -3), 3),
        (op("=", None, None), None),
        (op("<>", "one", None), None),
        (op("<", "one", 2), True),
        (op("is_null", None), True),
        (op("is_null", "one"), False),
        (op("and", None, False), False),
        (op("and", None, True), None),
        (op("and", True, True, True), True),
        (op("or", None, True), True),
        (op("or", None, False), None),
        (op("or", False, False), False),
        (op("not", None), None),
        (op("not", op("=", "one", 2)), True),
    ],
)
def test_the_value_of_an_operation(tree: Operation, value: Any) -> None:
    got = evaluate(tree, {"one": 1}, {})
    assert got == value
    assert type(got) is type(value)


def test_a_relation_atom_with_a_null_argument_is_null() -> None:
    relation = Relation("office", (), nodes.CreateRelation("office", ()))
    rows = {"office": {("joe", 1)}}

    def office(person: Any) -> Any:
        tree = Member(relation, (Reference(None, "p", Type.STRING), Constant(1, Type.INTEGER)))
        return evaluate(tree, {"p": person}, rows)

    assert (office("joe"), office("sue"), office(None)) == (True, False, None)


# ---------------------------------------------------------------- the strategies


def oracle_answers(case: Case) -> dict[Any, float]:
    """The answers of the oracle to a case."""
    return ask(case.workbook, case.query, case.rows, case.relations)


@examples(40)
@given(case=pattern_cases())
def test_every_case_is_valid(case: Case) -> None:
    """Each case parses, binds without a finding, and its answers have probabilities."""
    answers = oracle_answers(case)
    assert all(0 < p < 1 + 1e-9 for p in answers.values())
    times = {row[TIME] for rows in case.rows.values() for row in rows}
    assert {answer[0] if isinstance(answer, tuple) else answer for answer in answers} <= times


@pytest.mark.parametrize("class_", CLASSES)
@pytest.mark.parametrize("model", MODELS)
def test_cases_of_one_class_and_model(class_: str, model: str) -> None:
    """The parameters restrict the cases."""

    @examples(15)
    @given(case=pattern_cases(classes=[class_], models=[model]))
    def check(case: Case) -> None:
        query = bind_query(case.workbook, case.query)
        assert {stream.model.value for stream in query.streams} == {model}
        assert set(case.rows) == {stream.name for stream in query.streams}
        if class_ != GENERAL:
            assert all(is_local(goal, condition) for goal in query.goals for condition in conditions_of(goal))
        if class_ in (REGULAR, EXTENDED):
            assert shared_variables(query) <= independent_variables(query)
        if class_ == REGULAR:
            assert not shared_variables(query)

    check()


def conditions_of(goal: BoundGoal) -> list[Typed]:
    """Every condition of this goal."""
    return [*goal.selections, *(part for part in (goal.filter, goal.step_condition) if part is not None)]


def is_local(goal: BoundGoal, condition: Typed) -> bool:
    """Whether the goal has all the variables of the condition."""
    return {name for _, name in references(condition)} <= goal.variables


def shared_variables(query: BoundPattern) -> set[str]:
    """The variables that more than one goal has, or that a Kleene plus shares."""
    counts = Counter(name for goal in query.goals for name in goal.variables)
    return {name for name, count in counts.items() if count > 1}.union(*(goal.shared for goal in query.goals))


def independent_variables(query: BoundPattern) -> set[str]:
    """The variables that are in the same key position of all goals."""
    positions = zip(*(goal.key_terms for goal in query.goals), strict=False)
    return {terms[0].name for terms in positions if len(set(terms)) == 1 and isinstance(terms[0], nodes.Variable)}


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """The rows in a fixed order, to compare two lists."""
    return sorted(map(repr, rows))


def late_rows(batches: list[dict[str, list[dict[str, Any]]]], delay: float) -> list[dict[str, Any]]:
    """The rows that arrive below the watermark of the earlier batches."""
    late = []
    newest = dict.fromkeys(batches[0], -math.inf)
    for batch in batches:
        watermark = min(newest.values()) - delay
        late += [row for rows in batch.values() for row in rows if row[TIME] < watermark]
        for name, rows in batch.items():
            newest[name] = max([newest[name], *(row[TIME] for row in rows)])
    return late


@examples(25)
@given(data=st.data(), delay=st.sampled_from([0, 1, 2.5]))
def test_splits_keep_every_row_and_make_none_late(data: st.DataObject, delay: float) -> None:
    case = data.draw(pattern_cases(watermark=delay))
    for batches in (data.draw(splits(case.rows)), data.draw(disordered_splits(case.rows, delay))):
        all_rows = {name: [row for batch in batches for row in batch[name]] for name in case.rows}
        assert {name: in_order(rows) for name, rows in all_rows.items()} == {
            name: in_order(rows) for name, rows in case.rows.items()
        }
        assert not late_rows(batches, delay)
