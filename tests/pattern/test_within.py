"""WITHIN: batch and streams compared with the enumeration of all worlds, its edges, and its limits."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.drawn import examples
from tests.local import local_job
from tests.pattern.local import LocalRun, run_whole
from tests.pattern.strategies import CLASSES, pattern_cases
from tests.pattern.test_against_worlds import assert_worlds, assert_worlds_of_parts
from tests.splits import splits

from anabranch.columns.times import TimeKind
from anabranch.errors import TooLarge
from anabranch.pattern import archive, automaton, joint
from anabranch.pattern.within import reaches

WALK = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t {kind} MODEL {model};
CREATE QUERY q AS PATTERN r(p, 'a') THEN r(p, 'b') WITHIN {within} GROUP BY p;
"""


@pytest.mark.usefixtures("nothing_is_too_large")
@given(pattern_cases(classes=CLASSES, within=True), st.integers(1, 3))
def test_batch_equals_worlds(case: Case, n_buckets: int) -> None:
    assert_worlds(case, n_buckets)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(20)
@given(pattern_cases(classes=CLASSES, any_group=True, within=True))
def test_groups_by_any_variables_equal_worlds(case: Case) -> None:
    assert_worlds(case)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(40)
@given(st.data())
def test_any_split_into_micro_batches_equals_worlds(data: st.DataObject) -> None:
    case = data.draw(pattern_cases(classes=CLASSES, within=True, any_group=data.draw(st.booleans()), most_worlds=300))
    assert_worlds_of_parts(case, data.draw(splits(case.rows)))


@examples(20)
@given(pattern_cases(classes=CLASSES, within=True))
def test_the_joint_state_equals_worlds(case: Case) -> None:
    """The automaton of all chains is too large, so each chain is answered by the sets that it can reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "MAX_MOVES", 1)
        patch.setattr(archive, "MOST_WORK", 10**9)
        patch.setattr(joint, "MOST_WORK", 10**9)
        assert_worlds(case)


@pytest.mark.parametrize("model", ["INDEPENDENT", "MARKOV"])
def test_every_chain_has_its_own_clock(model: str) -> None:
    """Two keys in one bucket, whose first events are too old at different instants."""
    events = {"x": ((1, "a"), (2, "b"), (5, "a"), (6, "b"), (8, "b")), "y": ((1, "a"), (4, "b"), (6, "a"), (7, "b"))}
    before = [None, "a", "b"] if model == "MARKOV" else [None]
    rows = [
        {"k": key, "v": value, "prev_v": previous, "t": t, "p": p}
        for (key, own), p in zip(events.items(), (0.5, 0.7), strict=True)
        for t, value in own
        for previous in before
    ]
    assert_worlds(Case(WALK.format(kind="INTEGER", model=model, within=2), "q", {"r": rows}, {}), n_buckets=1)


def test_sampled_worlds_drop_what_began_too_long_ago() -> None:
    workbook = WALK.format(kind="INTEGER", model="INDEPENDENT", within=2).replace("GROUP", "METHOD SAMPLING GROUP")
    rows = [{"k": "x", "v": "a", "t": 1, "p": 0.9}, {"k": "x", "v": "a", "t": 3, "p": 0.5}]
    answers = run_whole(local_job(workbook, "q"), {"r": [*rows, {"k": "x", "v": "b", "t": 4, "p": 1.0}]})
    assert answers == pytest.approx({(4, "x"): 0.5}, abs=0.02)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("kind", "times", "within", "answer"),
    [
        ("DOUBLE", (0.1, 0.4), "0.3", True),
        ("DOUBLE", (1.1, 1.4), "0.3", True),
        ("DOUBLE", (1.1, 1.4000001), "0.3", False),
        ("INTEGER", (1, 3), "2", True),
        ("INTEGER", (1, 3), "1.9", False),
        ("TIMESTAMP", (0.0, 8.2), "8.2", True),
        ("TIMESTAMP", (0.0, 60.0), "1 MINUTE", True),
        ("TIMESTAMP", (0.0, 60.000001), "1 MINUTE", False),
    ],
)
def test_the_end_of_the_time_is_included(kind: str, times: tuple, within: str, answer: bool, live: bool) -> None:
    if kind == "TIMESTAMP":
        start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        times = tuple(start + dt.timedelta(seconds=seconds) for seconds in times)
    rows = [{"k": "x", "v": v, "t": t} for v, t in zip("ab", times, strict=True)]
    run = LocalRun(local_job(WALK.format(kind=kind, model="CERTAIN", within=within), "q", live=live), 1)
    if live:
        for row in rows:
            run.step({"r": [row]})
        run.step({}, end=True)
    else:
        run.step({"r": rows}, end=True)
    assert bool(run.answers()) == answer


def test_the_reach_counts_instants_of_the_chain() -> None:
    chain, t = np.array([0, 0, 0, 1, 1]), np.array([5, 6, 9, 6, 7])
    assert reaches(chain, t, 3.0, TimeKind.INTEGER).tolist() == [0, 1, 1, 0, 1]


def test_an_automaton_with_too_many_ages_is_sampled_in_batch_and_refused_in_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workbook = WALK.format(kind="INTEGER", model="INDEPENDENT", within=50)
    rows = {"r": [{"k": "x", "v": v, "t": t, "p": 0.4} for t in range(40) for v in "ab"]}
    monkeypatch.setattr(archive, "MOST_WORK", 100)
    monkeypatch.setattr(joint, "MOST_WORK", 10)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 0)
    run = LocalRun(local_job(workbook, "q"), 1)
    run.step(rows, end=True)
    assert {row["method"] for outcome in run.outcomes for row in outcome.answers.to_pylist()} == {"sampling"}
    monkeypatch.setattr(automaton.Automaton.__init__, "__defaults__", (False, 50, None))
    with pytest.raises(TooLarge, match="use fewer goals or a shorter WITHIN"):
        run_whole(local_job(workbook, "q", live=True), rows)


@pytest.mark.parametrize("method", ["METHOD EXACT", "METHOD SAMPLING ACCURACY 0.2"])
def test_the_state_of_a_stream_stays_level(method: str) -> None:
    """Every event has a new value, which the query keeps; only WITHIN ends a result."""
    workbook = f"""
    CREATE STREAM r KEY (k STRING) VALUE (v INTEGER) TIME t INTEGER MODEL INDEPENDENT;
    CREATE QUERY q AS PATTERN r(_, v) THEN r(_, w)[w < 0] THEN r(_, v) WITHIN 4 {method};
    """
    run = LocalRun(local_job(workbook, "q", live=True), 1)
    sizes = []
    for t in range(60):
        run.step({"r": [{"k": "x", "v": t, "t": t, "p": 0.5}]})
        operator = run.job.operator()
        operator.open(run.states[0])
        (chain,) = operator._chains
        sizes.append(len(list(chain.state.partials())))
    assert max(sizes) == max(sizes[:10]) <= 6
