"""EMIT EARLY: matches among the rows that have arrived are provisional, and final ones are those without EMIT EARLY."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Rows, seconds
from tests.drawn import examples
from tests.local import FINGERPRINT, declared, in_context, make_job, prepared_query
from tests.oracles.sequence_early import PROVISIONAL, provisional_matches
from tests.sequence.local import Answer, SequenceRun, job_of, probabilities, truth_of
from tests.sequence.strategies import Case, bound_case, sequence_cases
from tests.sequence.test_against_enumeration import CLAUSES, ERROR, same
from tests.splits import disordered_splits

from anabranch.binding.binder import bind
from anabranch.plan import Step
from anabranch.planning.layouts import layouts_for
from anabranch.transport.job import JobContext

#: The clauses with which EMIT EARLY can be used.
EARLY: dict[str, dict[str, Any]] = {
    "closed": {"emits": ["EARLY"]},
    "best": {"emits": ["BEST, EARLY"]},
    "next": {"emits": ["NEXT, EARLY"]},
    "expired": {"emits": ["EXPIRED, EARLY", "NEXT, EXPIRED, EARLY"]},
    "probabilities": {"probabilities": True, "emits": ["EARLY", "BEST, EARLY"], "logic": False},
    "runs": {"runs": True, "emits": ["EARLY", "NEXT, EARLY"]},
    "occurs": {**CLAUSES["occurs"], "emits": ["EARLY"]},
}


def by_step(run: SequenceRun, query: int = 0) -> list[list[Answer]]:
    """The answers of each step so far."""
    outcomes, steps = run.outcomes, []
    for start in range(0, len(outcomes), run.n_buckets):
        run.outcomes = outcomes[start : start + run.n_buckets]
        steps.append(run.answers(query))
    run.outcomes = outcomes
    return steps


def provisional(answers: list[Answer]) -> dict[Any, float]:
    return probabilities([answer for answer in answers if answer["status"] == PROVISIONAL])


def final(answers: list[Answer]) -> dict[Any, float]:
    return probabilities([answer for answer in answers if answer["status"] != PROVISIONAL])


def live_run(case: Case, batches: list[Rows], n_buckets: int) -> SequenceRun:
    run = SequenceRun(in_context(job_of(case), live=True), n_buckets)
    run.run(batches)
    assert run.counts.late == 0
    return run


@pytest.mark.parametrize("clause", sorted(EARLY))
@examples(20)
@given(data=st.data(), delay=st.sampled_from([2, 1, 30, 0]))
def test_matches_are_provisional_when_their_last_event_arrives(clause: str, data: st.DataObject, delay: int) -> None:
    case = data.draw(sequence_cases(windowed=True, watermark=delay, **EARLY[clause]))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    run, query = live_run(case, batches, data.draw(st.sampled_from([1, 2, 7]))), bound_case(case)
    *steps, end = by_step(run)
    assert not provisional(end)
    for number, step in enumerate(steps, start=1):
        expected = probabilities(provisional_matches(query, batches[:number], delay, case.relations))
        event(f"{clause}: {'some' if expected else 'no'} provisional matches")
        assert same(provisional(step), expected, ERROR.get(clause, 1e-9))


@pytest.mark.parametrize("clause", sorted(EARLY))
@examples(10)
@given(data=st.data(), delay=st.sampled_from([2, 1, 30]))
def test_final_answers_are_those_of_the_oracle_for_any_split(clause: str, data: st.DataObject, delay: int) -> None:
    case = data.draw(sequence_cases(windowed=True, watermark=delay, **EARLY[clause]))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    run = live_run(case, batches, data.draw(st.sampled_from([1, 2, 7])))
    assert same(final(run.answers()), truth_of(case), ERROR.get(clause, 1e-9))


@examples(20)
@given(st.data(), st.sampled_from(sorted(EARLY)))
def test_a_batch_run_has_final_answers_only(data: st.DataObject, clause: str) -> None:
    case = data.draw(sequence_cases(**EARLY[clause]))
    run = SequenceRun(job_of(case))
    run.step(case.rows, end=True)
    assert not provisional(run.answers())
    assert same(final(run.answers()), truth_of(case), ERROR.get(clause, 1e-9))


STREAM = "CREATE STREAM e KEY (k STRING) VALUE (v STRING) TIME t INTEGER WATERMARK 5;"
STOLEN = """SEQUENCE (x, !y, z) FROM e WHERE x.v = 'shelf' AND y.v = 'till' AND z.v = 'exit' AND x.k = y.k AND y.k = z.k
    WITHIN 20"""


def read(v: str, t: int) -> dict[str, Any]:
    return {"k": "pen", "v": v, "t": t}


def test_a_match_that_a_later_row_excludes_has_no_final_answer() -> None:
    catalog = declared(f"{STREAM} CREATE QUERY early AS {STOLEN} EMIT EARLY; CREATE QUERY late AS {STOLEN};")
    bound = [bind(catalog.query(name), catalog) for name in ("early", "late")]
    context = JobContext(layouts_for(bound[0].streams), {}, FINGERPRINT, live=True, folders=(".", "."))
    run = SequenceRun(make_job(bound, context), 1)
    # The reading of the till arrives last; the second exit is never excluded, and the row at 30 ends the first window.
    for rows in ([read("shelf", 1)], [read("exit", 4)], [read("till", 3)], [read("exit", 4)], [read("shelf", 30)]):
        run.step({"e": rows})
    run.step({"e": [read("exit", 33)]})
    run.step({}, end=True)
    assert [[(a["t"], a["status"]) for a in step] for step in by_step(run)] == [
        [], [(4, "provisional")], [], [], [], [(33, "provisional")], [(33, "matched")],
    ]  # fmt: skip
    assert [[a["t"] for a in step] for step in by_step(run, 1)] == [[], [], [], [], [], [], [33]]


@pytest.mark.parametrize("clause", ["EMIT EARLY", "EMIT NEXT, EARLY"])
def test_provisional_matches_need_no_state_once_they_are_final(clause: str) -> None:
    catalog = declared(f"{STREAM} CREATE QUERY early AS {STOLEN} {clause};")
    bound = bind(catalog.query("early"), catalog)
    run = SequenceRun(make_job([bound], JobContext(layouts_for(bound.streams), {}, FINGERPRINT, True, (".",))), 1)
    sizes = []
    for window in range(50):
        start = 100 * window
        run.step({"e": [read("shelf", start), read("exit", start + 3)]})
        sizes.append(len(run.states[0]))
    assert max(sizes[5:]) == max(sizes[:5])


def test_explain_says_what_is_provisional_and_what_it_costs() -> None:
    plan = prepared_query(f"{STREAM} CREATE QUERY q AS {STOLEN} EMIT NEXT, EARLY;", "q").plan
    assert plan.streams == "yes"
    assert plan.steps[-1] == Step("emit", "on a stream, also each match when its last event arrives, as provisional")
    assert "in each micro-batch with the events that wait for the watermark" in plan.cost
