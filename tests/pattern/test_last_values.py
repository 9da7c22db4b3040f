"""Queries whose conditions join goals but need only the last values: on a stream, compared with all worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import Case, Draw
from tests.drawn import examples
from tests.local import bound_query
from tests.pattern.local import LocalRun
from tests.pattern.strategies import EXTENDED, pattern_cases
from tests.pattern.test_against_worlds import assert_same, expected, job_of
from tests.splits import splits

from anabranch.pattern.analysis import analyse
from anabranch.pattern.classes import UNSAFE
from anabranch.pattern.explain import plan

#: {0}, {1} and {2} are goals for any event of one key, with the values v0, v1 and v2.
QUERIES = (
    "{0} THEN {1} WHERE v0 <> v1",
    "{0} THEN {1} THEN {2} WHERE v0 = v2",
    "{0}[v0 IS NOT NULL] THEN {1} WHERE v0 <> v1",
    "{0} THEN {1} THEN {2} WHERE v0 <> v1 AND v1 <> v2",
    "{0} THEN {1} THEN {2}+<{keys} | v2 = v2> WHERE v0 <> v1",
)


@st.composite
def cases(draw: Draw) -> Case:
    """The streams of a case with a query that keeps the last values."""
    case = draw(pattern_cases(classes=[EXTENDED], models=("INDEPENDENT", "MARKOV"), most_streams=1, most_worlds=300))
    (stream,) = bound_query(case.workbook, case.query).streams
    assume(stream.values)
    keys = [f"k{position}" for position in range(len(stream.keys))]
    goals = [
        f"{stream.name}({', '.join([*keys, *(f'v{goal}' if n == 0 else '_' for n in range(len(stream.values)))])})"
        for goal in range(3)
    ]
    text = draw(st.sampled_from(QUERIES)).format(*goals, keys=", ".join(keys))
    group = f" GROUP BY {draw(st.sampled_from(keys))}" if draw(st.booleans()) else ""
    declarations = case.workbook[: case.workbook.index("CREATE QUERY")]
    return replace(case, workbook=f"{declarations}CREATE QUERY q AS PATTERN {text}{group};")


@examples(40)
@given(st.data())
def test_any_split_into_micro_batches_equals_worlds(data: st.DataObject) -> None:
    case = data.draw(cases())
    job = job_of(case, live=True)
    run = LocalRun(job, n_buckets=2)
    for part in data.draw(splits(case.rows)):
        run.step(part)
    run.step({}, end=True)
    assert_same(run.answers(), expected(case), 0.0)


STREAMS = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL {model};
CREATE STREAM door KEY (door STRING) VALUE (state STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY q AS PATTERN {pattern};
"""


def analysis_of(pattern: str, model: str = "MARKOV") -> Any:
    return analyse(bound_query(STREAMS.format(model=model, pattern=pattern), "q"))


@pytest.mark.parametrize(
    ("pattern", "model", "streams"),
    [
        ("at(p, a) THEN at(p, b) WHERE a <> b GROUP BY p", "MARKOV", True),
        ("at(p, a) THEN at(p, b) WHERE a <> b", "INDEPENDENT", True),
        ("at(p, a)[a <> 'x'] THEN at(p, b)[b <> 'x'] WHERE a <> b", "MARKOV", True),
        ("at(p, a) THEN at(p, b)[b <> 'x'] WHERE a <> b", "MARKOV", False),
        ("at(p, a) THEN at(p, 'x') THEN at(p, b) WHERE a <> b", "MARKOV", False),
        ("at(p, a) THEN at(p, b)+<p | a <> b>", "MARKOV", False),
        ("at(p, a) THEN at(p, b) WHERE a <> b", "CERTAIN", False),
        ("at(p, a) THEN at(q, b) WHERE a <> b", "MARKOV", False),
        ("at(p, a) THEN at(p, a)", "MARKOV", False),
        ("at(p, a) THEN door(_, b) WHERE a <> b", "INDEPENDENT", False),
    ],
)
def test_which_queries_need_only_the_last_values(pattern: str, model: str, streams: bool) -> None:
    analysis = analysis_of(pattern, model)
    assert analysis.classification == UNSAFE
    assert analysis.last_values == analysis.by_automaton == streams
    assert plan(analysis).streams == "yes"
