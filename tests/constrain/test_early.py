"""EMIT EARLY: every solution is reported once, in the step in which its last event arrives."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import Case, Rows, seconds
from tests.constrain.local import ConstrainRun, job_of, truth_of
from tests.constrain.strategies import constrain_cases
from tests.drawn import examples
from tests.local import FINGERPRINT, bound_query, declared, in_context, local_job, make_job
from tests.oracles.events import frozen
from tests.splits import disordered_splits

from anabranch.binding.binder import bind
from anabranch.constrain.analysis import STRATEGIES, analyse
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext

TWO_STREAMS = """
    CREATE STREAM e KEY (id STRING) TIME t INTEGER WATERMARK 2;
    CREATE STREAM f KEY (id STRING) TIME t INTEGER WATERMARK 2;
    CREATE QUERY q AS CONSTRAIN u, v FROM e AS u, f AS v WHERE SPAN(u, v) <= 3 EMIT EARLY;
"""


def early(case: Case) -> Case:
    """The case with EMIT EARLY."""
    return Case(case.workbook.rstrip().removesuffix(";") + " EMIT EARLY;", case.query, case.rows, case.relations)


def by_step(run: ConstrainRun, query: int = 0) -> list[Counter]:
    """The answers of each step so far."""
    outcomes, steps = run.outcomes, []
    for start in range(0, len(outcomes), run.n_buckets):
        run.outcomes = outcomes[start : start + run.n_buckets]
        steps.append(Counter(map(frozen, run.answers(query))))
    run.outcomes = outcomes
    return steps


def arrived(case: Case, batches: list[Rows]) -> Counter:
    """The solutions among the events of the first batches."""
    rows = {name: [row for batch in batches for row in batch[name]] for name in case.rows}
    return truth_of(Case(case.workbook, case.query, rows, case.relations))


@examples(40)
@given(st.data(), st.sampled_from([0, 1, 2, 30]), st.sampled_from(["", *STRATEGIES]))
def test_a_solution_is_reported_when_its_last_event_arrives(data: st.DataObject, delay: int, strategy: str) -> None:
    case = data.draw(constrain_cases(connected=True, consistent=True, watermark=delay))
    assume(analyse(bound_query(case.workbook, case.query)).contradiction() is None)
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    job = in_context(job_of(early(case), strategy), live=True)
    run = ConstrainRun(job, data.draw(st.sampled_from([1, 2, 7])))
    run.run(batches)
    assert run.counts.late == 0
    known = [arrived(case, batches[:number]) for number in range(len(batches) + 1)]
    # Nothing is left for the end of the input.
    assert by_step(run) == [*(after - before for before, after in zip(known, known[1:], strict=False)), Counter()]


@examples(20)
@given(st.data())
def test_a_batch_run_gives_the_same_answers(data: st.DataObject) -> None:
    case = data.draw(constrain_cases())
    assume(analyse(bound_query(case.workbook, case.query)).contradiction() is None)
    run = ConstrainRun(job_of(early(case)))
    run.step(case.rows, end=True)
    assert Counter(map(frozen, run.answers())) == truth_of(case)


def at(id_: str, t: int) -> dict[str, Any]:
    return {"id": id_, "t": t}


def test_a_silent_stream_delays_nothing() -> None:
    run = ConstrainRun(local_job(TWO_STREAMS, "q", live=True))
    run.step({"e": [], "f": [at("x", 1)]})
    for t in range(50, 100):
        run.step({"e": [], "f": [at("y", t)]})
    run.step({"e": [at("a", 1)], "f": []})
    # The stream e was silent until now, so its row is not late.
    assert [len(step) for step in by_step(run)][-1] == 1
    run.step({"e": [at("b", 98)], "f": []})
    assert sum(by_step(run)[-1].values()) == 5  # 95 to 99


def test_late_and_repeated_rows_make_no_answers() -> None:
    run = ConstrainRun(local_job(TWO_STREAMS, "q", live=True), 1)
    run.step({"e": [at("a", 10)], "f": [at("x", 10)]})
    run.step({"e": [at("a", 10)], "f": [at("x", 10), at("x", 10)]})
    run.step({"e": [at("b", 20)], "f": [at("y", 20)]})
    run.step({"e": [at("c", 10)], "f": []})
    run.step({}, end=True)
    assert [sum(step.values()) for step in by_step(run)] == [1, 0, 1, 0, 0]
    assert (run.counts.duplicate, run.counts.late, run.counts.used) == (3, 1, 4)
    assert [row["reason"] for row in run.rejected] == ["late"]


def test_other_queries_of_the_pass_wait_for_the_watermark() -> None:
    text = "CREATE STREAM e KEY (id STRING) TIME t INTEGER WATERMARK 5;" + "".join(
        f"CREATE QUERY q{number} AS CONSTRAIN u, v FROM e WHERE v.t - u.t IN [1, 3]{emit};"
        for number, emit in enumerate(("", " EMIT EARLY"))
    )
    catalog = declared(text)
    bound = [bind(query, catalog) for query in catalog.queries()]
    job = make_job(bound, JobContext(layouts_for(bound[0].streams), {}, FINGERPRINT, live=True))
    run = ConstrainRun(job, 2)
    for rows in ([at("a", 1), at("c", 3)], [at("b", 2)], [at("d", 4)], [at("z", 9)], [at("z", 20)]):
        run.step({"e": rows})
    run.step({}, end=True)
    # Pairs of 1, 2, 3 and 4; the watermark is 4 after the fourth step, and 15 after the fifth.
    assert [sum(step.values()) for step in by_step(run, 1)] == [1, 2, 3, 0, 0, 0]
    assert [sum(step.values()) for step in by_step(run, 0)] == [0, 0, 0, 3, 3, 0]


def test_events_far_from_new_ones_are_not_searched_again() -> None:
    run = ConstrainRun(local_job(TWO_STREAMS, "q", live=True), 1)
    run.step({"e": [at("a", t) for t in range(0, 1000, 10)], "f": []})
    run.step({"e": [at("b", 500)], "f": []})
    operator = run.job.operator()
    operator.open(run.states[0])
    held = operator._buffer.held
    assert len(held) == 101
    assert operator._near(held, held.t == 500).sum() == 2
