"""RELATE compared with the enumeration of all worlds: random queries, entities, splits and arrival orders."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.drawn import examples
from tests.local import in_context, local_job
from tests.relate.local import Answer, Pair, RelateRun, run_whole
from tests.relate.strategies import LATEST
from tests.relate.workloads import TIMES, Workload, arrivals, clock, ungrouped, workloads
from tests.splits import Rows, disordered_splits, splits

from anabranch.relate.job import RelateJob

#: The maximum delay of rows, in units of time.
DELAY = 2


def jobs_of(case: Workload) -> tuple[RelateJob, RelateJob]:
    """The query over an archive, and over live streams."""
    job = local_job(case.workbook, "q")
    return job, in_context(job, live=True)


def assert_same(got: dict[Pair, float], want: dict[Pair, float], threshold: float) -> None:
    for pair in got.keys() | want.keys():
        if threshold > 0 and abs(got.get(pair, want.get(pair)) - threshold) <= 1e-9:
            continue  # at the threshold, a rounding error may decide
        assert abs(got.get(pair, 0.0) - want.get(pair, 0.0)) <= 1e-9, (pair, got.get(pair), want.get(pair))


def probabilities(answers: dict[Pair, Answer]) -> dict[Pair, float]:
    assert all(abs(answer.probability + answer.complement - 1.0) <= 1e-12 for answer in answers.values())
    return {pair: answer.probability for pair, answer in answers.items()}


def assert_rows_are_counted(run: RelateRun) -> None:
    counts = run.counts
    assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined
    assert counts.late + counts.quarantined == len(run.rejected)


@given(workloads(), st.integers(1, 4))
def test_batch_equals_worlds(case: Workload, n_buckets: int) -> None:
    run = run_whole(jobs_of(case)[0], case.rows, n_buckets)
    assert run.counts.used + run.counts.duplicate == run.counts.read
    event("answers" if run.answers() else "no answers")
    assert_same(probabilities(run.answers()), case.expected(), case.threshold)
    assert_counts(run.answers(), case)


def assert_counts(answers: dict[Pair, Answer], case: Workload) -> None:
    """With COUNT, the number of satisfied segments has the distribution of the oracle."""
    if not any(answer.distribution for answer in answers.values()):
        return
    event("counts")
    want = case.distributions()
    for pair, answer in answers.items():
        assert answer.distribution == pytest.approx(want[pair], abs=1e-9)
        assert answer.expected == pytest.approx(sum(n * p for n, p in enumerate(want[pair])), abs=1e-9)


# ---------------------------------------------------------------- streams


def streamed(case: Workload, batches: list[Rows], n_buckets: int = 3) -> RelateRun:
    """A run over micro-batches; its answers are checked after every step and at the end."""
    archive, live = jobs_of(case)
    run = RelateRun(live, n_buckets)
    for number, batch in enumerate([*batches, {}]):
        earlier = run.answers()
        run.step(batch, end=number == len(batches))
        assert_latest_answers_are_current(run, earlier, case.threshold)
    whole = run_whole(archive, case.rows)
    for result in (run, whole):
        assert_rows_are_counted(result)
    assert_same(probabilities(run.answers()), probabilities(whole.answers()), case.threshold)
    assert_same_counts(run.answers(), whole.answers())
    assert all(pair in run.answers() for pair, answer in run.latest().items() if is_answer(answer, case.threshold))
    assert_state_is_small(run)
    return run


def assert_latest_answers_are_current(run: RelateRun, earlier: dict[Pair, Answer], threshold: float) -> None:
    """The latest answers about all pairs are those of the current entities."""
    latest = {pair: answer for pair, answer in run.latest().items() if is_answer(answer, threshold)}
    recomputed = earlier | run.recomputed()
    assert_same(probabilities(latest), probabilities(recomputed), threshold)
    assert_same_counts(latest, recomputed)
    assert all(latest[pair].status == "final" for pair in earlier)


def assert_same_counts(got: dict[Pair, Answer], want: dict[Pair, Answer]) -> None:
    for pair in got.keys() & want.keys():
        assert got[pair].distribution == pytest.approx(want[pair].distribution, abs=1e-9)


def is_answer(answer: Answer, threshold: float) -> bool:
    return answer.probability > 0 and answer.probability >= threshold


def assert_state_is_small(run: RelateRun) -> None:
    """At the end, the state has only entities that a later entity could be paired with."""
    if any(layout.reaches_back for layout in run.job.layouts):
        return
    for layout, store in zip(run.job.layouts * run.n_buckets, run.stores(), strict=True):
        assert len(store.rows) == 0 or run.job.spec.analysis.pairs_with_later(layout.name)


@examples(25)
@given(st.data())
def test_any_split_into_micro_batches_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(workloads())
    run = streamed(case, data.draw(splits(case.rows, clock=clock)), data.draw(st.sampled_from([1, 3, 6])))
    # The second copy of a row is late if its entity ended in between.
    assert run.counts.late + run.counts.duplicate == run.counts.read - run.counts.used
    assert run.counts.quarantined == 0


@examples(25)
@given(st.data())
def test_any_order_within_the_watermark_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(workloads(watermark=DELAY, horizon=data.draw(st.sampled_from([None, False])), twice=False))
    run = streamed(case, data.draw(disordered_splits(case.rows, DELAY, clock=clock)))
    assert run.counts.used == run.counts.read
    assert_same(probabilities(run.answers()), case.expected(), case.threshold)


@examples(25)
@given(st.data())
def test_timeout_gives_the_same_result_in_streaming_and_batch(data: st.DataObject) -> None:
    case = data.draw(workloads(watermark=DELAY, timeout=True, twice=False))
    batches = data.draw(disordered_splits(arrivals(case.rows), DELAY, clock=lambda group: clock(group[0])))
    run = streamed(case, ungrouped(batches))
    assert run.counts == run_whole(jobs_of(case)[0], case.rows).counts
    event("late" if run.counts.late else "none late")


@examples(25)
@given(workloads(horizon=False, ends=True))
def test_ended_entities_without_possible_partners_are_removed(case: Workload) -> None:
    run = RelateRun(jobs_of(case)[1])
    for at in (*range(LATEST + 1), LATEST + 5):
        run.step({name: [*rows, *later(case, at)] for name, rows in rows_at(case, at).items()})
    # The watermark is past every entity, so all answers are final before the input ends.
    answers = {pair: p for pair, p in probabilities(run.answers()).items() if LATER not in pair}
    assert_same(answers, case.expected(), case.threshold)
    for layout, store in zip(run.job.layouts * run.n_buckets, run.stores(), strict=True):
        keys = {store.keys.tuple_of(number) for number in set(store.rows.entity)}
        assert keys <= {LATER} or run.job.spec.analysis.pairs_with_later(layout.name)


#: The key of an entity that begins after all others.
LATER = (0, 9)


def rows_at(case: Workload, at: int) -> Rows:
    return {name: [row for row in rows if clock(row) == at] for name, rows in case.rows.items()}


def later(case: Workload, at: int) -> list[dict]:
    """The first event of an entity that begins after all others; no row before its time."""
    instant = TIMES[case.times][2]
    first_event = {"g": LATER[0], "k": LATER[1], "seq": 1, "t": instant(at), "u": "x", "v": 0, "at": at}
    return [first_event] if at > LATEST else []
