"""MONITOR compared with the oracle: the same regions and probabilities for all splits, arrival orders and buckets."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, seconds
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import PROBABILITY, PROBABILITY_MAXIMA, assert_same
from tests.monitor.local import MonitorRun, run_of
from tests.monitor.strategies import monitor_cases
from tests.oracles.monitor import Answer, answers
from tests.splits import disordered_splits, splits


def oracle_answers(case: Case) -> tuple[list[Answer], list[str]]:
    """The answers of the oracle, and the names of the operands."""
    query = bound_query(case.workbook, case.query)
    return answers(query, case.rows, case.relations), [operand.label for operand in query.operands]


def may_have_several_maxima(case: Case) -> bool:
    """Whether a probability may have several local maxima."""
    return any(op in case.workbook for op in (">", "<>"))


@examples(80)
@given(monitor_cases(crossed=True, contradictions=True), st.sampled_from([1, 3, 7]))
def test_batch_gives_the_regions_of_the_oracle(case: Case, n_buckets: int) -> None:
    expected, labels = oracle_answers(case)
    event(f"{'some' if expected else 'no'} answers")
    assert_same(run_of(case, [case.rows], n_buckets).rows(), expected, labels, may_have_several_maxima(case))


@examples(30)
@given(monitor_cases(decimals=True, tables=False), st.sampled_from([1, 6]))
def test_decimal_fractions_only_have_rounding_errors(case: Case, n_buckets: int) -> None:
    assert_same_as_the_decimals_that_are_written(case, n_buckets)


@examples(40)
@given(
    st.booleans().flatmap(
        lambda decimals: monitor_cases(decimals=decimals, equalities=True, tables=False, windows=[1, 0, 0.7, 20])
    ),
    st.sampled_from([1, 6]),
)
def test_segments_and_points_are_regions(case: Case, n_buckets: int) -> None:
    assert_same_as_the_decimals_that_are_written(case, n_buckets)


def assert_same_as_the_decimals_that_are_written(case: Case, n_buckets: int) -> None:
    """An answer at the threshold may be missing, because the oracle searches for the maximum and may be too low."""
    threshold = bound_query(case.workbook, case.query).threshold
    tolerance = PROBABILITY_MAXIMA if may_have_several_maxima(case) else PROBABILITY
    expected, labels = oracle_answers(case)
    near_threshold_removed = (
        [answer for answer in rows if not threshold or abs(answer["probability"] - threshold) > tolerance]
        for rows in (run_of(case, [case.rows], n_buckets).rows(), expected)
    )
    assert_same(*near_threshold_removed, labels, may_have_several_maxima(case))


@examples(40)
@given(st.data(), monitor_cases(contradictions=True))
def test_any_split_validates_the_batch_answers(data: st.DataObject, case: Case) -> None:
    batches = data.draw(splits(case.rows, clock=seconds))
    run = run_of(case, batches, data.draw(st.sampled_from([1, 3, 7])), live=True)
    expected, labels = oracle_answers(case)
    assert_same(run.rows(), expected, labels, may_have_several_maxima(case))
    assert run.counts.late == 0


@examples(40)
@given(st.data(), st.sampled_from([1, 2]), st.booleans())
def test_any_arrival_within_the_delay_validates_the_batch_answers(
    data: st.DataObject, delay: int, by_watermark: bool
) -> None:
    waits = {"watermark": delay} if by_watermark else {"max_delay": delay}
    case = data.draw(monitor_cases(**waits))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds, common_clock=not by_watermark))
    run = run_of(case, batches, data.draw(st.sampled_from([1, 3])), live=True)
    expected, labels = oracle_answers(case)
    assert run.counts.late == 0
    assert_same(run.rows(), expected, labels, may_have_several_maxima(case))


@examples(30)
@given(st.data(), monitor_cases(thresholds=False))
def test_tentative_answers_are_validated_or_invalidated(data: st.DataObject, case: Case) -> None:
    """Every tentative answer is validated or invalidated, and only tentative answers are invalidated."""
    run = run_of(case, data.draw(splits(case.rows, clock=seconds)), 1, live=True)
    _, labels = oracle_answers(case)
    tentative = [*run.rows("tentative")]
    invalidated = run.rows("invalidated")
    validated = run.rows("validated")
    assert_same([answer for answer in invalidated if not _is_among(answer, tentative, labels)], [], labels)
    not_invalidated = [answer for answer in tentative if not _is_among(answer, invalidated, labels)]
    assert_same([answer for answer in not_invalidated if not _is_among(answer, validated, labels)], [], labels)


def _is_among(answer: Answer, others: list[Answer], labels: list[str]) -> bool:
    try:
        candidates = [candidate for candidate in others if all(candidate[label] == answer[label] for label in labels)]
        return any(abs(candidate["valid_to"] - answer["valid_to"]) < 1e-5 for candidate in candidates)
    except KeyError:
        return False


@examples(20)
@given(monitor_cases(thresholds=False))
def test_saved_state_is_complete(case: Case) -> None:
    """`LocalRun` opens a new operator from saved bytes in every step; a run in one step has the same answers."""
    run = run_of(case, [case.rows], 1, live=True)
    job = run.job
    whole = MonitorRun(job, 1)
    whole.step(case.rows, end=True)
    assert sorted(map(repr, whole.rows())) == sorted(map(repr, run.rows()))


def test_a_merged_region_that_is_a_triangle_has_three_corners() -> None:
    """The two parts of an ABS(...) >= constraint share a side, and touch on a straight one."""
    case = Case(
        "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 1 PERIOD 2;"
        "CREATE QUERY q AS MONITOR a, b FROM e WHERE ABS(a.x - b.x) >= 1 AND b.id < a.id WITHIN 1 SEMANTICS MAY;",
        "q",
        {"e": [{"id": "a", "t": 0, "x": 0.0, "x_rate": 0.0}, {"id": "b", "t": 1, "x": 0.0, "x_rate": 1.0}]},
        {},
    )
    (answer,) = run_of(case, [case.rows], 1).rows()
    assert [tuple(corner) for corner in answer["boundary"]] == [(1, 0), (3, 2), (1, 2)]
