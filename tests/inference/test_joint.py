"""METHOD JOINT and LAG: answers given the readings so far, or a lag later, against the enumeration of all paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.inference.hmm import Sensing
from anabranch.inference.infer import Inference
from anabranch.inference.stream import InferredFrom
from anabranch.language.parser import parse
from anabranch.pattern.job import PatternJob
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext
from tests.inference.models import Dense, cases, packed, random_model
from tests.local import FINGERPRINT, bound_query, make_job, prepared_query
from tests.oracles import hmm as hmm_oracle
from tests.oracles import inferred as oracle
from tests.pattern.local import LocalRun
from tests.splits import splits

WORKBOOK = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE STREAM at KEY (tag STRING) VALUE (room STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model/' METHOD {method};
CREATE QUERY q AS PATTERN {query};
"""

QUERIES = (
    "at(x, 'x0') THEN at(x, r) WHERE r <> 'x0' GROUP BY x",
    "at(x, 'x0') THEN at(x, 'x1')",
    "at(x, 'x0') THEN at(x, 'x1')+<x> THEN at(x, 'x0') GROUP BY x",
    "at('a', 'x0') THEN at('b', 'x1')",
    "at(x, l) THEN at(x, m) GROUP BY x, l, m",
    "at(x, l) THEN at(y, m) GROUP BY l, m",
    "at(x, l) THEN at(x, m) WHERE l <> m GROUP BY x",
)


def joint_job(text: str, model: Dense, live: bool, lag: int = 0, expire: int | None = None) -> PatternJob:
    """The job of a query over a stream that is inferred by JOINT or LAG."""
    catalog = Catalog()
    assert not declare(parse(text), catalog)
    at = catalog.stream("at")
    (layout,) = layouts_for([catalog.stream("readings")])
    inference = Inference(model.hmm(), at.source.method, lag=lag)
    derivation = InferredFrom((inference,), layout.value_types[0], 1.0, expire=expire)
    return make_job(
        [bound_query(text, "q")], JobContext((replace(layout, derivation=derivation),), {}, FINGERPRINT, live)
    )


def workbook(query: str, lag: int = 0) -> str:
    return WORKBOOK.format(query=query, method=f"LAG {lag}" if lag else "JOINT")


def reading_rows(seen: dict[str, list[list[int]]], firsts: dict[str, int]) -> list[dict]:
    """The rows of readings of each key, from its first step on; a NULL reader where the first step has none."""
    return [
        {"tag": tag, "reader": f"r{code}" if code >= 0 else None, "t": firsts[tag] + n}
        for tag, steps in seen.items()
        for n, codes in enumerate(steps)
        for code in (codes or ([-1] if n == 0 else []))
    ]


def units_of(model: Dense, rows: Sequence[dict], expire: float = np.inf, last: int | None = None) -> list[oracle.Stay]:
    """The stays of all keys, to the last step of any, or to `last`."""
    last = max(row["t"] for row in rows) if last is None else last
    units = []
    for key, first, end in oracle.stays([(row["tag"], row["t"]) for row in rows], last, expire):
        codes = [
            [int(row["reader"][1:]) for row in rows if (row["tag"], row["t"]) == (key, t) and row["reader"]]
            for t in range(first, end + 1)
        ]
        units.append(oracle.Stay(key, first, model.likelihoods(codes), names(model), model.initial, model.transition))
    return units


@st.composite
def situations(draw: st.DrawFn, steps: int = 4) -> tuple[Dense, list[dict]]:
    """A small model, and the readings of two keys that begin at different steps."""
    model, first = draw(cases(steps))
    codes = st.integers(0, len(model.sensors) - 1)
    second = draw(st.lists(st.lists(codes, max_size=2), min_size=1, max_size=3))
    known = [[code for code in seen if 0 <= code < len(model.sensors)] for seen in first]
    return model, reading_rows({"a": known, "b": second}, {"a": 0, "b": draw(st.integers(0, 2))})


def names(model: Dense) -> list[str]:
    return [f"x{code}" for code in range(len(model.initial))]


def visible(answers: dict[Any, float]) -> dict[Any, float]:
    """Answers as tuples, without rounding errors of 0."""
    return {key if isinstance(key, tuple) else (key,): p for key, p in answers.items() if p > 1e-12}


@pytest.mark.parametrize("query", QUERIES)
@given(data=st.data())
def test_answers_are_given_the_readings_so_far_or_a_lag_later(query: str, data: st.DataObject) -> None:
    model, rows = data.draw(situations())
    lag = data.draw(st.integers(0, 3))
    text = workbook(query, lag)
    expected = oracle.answers(bound_query(text, "q"), units_of(model, rows), lag)
    run = LocalRun(joint_job(text, model, live=False, lag=lag))
    run.step({"readings": rows}, end=True)
    assert visible(run.answers()) == pytest.approx(visible(expected), abs=1e-9)
    live = LocalRun(joint_job(text, model, live=True, lag=lag))
    for part in data.draw(splits({"readings": rows})):
        live.step(part)
    live.step({}, end=True)
    assert live.counts.late == 0
    assert visible(live.answers()) == pytest.approx(visible(expected), abs=1e-9)


