"""PER d and PER EPISODE of combinations, compared with the enumeration of all worlds, for any split."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.drawn import examples
from tests.local import local_job, prepared_query
from tests.oracles import pattern_combination as oracle
from tests.pattern.strategies import EXTENDED, REGULAR, combination_cases
from tests.pattern.test_per import assert_same, episodes, run_parts, run_whole, windows
from tests.splits import splits

STREAMS = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL {model};
CREATE QUERY a AS PATTERN r(p, 'a') THEN r(p, 'b') GROUP BY p;
CREATE QUERY b AS PATTERN r(p, 'b') GROUP BY p;
CREATE QUERY c AS PATTERN r(p, x) THEN r(p, x) GROUP BY p;
CREATE QUERY d AS PATTERN r(p, 'a') THEN r(p, 'b');
"""
FORMULAS = ("a AND b", "a OR c", "a AND NOT b", "(a OR b) AND NOT c")


@examples(20)
@given(st.data())
def test_rows_equal_worlds_for_any_split(data: st.DataObject) -> None:
    case = data.draw(combination_cases(classes=(REGULAR, EXTENDED)))
    clause = data.draw(st.one_of(windows(), episodes()))
    workbook = f"{case.workbook} CREATE QUERY per AS {data.draw(st.sampled_from(FORMULAS))} {clause};"
    assume(prepared_query(workbook, "per").plan.refused is None)
    relations = {name: set(rows) for name, rows in case.relations.items()}
    want = oracle.ask_per(workbook, "per", case.rows, relations)
    for live in (False, True):
        got = run_whole(local_job(workbook, "per", case.relations, live), case.rows, data.draw(st.integers(1, 3)))
        assert_same(got, want, 0.0)
    assert_same(
        run_parts(local_job(workbook, "per", case.relations, live=True), data.draw(splits(case.rows))), want, 0.0
    )


def refusal(query: str, model: str = "INDEPENDENT") -> str:
    refused = prepared_query(f"{STREAMS.format(model=model)}CREATE QUERY q AS {query};", "q").plan.refused
    return "" if refused is None else refused.message


@pytest.mark.parametrize("form", ["PER 3", "PER EPISODE"])
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("a AND b {}", ""),
        ("a GIVEN b {}", "its GIVEN differs from instant to instant"),
        ("NOT a {}", "it is also true at instants at which no operand has an event"),
        ("a AND c {}", "it is unsafe, or may be sampled"),
        ("a AND b {} METHOD SAMPLING", "it is extended regular, or may be sampled"),
        ("d OR NOT NOT d {}", "a group has several keys, whose counts cannot be added"),
    ],
)
def test_what_one_automaton_cannot_count_is_refused(query: str, reason: str, form: str) -> None:
    written = form.replace("PER 3", "PER d") if reason else ""
    expected = f"this combination of queries does not take {written}: {reason}" if reason else ""
    assert refusal(query.format(form)) == expected


def test_explain_says_that_windows_are_exact() -> None:
    plan = prepared_query(f"{STREAMS.format(model='MARKOV')}CREATE QUERY q AS a AND NOT b PER 5;", "q").plan
    assert (plan.method, plan.streams) == ("exact", "yes")
    assert "all of it times 2 for the counter of PER" in plan.cost
