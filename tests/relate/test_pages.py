"""The keys of forgotten entities are in pages: answers are the same, and late rows of them are still late."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.cold import few_are_hot
from tests.drawn import examples
from tests.local import LocalRun, local_job
from tests.relate.local import run_stream, run_whole
from tests.relate.test_against_worlds import DELAY, assert_same, jobs_of, probabilities, streamed
from tests.relate.test_runs import run_job, speeds
from tests.relate.test_segments import batches_of
from tests.relate.workloads import arrivals, clock, ungrouped, workloads
from tests.splits import disordered_splits, splits

from anabranch.transport import pages

WORKBOOK = """
CREATE STREAM r KEY (k INTEGER, g STRING) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS;
CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.k = b.k AND a.g < b.g;
"""
KEYS = 3_000


@examples(40)
@given(st.data())
def test_any_split_into_micro_batches_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(workloads())
    with few_are_hot():
        run = streamed(case, data.draw(splits(case.rows, clock=clock)))
    assert run.counts.late + run.counts.duplicate == run.counts.read - run.counts.used
    assert_same(probabilities(run.answers()), case.expected(), case.threshold)


@examples(40)
@given(st.data())
def test_late_rows_of_forgotten_entities_are_late(data: st.DataObject) -> None:
    case = data.draw(workloads(watermark=DELAY, timeout=True, twice=False))
    batches = data.draw(disordered_splits(arrivals(case.rows), DELAY, clock=lambda group: clock(group[0])))
    with few_are_hot():
        run = streamed(case, ungrouped(batches))
    assert run.counts == run_whole(jobs_of(case)[0], case.rows).counts


@examples(40)
@given(speeds, st.lists(st.integers(0, 30), max_size=5))
def test_entities_of_runs_have_the_same_answers(rows: list[dict], cuts: list[int]) -> None:
    batches = batches_of(cuts, sorted(rows, key=lambda row: row["t"]), "jams")
    job = run_job("", live=True, tail="TIMEOUT 6")
    expected = run_stream(job, batches)
    with few_are_hot():
        run = run_stream(job, batches)
    assert (run.answers(), run.counts) == (expected.answers(), expected.counts)


def segments(keys: range, t: int) -> list[dict]:
    return [{"k": key, "g": f"g{key}", "n": n, "t": t + n, "l": 2} for key in keys for n in (1, 2)]


def test_a_step_reads_neither_keys_nor_pages_of_forgotten_entities() -> None:
    run = LocalRun(local_job(WORKBOOK, "q", live=True), 1)
    run.step({"r": segments(range(KEYS), 0)})
    size_of_all = len(run.states[0])
    for t in (10, 20):
        run.step({"r": segments(range(KEYS + t, KEYS + t + 5), t)})
    store = run.pages[0]
    assert KEYS / pages.MOST_ROWS < len(store)
    assert len(run.states[0]) < size_of_all / 3
    # Five new keys: the log of rows, and a page for each, or the filter for more keys than that.
    store.calls.clear()
    run.step({"r": segments(range(KEYS + 30, KEYS + 35), 30)})
    assert Counter(call for call, _ in store.calls)["read"] <= 2 + 5
    store.calls.clear()
    run.step({"r": segments(range(KEYS + 40, KEYS + 240), 40)})
    assert Counter(call for call, _ in store.calls)["read"] <= 2 + 1 + 200 // 20
    # Rows of forgotten entities are late, and no others.
    run.step({"r": segments(range(100, 103), 50)})
    assert (run.counts.late, len(run.rejected)) == (6, 6)
    assert run.counts.quarantined == 0
