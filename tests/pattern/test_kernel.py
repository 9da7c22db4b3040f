"""The kernels: sorting, cleaning, and three ways to update weights, which agree where they overlap."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.local import local_job
from tests.pattern.local import run_whole
from tests.pattern.strategies import EXTENDED, REGULAR, pattern_cases

from anabranch.pattern import kernel
from anabranch.pattern.automaton import NO_TICKS
from anabranch.pattern.weights import JointWeights

MARKOV_CHAIN = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL MARKOV;
CREATE QUERY q AS PATTERN r(p, 'a') THEN r(p, 'b')+<p | TRUE> THEN r(p, 'c') GROUP BY p;
"""


@st.composite
def row_columns(draw: st.DrawFn):
    n = draw(st.integers(0, 60))
    small = st.integers(0, 3)
    columns = [np.array(draw(st.lists(small, min_size=n, max_size=n)), np.int32) for _ in range(5)]
    p = np.array(draw(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=n, max_size=n)), np.float64)
    return columns, p


@given(row_columns())
def test_rows_are_ordered_as_lexsort_orders_them(case) -> None:
    assert_ordered(*case)


@pytest.mark.parametrize("n", [100, 333])
def test_rows_in_great_disorder_are_ordered_as_well(n: int) -> None:
    """Chains that are long enough, and rows that are far enough from their positions, for the merge sort."""
    rng = np.random.default_rng(n)
    chain, t, key, prev, value = (rng.integers(0, most, n).astype(np.int32) for most in (2, 40, 3, 3, 3))
    assert_ordered([chain, t, key, prev, value], rng.choice([0.2, 0.5], n))
    assert_ordered([np.zeros_like(chain), np.arange(n, 0, -1, np.int32), key, prev, value], np.ones(n))


def assert_ordered(columns, p) -> None:
    chain, t, key, prev, value = columns
    order, starts = kernel.order_rows(chain, t.astype(np.int64), key, prev, value, p, 4)
    expected = np.lexsort((p, value, prev, key, t, chain))
    for column in (chain, t, key, prev, value, p):
        assert column[order].tolist() == column[expected].tolist()
    assert starts.tolist() == np.searchsorted(np.sort(chain), np.arange(5)).tolist()


@given(row_columns(), st.sampled_from([kernel.CERTAIN, kernel.INDEPENDENT, kernel.MARKOV]))
def test_cleaning_keeps_each_row_once_and_no_group_above_one(case, model: int) -> None:
    (chain, t, key, prev, value), p = case
    if model != kernel.MARKOV:
        prev = np.zeros_like(prev)
    if model == kernel.CERTAIN:
        p = np.ones_like(p)
    key = key + 4 * chain  # a key feeds one chain
    before = p.copy()
    models = np.full(len(t), model, np.int32)
    status = np.zeros(len(t), np.int8)
    order, _ = kernel.order_rows(chain, t.astype(np.int64), key, prev, value, p, 4)
    used = kernel.clean_rows(order, t.astype(np.int64), key, models, prev, value, p, status)
    groups: dict[tuple, set[tuple]] = {}
    for row in range(len(t)):
        groups.setdefault((key[row], t[row], prev[row]), set()).add((value[row], before[row]))
    full = {group for group, rows in groups.items() if sum(q for _, q in rows) > 1 + 1e-6 and model != kernel.CERTAIN}
    kept = [((key[row], t[row], prev[row]), (value[row], before[row])) for row in used]
    assert len(kept) == len(set(kept))
    assert {group for group, _ in kept} == groups.keys() - full
    assert all({row for other, row in kept if other == group} == groups[group] for group in groups.keys() - full)


def test_a_sum_above_one_by_a_rounding_error_is_scaled() -> None:
    p = np.array([0.5, 0.5000004])
    zeros = np.zeros(2, np.int32)
    status = np.zeros(2, np.int8)
    models = np.full(2, kernel.INDEPENDENT, np.int32)
    used = kernel.clean_rows(
        np.arange(2), np.zeros(2, np.int64), zeros, models, zeros, np.arange(2, dtype=np.int32), p, status
    )
    assert len(used) == 2
    assert abs(p.sum() - 1.0) < 1e-15


@given(pattern_cases(classes=(REGULAR, EXTENDED), models=("MARKOV",), most_streams=1))
def test_the_joint_kernel_agrees_with_the_single_one(case: Case) -> None:
    job = local_job(case.workbook, case.query, case.relations)
    assert_joint_agrees(job, case.rows)


@given(pattern_cases(classes=(REGULAR, EXTENDED), models=("INDEPENDENT", "CERTAIN")))
def test_the_joint_kernel_agrees_with_the_independent_one(case: Case) -> None:
    job = local_job(case.workbook, case.query, case.relations)
    assert_joint_agrees(job, case.rows)


