"""GROUP BY any variables of a PATTERN, compared with the enumeration of all worlds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.drawn import examples
from tests.local import in_context, local_job
from tests.pattern.local import assert_same, job_of, run_whole
from tests.pattern.strategies import CLASSES, pattern_cases
from tests.pattern.test_against_worlds import answers_of_parts, assert_worlds, assert_worlds_of_parts
from tests.splits import disordered_splits, splits

from anabranch.errors import TooManyAnswers
from anabranch.pattern import bindings

DELAY = 2


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(60)
@given(pattern_cases(classes=CLASSES, any_group=True), st.integers(1, 3))
def test_batch_equals_worlds(case: Case, n_buckets: int) -> None:
    assert_worlds(case, n_buckets)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(20)
@given(pattern_cases(classes=CLASSES, any_group=True))
def test_bindings_in_blocks_equal_worlds(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bindings, "MOST_ROWS", 2)
        assert_worlds(case, 1)


def test_values_at_one_instant_have_their_own_probabilities() -> None:
    workbook = """
    CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL MARKOV;
    CREATE QUERY q AS PATTERN r(k, 'a') THEN r(k, v) GROUP BY k, v;
    """
    rows = [
        {"k": "x", "t": t, "prev_v": previous, "v": value, "p": p}
        for t, previous, value, p in [(1, None, "a", 0.6), (2, "a", "b", 0.5), (2, "a", "c", 0.3), (2, None, "b", 0.2)]
    ]
    assert_worlds(Case(workbook, "q", {"r": rows}, {}), n_buckets=1)


def test_too_many_bindings_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "PAIRS_PER_ANSWER", 1)
    workbook = """
    CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER;
    CREATE QUERY q AS PATTERN at(p, l) THEN at(q, m) GROUP BY p, q;
    """
    rows = [{"person": f"p{number}", "place": "a", "t": number} for number in range(10)]
    job = in_context(local_job(workbook, "q"), max_answers=20)
    with pytest.raises(TooManyAnswers, match="q: more than 20 pairs of a binding and an event .*; filter the goals"):
        run_whole(job, {"at": rows})


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(40)
@given(st.data())
def test_any_split_into_micro_batches_equals_worlds(data: st.DataObject) -> None:
    case = data.draw(pattern_cases(classes=CLASSES, any_group=True, most_worlds=300))
    assert_worlds_of_parts(case, data.draw(splits(case.rows)))


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(20)
@given(st.data())
def test_any_order_within_the_watermark_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(pattern_cases(classes=CLASSES, watermark=DELAY, any_group=True))
    job = job_of(case, live=True)
    answers = answers_of_parts(job, data.draw(disordered_splits(case.rows, DELAY)))
    assert_same(answers, run_whole(job, case.rows), job.spec.analysis.query.threshold)
