"""Chains without new rows are in pages: answers are the same, and a step uses the pages of its keys only."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cold import few_are_hot
from tests.drawn import examples
from tests.local import MemoryPages, local_job
from tests.pattern.local import LocalRun
from tests.pattern.strategies import CLASSES, pattern_cases
from tests.pattern.test_against_worlds import assert_worlds_of_parts
from tests.splits import splits

from anabranch.transport import pages

WORKBOOK = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL {model};
CREATE QUERY q AS PATTERN r(k, 'a') THEN r(k, 'b') GROUP BY k;
"""
KEYS = 3_000


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(60)
@given(st.data())
def test_any_split_into_micro_batches_equals_worlds(data: st.DataObject) -> None:
    case = data.draw(pattern_cases(classes=CLASSES))
    with few_are_hot():
        assert_worlds_of_parts(case, data.draw(splits(case.rows)))


def rows_of(keys: range, value: str, t: int, previous: str | None = None) -> list[dict]:
    return [{"k": key, "prev_v": previous, "v": value, "t": t, "p": 0.5} for key in keys]


@pytest.mark.parametrize("model", ["INDEPENDENT", "MARKOV"])
def test_a_step_uses_the_pages_of_its_keys_only(model: str) -> None:
    run = LocalRun(local_job(WORKBOOK.format(model=model), "q", live=True), 1)
    store: MemoryPages = run.pages[0]
    run.step({"r": rows_of(range(KEYS), "a", 1)})
    run.step({"r": rows_of(range(5), "a", 2, "a")})
    size_of_all = len(run.states[0])
    run.step({"r": rows_of(range(5), "a", 3, "a")})
    assert KEYS / pages.MOST_ROWS < len(store) < 4 * KEYS / pages.MOST_ROWS
    assert len(run.states[0]) < size_of_all / 3
    store.calls.clear()
    run.step({"r": rows_of(range(5), "a", 4, "a")})
    run.step({"r": rows_of(range(KEYS, KEYS + 5), "a", 5)})
    assert all(call == "read" for call, _ in store.calls), "new keys are only looked for"
    store.calls.clear()
    run.step({"r": rows_of(range(100, 103), "b", 6, "a")})
    run.step({}, end=True)
    calls = Counter(call for call, _ in store.calls)
    assert calls.keys() == {"read", "write"}
    assert calls["read"] == calls["write"] <= 3
    assert run.answers() == {(6, key): pytest.approx(0.25) for key in range(100, 103)}


def test_pages_without_keys_are_removed() -> None:
    run = LocalRun(local_job(WORKBOOK.format(model="INDEPENDENT"), "q", live=True), 1)
    run.step({"r": rows_of(range(KEYS), "a", 1)})
    run.step({"r": rows_of(range(1), "a", 2)})
    run.step({"r": rows_of(range(1), "a", 3)})
    assert run.pages[0]
    run.step({"r": rows_of(range(KEYS), "b", 4)})
    run.step({"r": rows_of(range(KEYS), "b", 5)})
    assert not run.pages[0]
    assert len(run.answers()) == KEYS
