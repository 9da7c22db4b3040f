"""RELATE held against the enumeration of all worlds: random queries, entities, splits and arrival orders."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from tests.drawn import examples
from tests.local import in_context, local_job
from tests.relate.local import Answer, Pair, RelateRun, run_whole
from tests.relate.strategies import LATEST
from tests.relate.workloads import TIMES, Workload, arrivals, arrived, clock, workloads
from tests.splits import Rows, disordered_splits, splits

from anabranch.relate.job import RelateJob

#: How late rows may come, in units of time.
DELAY = 2

#: For tests with many steps an example.


def jobs_of(case: Workload) -> tuple[RelateJob, RelateJob]:
    """The query over an archive, and over live streams."""
    job = local_job(case.workbook, "q")
    return job, in_context(job, live=True)


def assert_same(got: dict[Pair, float], want: dict[Pair, float], threshold: float) -> None:
    for pair in got.keys() | want.keys():
        if threshold > 0 and abs(got.get(pair, want.get(pair)) - threshold) <= 1e-9:
            continue  # on the threshold, the last bit decides
        assert abs(got.get(pair, 0.0) - want.get(pair, 0.0)) <= 1e-9, (pair, got.get(pair), want.get(pair))


def probabilities(answers: dict[Pair, Answer]) -> dict[Pair, float]:
    assert all(abs(answer.probability + answer.complement - 1.0) <= 1e-12 for answer in answers.values())
    return {pair: answer.probability for pair, answer in answers.items()}


def assert_nothing_is_lost(run: RelateRun) -> None:
    counts = run.counts
    assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined
    assert counts.late + counts.quarantined == len(run.rejected)


@given(workloads(), st.integers(1, 4))
def test_batch_equals_worlds(case: Workload, n_buckets: int) -> None:
    run = run_whole(jobs_of(case)[0], case.rows, n_buckets)
    assert run.counts.used + run.counts.duplicate == run.counts.read
    event("answers" if run.answers() else "no answers")
    assert_same(probabilities(run.answers()), case.expected(), case.threshold)


# ---------------------------------------------------------------- streams


def streamed(case: Workload, batches: list[Rows]) -> RelateRun:
    """A run over micro-batches, held against what must be so after every step, and at the end."""
    archive, live = jobs_of(case)
    run = RelateRun(live, n_buckets=2)
    for number, batch in enumerate([*batches, {}]):
        earlier = run.answers()
        run.step(batch, end=number == len(batches))
        assert_standing_rows_are_true(run, earlier, case.threshold)
    whole = run_whole(archive, case.rows)
    for each in (run, whole):
        assert_nothing_is_lost(each)
    assert_same(probabilities(run.answers()), probabilities(whole.answers()), case.threshold)
    assert all(pair in run.answers() for pair, answer in run.standing().items() if stands(answer, case.threshold))
    assert_the_past_is_forgotten(run)
    return run


def assert_standing_rows_are_true(run: RelateRun, earlier: dict[Pair, Answer], threshold: float) -> None:
    """Who lets each row stand in the place of the last about its pair has what is so by now, and nothing else."""
    standing = {pair: answer for pair, answer in run.standing().items() if stands(answer, threshold)}
    assert_same(probabilities(standing), probabilities(earlier | run.held()), threshold)
    assert all(standing[pair].status == "final" for pair in earlier)


def stands(answer: Answer, threshold: float) -> bool:
    return answer.probability > 0 and answer.probability >= threshold


def assert_the_past_is_forgotten(run: RelateRun) -> None:
    """At the end nothing is kept that no later entity could meet."""
    if any(layout.reaches_back for layout in run.job.layouts):
        return
    for layout, store in zip(run.job.layouts * run.n_buckets, run.stores(), strict=True):
        assert len(store.rows) == 0 or run.job.spec.analysis.pairs_with_later(layout.name)


@examples(25)
@given(st.data())
def test_any_split_into_micro_batches_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(workloads())
    run = streamed(case, data.draw(splits(case.rows, clock=clock)))
    # What is there twice is late where its entity ended in between.
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
def test_a_timeout_ends_entities_in_a_stream_as_in_an_archive(data: st.DataObject) -> None:
    case = data.draw(workloads(watermark=DELAY, timeout=True, twice=False))
    batches = data.draw(disordered_splits(arrivals(case.rows), DELAY, clock=lambda together: clock(together[0])))
    run = streamed(case, arrived(batches))
    assert run.counts == run_whole(jobs_of(case)[0], case.rows).counts
    event("late" if run.counts.late else "none late")


@examples(25)
@given(workloads(horizon=False, ends=True))
def test_entities_are_forgotten_once_they_have_ended_and_none_can_meet_them(case: Workload) -> None:
    run = RelateRun(jobs_of(case)[1])
    for at in (*range(LATEST + 1), LATEST + 5):
        run.step({name: [*rows, *later(case, at)] for name, rows in rows_at(case, at).items()})
    # The watermark is past every entity, so all answers are there before the input ends.
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
    """The first event of an entity that begins after all others, when it is time."""
    instant = TIMES[case.times][2]
    return [{"g": LATER[0], "k": LATER[1], "seq": 1, "t": instant(at), "at": at}] if at > LATEST else []
