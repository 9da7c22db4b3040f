"""The kernels by themselves: order, cleaning, and three ways to carry weights that agree where they overlap."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.local import local_job
from tests.pattern.local import run_whole
from tests.pattern.strategies import EXTENDED, REGULAR, pattern_cases

from anabranch.pattern import kernel
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
    (chain, t, key, prev, value), p = case
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


def test_a_sum_within_rounding_of_one_is_scaled() -> None:
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


def test_no_mass_is_lost_over_a_hundred_thousand_instants() -> None:
    """A two-state chain has a closed form: P(a now, b next) tends to pi_a P(a -> b), and stays there."""
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
