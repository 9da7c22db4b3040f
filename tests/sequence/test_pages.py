"""Events of keys without new ones are in pages: answers are the same, and a step uses the pages of its keys only."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import seconds
from tests.cold import few_are_hot
from tests.drawn import examples
from tests.local import LocalRun, local_job
from tests.sequence.local import answers_of, job_of, truth_of
from tests.sequence.strategies import sequence_cases
from tests.sequence.test_against_enumeration import ANY_CLAUSE, BUCKETS, CLAUSES, ERROR, same
from tests.sequence.test_early import EARLY, final, live_run
from tests.splits import disordered_splits, splits

from anabranch.transport import pages

WORKBOOK = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t {time} WATERMARK 1;
CREATE STREAM s KEY (id DOUBLE) VALUE (v STRING, n INTEGER) TIME t {time} WATERMARK 1;
CREATE QUERY q AS SEQUENCE (x, y) FROM r AS x, s AS y WHERE x.v = 'a' AND y.v = 'b' AND x.k = y.id {tail};
"""
KEYS = 3_000


@examples(60)
@given(st.data(), ANY_CLAUSE)
def test_any_split_gives_the_answers_of_the_whole(data: st.DataObject, clause: str) -> None:
    case = data.draw(sequence_cases(windowed=data.draw(st.booleans()), **CLAUSES[clause]))
    batches = data.draw(splits(case.rows, most_batches=8, clock=seconds))
    event(f"{clause}: {'all hot' if job_of(case).spec.cold_keys is None else 'cold'}")
    with few_are_hot():
        answers = answers_of(case, batches, data.draw(BUCKETS))
    assert same(answers, truth_of(case), ERROR.get(clause, 1e-9))


@examples(40)
@given(st.data(), st.sampled_from([1, 2]), ANY_CLAUSE)
def test_any_arrival_within_the_watermark_gives_the_answers_of_the_whole(
    data: st.DataObject, delay: int, clause: str
) -> None:
    case = data.draw(sequence_cases(windowed=True, watermark=delay, **CLAUSES[clause]))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    with few_are_hot():
        answers = answers_of(case, batches, data.draw(BUCKETS))
    assert same(answers, truth_of(case), ERROR.get(clause, 1e-9))


@examples(30)
@given(st.data(), st.sampled_from(sorted(EARLY)))
def test_early_answers_are_the_same(data: st.DataObject, clause: str) -> None:
    case = data.draw(sequence_cases(windowed=True, watermark=2, **EARLY[clause]))
    batches = data.draw(disordered_splits(case.rows, 2, clock=seconds))
    expected = live_run(case, batches, 2)
    with few_are_hot():
        run = live_run(case, batches, 2)
    assert [outcome.answers.num_rows for outcome in run.outcomes] == [
        outcome.answers.num_rows for outcome in expected.outcomes
    ]
    assert same(final(run.answers()), truth_of(case), ERROR.get(clause, 1e-9))


def firsts(keys: range, t: float) -> list[dict]:
    return [{"k": key, "v": "a", "t": t} for key in keys]


def lasts(keys: range, t: float) -> list[dict]:
    return [{"id": float(key), "v": "b", "n": None, "t": t} for key in keys]


@pytest.mark.parametrize("time", ["INTEGER", "DOUBLE"])
@pytest.mark.parametrize("tail", ["", "WITHIN 1000", "EMIT NEXT WITHIN 1000"])
def test_a_step_uses_the_pages_of_its_keys_only(tail: str, time: str) -> None:
    run = LocalRun(local_job(WORKBOOK.format(tail=tail, time=time), "q", live=True), 1)
    number = float if time == "DOUBLE" else int
    run.step({"r": firsts(range(KEYS), number(1)), "s": lasts(range(-1, 0), number(1))})
    size_of_all = len(run.states[0])
    for t in (10, 20, 30):
        run.step({"r": firsts(range(5), number(t)), "s": lasts(range(-1, 0), number(t))})
    store = run.pages[0]
    assert KEYS / pages.MOST_ROWS < len(store) < 4 * KEYS / pages.MOST_ROWS
    assert len(run.states[0]) < size_of_all / 3
    store.calls.clear()
    run.step({"r": firsts(range(5), number(40)), "s": lasts(range(-1, 0), number(40))})
    assert [call for call, _ in store.calls] == ["read"], "only the key without kept events is looked for"
    store.calls.clear()
    run.step({"s": lasts(range(100, 103), number(50))})
    calls = Counter(call for call, _ in store.calls)
    assert calls["read"] == calls["write"] <= 3
    run.step({}, end=True)
    answers = [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]
    assert sorted(row["events_1"][0]["id"] for row in answers) == [100.0, 101.0, 102.0]
    assert {row["events_0"][0]["t"] for row in answers} == {1}


def test_events_after_their_window_are_removed_from_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_IDLE", 64)
    run = LocalRun(local_job(WORKBOOK.format(tail="WITHIN 10", time="INTEGER"), "q", live=True), 1)
    sizes = []
    for t in range(40):
        run.step({"r": firsts(range(200 * t, 200 * t + 200), t), "s": lasts(range(-1, 0), t)})
        sizes.append(sum(map(len, run.pages[0].values())))
    assert max(sizes[20:]) <= 1.1 * max(sizes[:20])


@pytest.mark.parametrize(
    ("query", "is_cold"),
    [
        ("(x, y) FROM r AS x, s AS y WHERE x.k = y.id WITHIN 5", True),
        ("(x, y+, z) FROM r AS x, s AS y, r AS z WHERE x.k = y.id AND y.id = z.k WITHIN 5", True),
        ("(x, y) FROM r AS x, s AS y WITHIN 5", False),
        ("(x, !y, z) FROM r AS x, s AS y, r AS z WHERE x.k = z.k WITHIN 5", False),
        ("(x, y) FROM r AS x, s AS y WHERE x.k = y.id WITHIN 5 ENDING OPEN", False),
        ("(x, y) FROM r AS x, s AS y WHERE x.k = y.id EMIT EXPIRED WITHIN 5", False),
        ("(x, y, z) FROM r AS x, s AS y, s AS z WHERE x.k = y.id AND y.id = z.n WITHIN 5", False),
    ],
)
def test_which_queries_have_cold_events(query: str, is_cold: bool) -> None:
    workbook = WORKBOOK.format(tail="", time="INTEGER") + f"CREATE QUERY other AS SEQUENCE {query};"
    assert (local_job(workbook, "other", live=True).spec.cold_keys is not None) is is_cold