@pytest.mark.parametrize("query", QUERIES[:4])
@given(data=st.data())
def test_early_answers_are_given_the_readings_that_have_arrived(query: str, data: st.DataObject) -> None:
    model, rows = data.draw(situations())
    lag = data.draw(st.integers(0, 2))
    text = workbook(f"{query} EMIT EARLY", lag)
    live = LocalRun(joint_job(text, model, live=True, lag=lag))
    arrived: list[dict] = []
    for part in data.draw(splits({"readings": rows})):
        live.step(part)
        arrived += part["readings"]
        expected = oracle.answers(bound_query(text, "q"), units_of(model, arrived), lag) if arrived else {}
        # The watermark is the newest reading; an answer waits for the readings of its lag, too.
        incomplete = max((row["t"] for row in arrived), default=0) - lag
        early = {key: p for key, p in visible(expected).items() if key[0] >= incomplete}
        assert visible(live.by_status("provisional")[-1]) == pytest.approx(early, abs=1e-9)


@given(data=st.data())
def test_windows_are_given_the_readings_up_to_their_end(data: st.DataObject) -> None:
    model, rows = data.draw(situations())
    lag, times = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 2))
    text = workbook(f"at(x, 'x0') THEN at(x, r) WHERE r <> 'x0' GROUP BY x PER 2 AT LEAST {times} TIMES", lag)
    expected = oracle.counts(bound_query(text, "q"), units_of(model, rows), 2, times, lag)
    job = joint_job(text, model, live=True, lag=lag)
    for parts in ([{"readings": rows}], data.draw(splits({"readings": rows}))):
        run = LocalRun(job)
        for part in parts:
            run.step(part)
        run.step({}, end=True)
        found = {
            (row["t_from"], row["t_to"], row["x"]): row["probability"]
            for outcome in run.outcomes
            for row in outcome.answers.to_pylist()
        }
        assert visible(found) == pytest.approx(visible(expected), abs=1e-9)


@pytest.mark.parametrize("query", [QUERIES[0], QUERIES[3], QUERIES[5]])
@given(data=st.data())
def test_a_key_that_is_not_read_any_more_expires_and_begins_anew(query: str, data: st.DataObject) -> None:
    model = data.draw(situations())[0]
    moments = st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(0, len(model.sensors) - 1))
    read = data.draw(st.lists(moments, min_size=1, max_size=5))
    rows = [{"tag": tag, "reader": f"r{code}", "t": t} for tag, t, code in read]
    lag, expire = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 2))
    text = workbook(query, lag)
    units = units_of(model, rows, expire)
    expected = oracle.answers(bound_query(text, "q"), units, lag)
    for parts in ([{"readings": rows}], data.draw(splits({"readings": rows}))):
        run = LocalRun(joint_job(text, model, live=True, lag=lag, expire=expire))
        for part in parts:
            run.step(part)
        run.step({}, end=True)
        assert visible(run.answers()) == pytest.approx(visible(expected), abs=1e-9)
    # All readings count, as with a long lag; the values of a key before it expired must not remain either.
    text = WORKBOOK.format(query=query, method="SMOOTH")
    run = LocalRun(joint_job(text, model, live=True, expire=expire))
    run.step({"readings": rows}, end=True)
    given_all = oracle.answers(bound_query(text, "q"), units, lag=99)
    assert visible(run.answers()) == pytest.approx(visible(given_all), abs=1e-9)


# ---------------------------------------------------------------- three rooms

ROOMS = ("a", "b", "c")

#: Nobody moves, and nothing is read after the beginning.
STILL = Dense(np.array([0.51, 0.06, 0.43]), np.eye(3), Sensing.DETECTION, np.full((1, 3), 0.5))


@pytest.mark.parametrize(
    ("method", "impossible", "staying"), [("FILTER", 0.51 * 0.43, 0.51 * 0.51), ("JOINT", 0.0, 0.51)]
)
def test_an_impossible_move_gets_no_probability(method: str, impossible: float, staying: float) -> None:
    """Independent marginals credit a move through two walls with 0.22, and staying with 0.26 instead of 0.51."""
    rows = [{"tag": "k", "reader": "r0", "t": 0}, {"tag": "k", "reader": "r0", "t": 1}]
    for query, p in (("at(x, 'x0') THEN at(x, 'x2')", impossible), ("at(x, 'x0') THEN at(x, 'x0')", staying)):
        text = WORKBOOK.format(query=f"{query} GROUP BY x", method=method)
        run = LocalRun(joint_job(text, STILL, live=True))
        run.step({"readings": rows}, end=True)
        assert run.answers().get((1, "k"), 0.0) == pytest.approx(p, abs=1e-12)


