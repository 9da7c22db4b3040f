"""MONITOR against the truth: the same regions and probabilities, however the input comes and where it goes."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, seconds
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import PROBABILITY, PROBABILITY_HILLS, assert_same
from tests.monitor.local import MonitorRun, run_of
from tests.monitor.strategies import monitor_cases
from tests.oracles.monitor import Answer, answers
from tests.splits import disordered_splits, splits


def truth_of(case: Case) -> tuple[list[Answer], list[str]]:
    """What the oracle answers, and the names of the operands."""
    query = bound_query(case.workbook, case.query)
    return answers(query, case.rows, case.relations), [operand.label for operand in query.operands]


def has_hills(case: Case) -> bool:
    """Whether a probability may have several hills."""
    return any(op in case.workbook for op in (">", "<>"))


@examples(80)
@given(monitor_cases(crossed=True, contradictions=True), st.sampled_from([1, 3, 7]))
def test_batch_gives_the_regions_of_the_truth(case: Case, n_buckets: int) -> None:
    truth, labels = truth_of(case)
    event(f"{'some' if truth else 'no'} answers")
    assert_same(run_of(case, [case.rows], n_buckets).rows(), truth, labels, has_hills(case))


@examples(30)
@given(monitor_cases(decimals=True, tables=False), st.sampled_from([1, 6]))
def test_decimal_fractions_are_off_by_rounding_alone(case: Case, n_buckets: int) -> None:
    """What is just as probable as THRESHOLD asks may be answered or not: the oracle searches, and may fall short."""
    threshold = bound_query(case.workbook, case.query).threshold
    short = PROBABILITY_HILLS if has_hills(case) else PROBABILITY
    truth, labels = truth_of(case)
    found, wanted = (
        [each for each in rows if not threshold or abs(each["probability"] - threshold) > short]
        for rows in (run_of(case, [case.rows], n_buckets).rows(), truth)
    )
    assert_same(found, wanted, labels, has_hills(case))


@examples(40)
@given(st.data(), monitor_cases(contradictions=True))
def test_any_split_validates_the_answers_of_the_whole(data: st.DataObject, case: Case) -> None:
    batches = data.draw(splits(case.rows, clock=seconds))
    run = run_of(case, batches, data.draw(st.sampled_from([1, 3, 7])), live=True)
    truth, labels = truth_of(case)
    assert_same(run.rows(), truth, labels, has_hills(case))
    assert run.counts.late == 0


@examples(40)
@given(st.data(), st.sampled_from([1, 2]), st.booleans())
def test_any_arrival_within_the_delay_validates_the_answers_of_the_whole(
    data: st.DataObject, delay: int, by_watermark: bool
) -> None:
    waits = {"watermark": delay} if by_watermark else {"max_delay": delay}
    case = data.draw(monitor_cases(**waits))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    run = run_of(case, batches, data.draw(st.sampled_from([1, 3])), live=True)
    truth, labels = truth_of(case)
    assert run.counts.late == 0
    assert_same(run.rows(), truth, labels, has_hills(case))


@examples(30)
@given(st.data(), monitor_cases(thresholds=False))
def test_what_is_tentative_is_validated_or_invalidated(data: st.DataObject, case: Case) -> None:
    """Every tentative answer has an end, and nothing is taken back that was not said."""
    run = run_of(case, data.draw(splits(case.rows, clock=seconds)), 1, live=True)
    _, labels = truth_of(case)
    said = [*run.rows("tentative")]
    taken_back = run.rows("invalidated")
    validated = run.rows("validated")
    assert_same([each for each in taken_back if not _found(each, said, labels)], [], labels)
    kept = [each for each in said if not _found(each, taken_back, labels)]
    assert_same([each for each in kept if not _found(each, validated, labels)], [], labels)


def _found(answer: Answer, others: list[Answer], labels: list[str]) -> bool:
    try:
        near = [each for each in others if all(each[label] == answer[label] for label in labels)]
        return any(abs(each["valid_to"] - answer["valid_to"]) < 1e-5 for each in near)
    except KeyError:
        return False


@examples(20)
@given(monitor_cases(thresholds=False))
def test_state_saved_and_opened_between_steps_is_all_there_is(case: Case) -> None:
    """`LocalRun` makes a new operator from bytes for every step; one that goes on must say the same."""
    run = run_of(case, [case.rows], 1, live=True)
    job = run.job
    whole = MonitorRun(job, 1)
    whole.step(case.rows, end=True)
    assert sorted(map(repr, whole.rows())) == sorted(map(repr, run.rows()))
