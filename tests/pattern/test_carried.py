"""Chains that are carried from instant to instant: states that are reached in several ways, and seeds of worlds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.local import local_job
from tests.pattern.local import LocalRun
from tests.pattern.test_sampling import WORKBOOK

from anabranch.pattern import kernel
from anabranch.pattern.general import GeneralOperator
from anabranch.pattern.history import Outcomes, Past
from anabranch.pattern.job import PatternJob
from anabranch.pattern.joint import JointState
from anabranch.pattern.machine import Partial
from anabranch.pattern.spec import GroupSpec


def outcomes(rows: list[tuple[int, int, float]], model: int = kernel.MARKOV) -> Outcomes:
    """The rows (previous value, value, p) of key 3 at one instant."""
    previous, value, p = zip(*rows, strict=True)
    codes = np.array(previous, np.int32), np.array(value, np.int32)
    return Outcomes(3, model, *codes, np.array(p), {}, np.arange(9, dtype=np.uint64), 1)


def test_a_state_after_a_true_instant_may_be_one_after_another() -> None:
    same = (), frozenset[Partial]()
    state = JointState({same: 0.3}, accepted={same: 0.2})
    state.settle()
    assert state.states == {same: pytest.approx(0.5)}


def test_a_value_is_reached_from_several_previous_ones() -> None:
    past = Past()
    past.advance(outcomes([(0, 1, 0.5), (0, 2, 0.5)]))
    past.advance(outcomes([(1, 1, 0.4), (1, 2, 0.6), (2, 1, 0.2), (2, 2, 0.8)]))
    assert dict(past.of(3)) == pytest.approx({1: 0.3, 2: 0.7})


def test_independent_events_have_no_previous_value() -> None:
    """The events of one key at several instants, carried as if an automaton could not answer."""
    workbook = """
    CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER PROBABILITY p MODEL INDEPENDENT;
    CREATE QUERY q AS PATTERN at(x, 'a') THEN at(y, 'b');
    """
    job = local_job(workbook, "q", live=True)
    job = PatternJob(GroupSpec(job.spec.context, job.spec.analysis.for_streams()))
    assert isinstance(job.operator(), GeneralOperator)
    run = LocalRun(job, 1)
    rows = [("a", 1, 0.5), ("b", 2, 0.4), ("a", 3, 0.25), ("b", 4, 0.5)]
    run.step({"at": [{"person": "ann", "place": place, "t": t, "p": p} for place, t, p in rows]}, end=True)
    answers = {row["t"]: row["probability"] for outcome in run.outcomes for row in outcome.answers.to_pylist()}
    # The successor of a is the next b: at 4, b of 2 did not happen after a of 1, or a of 3 happened.
    later = 0.5 * (1 - 0.75 * (1 - 0.5 * 0.6))
    assert answers == pytest.approx({2: 0.2, 4: later})


def test_the_seed_of_worlds_depends_on_the_chain_and_the_instant_alone() -> None:
    carrying = [local_job(WORKBOOK.format(options=""), "q", live=True).operator()._carrying for _ in range(2)]
    seeds = [[chain.seed_of(hashed, t) for hashed in (10, 20) for t in (1, 2)] for chain in carrying]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 4