def assert_joint_agrees(job, rows) -> None:
    usual = run_whole(job, rows)
    with patch("anabranch.pattern.operator.weights_for", lambda single, markov: JointWeights()):
        joint = run_whole(job, rows)
    assert usual.keys() == joint.keys()
    assert all(abs(usual[key] - joint[key]) <= 1e-12 for key in usual)


@pytest.mark.parametrize("model", ["INDEPENDENT", "MARKOV"])
def test_letters_of_several_keys_are_combined(model: str) -> None:
    """Two keys with different numbers of values; the probabilities of combinations with the same letter are added."""
    workbook = f"""
    CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL {model};
    CREATE QUERY q AS PATTERN r(_, 'a') THEN r(_, 'b');
    """
    alternatives = {"x": {"a": 0.5}, "y": {"a": 0.2, "c": 0.3}}
    rows = [
        {"k": k, "t": 1, "prev_v": None, "v": v, "p": p}
        for k, values in alternatives.items()
        for v, p in values.items()
    ]
    for k, p in (("x", 0.5), ("y", 0.4)):
        previous = [None, *alternatives[k]] if model == "MARKOV" else [None]
        rows += [{"k": k, "t": 2, "prev_v": before, "v": "b", "p": p} for before in previous]
    some_a, some_b = 1 - 0.5 * 0.8, 1 - 0.5 * 0.6
    assert run_whole(local_job(workbook, "q"), {"r": rows}) == pytest.approx({(2,): some_a * some_b})


def test_chains_of_one_call_do_not_affect_each_other() -> None:
    """Three instants each: the last weights of a chain are in the half of the buffer that the next one writes first."""
    moves = [
        (0, None, "a", 0.5), (0, None, "b", 0.5), (1, "a", "a", 0.4), (1, "a", "b", 0.6), (1, "b", "b", 1.0),
        (2, "b", "b", 0.5), (2, "b", "c", 0.5),
    ]  # fmt: skip
    rows = [{"k": k, "t": t, "prev_v": before, "v": v, "p": p} for k in "xyz" for t, before, v, p in moves]
    job = local_job(MARKOV_CHAIN, "q")
    assert run_whole(job, {"r": rows}, n_buckets=1) == pytest.approx({(2, k): 0.15 for k in "xyz"})


@pytest.mark.parametrize(("limit", "needed"), [(3, 0), (2, 3)])
def test_the_limit_of_a_joint_state(limit: int, needed: int) -> None:
    """One key with two alternatives and *nothing*: three weights."""
    nothing, zeros, alternatives = np.zeros(1, np.int32), np.zeros(2, np.int32), np.array([1, 2], np.int32)
    *_, weights, _, _, returned_needed = kernel.step_joint(
        np.arange(2), np.ones(2, np.int64), zeros, np.full(2, kernel.MARKOV, np.int32), zeros, alternatives,
        np.array([0.3, 0.2]), zeros, np.zeros((1, 1), np.int32), np.zeros((1, 1), np.bool_), np.zeros((1, 1), np.int32),
        np.zeros(1, np.int64), np.ones(1, np.int64), nothing, np.ones(1), 3, limit,
        np.zeros(0, np.int32), NO_TICKS,
    )  # fmt: skip
    assert returned_needed == needed
    assert weights.tolist() == pytest.approx([1.0] if needed else [0.3, 0.2, 0.5])


def test_no_mass_is_lost_over_a_hundred_thousand_instants() -> None:
    """A two-state chain has a closed form: P(a now, b next) converges to pi_a P(a -> b)."""
    n = 100_000
    rows = [{"k": "x", "t": 0, "v": "a", "prev_v": None, "p": 1.0}]
    for t in range(1, n):
        rows += [
            {"k": "x", "t": t, "v": "b", "prev_v": "a", "p": 0.3},
            {"k": "x", "t": t, "v": "a", "prev_v": "a", "p": 0.7},
            {"k": "x", "t": t, "v": "a", "prev_v": "b", "p": 0.6},
            {"k": "x", "t": t, "v": "b", "prev_v": "b", "p": 0.4},
        ]
    workbook = MARKOV_CHAIN.replace("THEN r(p, 'b')+<p | TRUE> THEN r(p, 'c')", "THEN r(p, y) WHERE y = 'b'")
    answers = run_whole(local_job(workbook, "q"), {"r": rows}, n_buckets=1)
    assert abs(answers[(n - 1, "x")] - 0.3 * 0.6 / (0.3 + 0.6)) < 1e-12