# ---------------------------------------------------------------- the kernel


@given(case=cases(), lag=st.integers(0, 3))
def test_rows_for_people_are_probabilities_of_pairs(case: tuple[Dense, list[list[int]]], lag: int) -> None:
    model, readings = case
    likelihoods, _ = hmm_oracle.without_impossible(model.initial, model.transition, model.likelihoods(readings))
    inference = Inference(model.hmm(), "LAG" if lag else "JOINT", lag=lag, pairs=True)
    inferred = inference.advance(inference.start(), *packed(readings))
    for t in range(len(readings)):
        expected: dict[tuple[int, int], float] = {}
        for path, p in hmm_oracle.posterior(
            hmm_oracle.paths(model.initial, model.transition, likelihoods[: t + lag + 1])
        ).items():
            pair = (path[t - 1] if t else -1, path[t])
            expected[pair] = expected.get(pair, 0.0) + p
        found = {
            (int(x), int(y)): float(p)
            for at, x, y, p in zip(inferred.step, inferred.prev, inferred.location, inferred.p, strict=True)
            if at == t
        }
        assert found == pytest.approx(expected, abs=1e-9)


def test_what_is_known_about_a_place_survives_a_thousand_contrary_readings() -> None:
    """Nobody can leave; 1000 readings speak against the second place, then one excludes the first."""
    sensors = np.array([[0.99, 0.01], [0.0, 0.5]])
    model = Dense(np.array([0.5, 0.5]), np.eye(2), Sensing.DETECTION, sensors)
    seen = [[0]] * 1000 + [[1]]
    rows = [{"tag": "k", "reader": f"r{code}", "t": t} for t, codes in enumerate(seen) for code in codes]
    run = LocalRun(joint_job(workbook("at(x, 'x1') THEN at(x, 'x1') GROUP BY x"), model, live=True))
    run.step({"readings": rows}, end=True)
    assert run.answers()[1000, "k"] == pytest.approx(1.0, abs=1e-9)


def test_weights_stay_normalised_over_ten_thousand_steps() -> None:
    model = random_model(4, 3, seed=1)
    draw = np.random.default_rng(2)
    rows = [{"tag": "k", "reader": f"r{draw.integers(3)}", "t": t} for t in range(10_000)]
    run = LocalRun(joint_job(workbook("at(x, r) GROUP BY x"), model, live=True), 1)
    run.step({"readings": rows}, end=True)
    assert list(run.answers().values()) == pytest.approx([1.0] * 10_000, abs=1e-10)


# ---------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("LAG", "METHOD LAG takes a duration: how much later the last reading is that counts"),
        ("LAG(3)", "METHOD LAG takes a duration: how much later the last reading is that counts"),
        ("LAG 1 STEP 2", "the duration of METHOD LAG is shorter than a STEP"),
        ("JOINT 3", "METHOD JOINT takes no argument"),
        ("JOINT PRUNE 0.1", "PRUNE cannot be used with METHOD JOINT, whose rows are weights"),
        ("JOINT EXPIRE -1", "EXPIRE must be above 0, not -1"),
    ],
)
def test_wrong_clauses_are_reported(method: str, message: str) -> None:
    (finding,) = declare(parse(WORKBOOK.format(query=QUERIES[0], method=method)), Catalog())
    assert finding.message == message


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("at(x, l) THEN at(y, l)", "cannot answer a query that is unsafe"),
        (f"{QUERIES[0]} PER EPISODE", "has no episodes: each of its instants is given other readings"),
        (f"{QUERIES[0]} METHOD SAMPLING", "cannot be sampled"),
        (f"{QUERIES[4]} PER 2", "cannot be counted for variables that are not keys of all goals"),
    ],
)
def test_what_cannot_be_exact_is_refused_before_data_are_read(query: str, reason: str) -> None:
    refused = prepared_query(workbook(query), "q").plan.refused
    assert refused is not None
    assert refused.message == f"at is inferred by METHOD JOINT, which {reason}"


def test_explain_says_which_readings_count() -> None:
    assert prepared_query(workbook(QUERIES[0]), "q").plan.method == "exact, given the readings up to each instant"
    plan = prepared_query(workbook(f"{QUERIES[0]} PER 5", lag=3), "q").plan
    assert plan.method == "exact, given the readings up to 3 after the end of each window"
    assert plan.streams == "yes"
