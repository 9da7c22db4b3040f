"""MONITOR over live inputs: partial answers, late rows, keys without rows, duplicates, and the state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import DOUBLE, EPOCH, INTEGER, TIMES, Case, seconds
from tests.drawn import examples
from tests.local import bound_query, in_context, local_job
from tests.monitor.compare import assert_same, predictions_of
from tests.monitor.local import MonitorRun, run_of
from tests.monitor.strategies import monitor_cases
from tests.oracles.monitor import Answer, answers
from tests.splits import disordered_splits, splits

from anabranch.transport.state import StateError

STREAM = "CREATE STREAM e KEY (id INTEGER) VALUE (x DOUBLE) TIME t {} MODEL PREDICTED ERROR {} PERIOD {};\n"
ALONE = "MONITOR a FROM e WHERE a.x < 100"
PAIR = "MONITOR a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 1 AND a.id < b.id"

Row = dict[str, Any]


def row(key: int, time: Any, x: float = 0.0, rate: float = 0.0) -> Row:
    return {"id": key, "t": time, "x": x, "x_rate": rate}


def run_over(
    query: str, *batches: Sequence[Row], kind: str = DOUBLE, error: float = 0, period: float = 10, buckets: int = 1
) -> MonitorRun:
    """A run over rows of one stream whose input has not ended."""
    workbook = f"{STREAM.format(kind, error, period)}CREATE QUERY q AS {query};\n"
    run = MonitorRun(local_job(workbook, "q", live=True), buckets)
    for batch in batches:
        run.step({"e": batch})
    return run


def validity(found_answers: Sequence[Answer]) -> list[tuple[float, float]]:
    return [(answer["valid_from"], answer["valid_to"]) for answer in found_answers]


# ---------------------------------------------------------------- EVERY


def test_partial_answers_grow_with_every_tick() -> None:
    """The example of the paper: valid from 5 to 20, a delay of 5, and the tick 1 or 2."""
    query = "MONITOR a FROM e WHERE a.x >= 5 AND a.id = 1 MAX DELAY 5 EVERY {}"
    clock = [[row(1, 0.0, 0.0, 1.0)], *([row(2, float(t))] for t in (9, 15, 16, 17, 30))]
    one = run_over(query.format(1), *clock, period=20)
    assert validity(one.rows("partial")) == [(5, 10), (5, 11), (5, 12)]
    assert validity(one.rows()) == [(5, 20)]
    two = run_over(query.format(2), *clock, period=20)
    assert validity(two.rows("partial")) == [(5, 10), (5, 12)]
    assert validity(two.rows()) == [(5, 20)]


def test_each_tick_is_reported_once() -> None:
    run = run_over(f"{ALONE} AND a.id = 1 EVERY 4", [row(1, 0.0)], *([row(2, t)] for t in (4.0, 5.0, 7.5, 8.0, 8.5)))
    assert validity(run.rows("partial")) == [(0, 4), (0, 8)]


def test_an_answer_that_ended_before_the_tick_is_only_validated() -> None:
    """The value moves from -8 to 12, and is at least 5 away from 0 until 1.5, and again from 6.5 on."""
    query = "MONITOR a FROM e WHERE ABS(a.x) >= 5 AND a.id = 1 EVERY 1"
    run = run_over(query, [row(1, 0.0, -8.0, 2.0)], *([row(2, t)] for t in (1.0, 2.0, 8.0)))
    assert validity(run.rows("partial")) == [(0, 1), (6.5, 8)]
    assert validity(run.rows()) == [(0, 1.5)]


def test_partial_answers_of_a_pair_use_no_later_instants() -> None:
    """A value of b matches only the value of a two units later, so the answer starts when that instant is reached."""
    query = f"{PAIR} WITHIN 2 EVERY 1"
    run = run_over(
        query, [row(1, 0.0, 0.0, 1.0), row(2, 0.0, 3.0, 1.0)], *([row(3, float(t), 1e6)] for t in (1, 2, 3, 4, 5))
    )
    assert validity(run.rows("partial")) == [(2, 3), (2, 4), (2, 5)]
    for answer in run.rows("partial"):
        assert max(max(corner) for corner in answer["boundary"]) == answer["valid_to"]


@examples(20)
@given(st.data(), st.sampled_from([1, 0.5, 2]))
def test_partial_answers_grow_into_the_validated_one(data: st.DataObject, every: float) -> None:
    case = data.draw(monitor_cases(every=every, thresholds=False, tables=False))
    batches = data.draw(splits(case.rows, clock=seconds))
    run = run_of(case, batches, data.draw(st.sampled_from([1, 3])), live=True)
    labels = [operand.label for operand in bound_query(case.workbook, case.query).operands]
    query = bound_query(case.workbook, case.query)
    assert_same(run.rows(), answers(query, case.rows, case.relations), labels, several_maxima=True)
    event(f"{'some' if run.rows('partial') else 'no'} partial answers")
    for part in run.rows("partial"):
        tick = part["valid_to"] / every
        whole = [
            answer
            for answer in run.rows()
            if predictions_of(answer, labels) == predictions_of(part, labels)
            and abs(answer["valid_from"] - part["valid_from"]) < 1e-5
            and answer["valid_to"] > part["valid_to"] - 1e-5
        ]
        same_predictions = [
            answer for answer in run.rows() if predictions_of(answer, labels) == predictions_of(part, labels)
        ]
        # One region may end before the tick while another region of the same predictions continues.
        assert whole or len(same_predictions) > 1, (part, run.rows())
        is_cut = abs(tick - round(tick)) < 1e-5
        assert is_cut or len(same_predictions) > 1 or part["valid_to"] <= whole[0]["valid_to"] + 1e-5
        if whole:
            assert part["probability"] <= max(answer["probability"] for answer in whole) + 1e-6


def test_partial_answers_of_timestamps() -> None:
    at = [EPOCH + timedelta(seconds=s) for s in (0, 3, 5)]
    run = run_over(
        f"{ALONE} AND a.id = 1 EVERY 2 SECONDS", [row(1, at[0])], [row(2, at[1])], [row(2, at[2])], kind="TIMESTAMP"
    )
    start = EPOCH.timestamp()
    assert validity(run.rows("partial")) == [(start, start + 2), (start, start + 4)]


# ---------------------------------------------------------------- MAX DELAY


@pytest.mark.parametrize("kind", [DOUBLE, INTEGER])
def test_a_late_prediction_within_the_delay_cuts_an_answer(kind: str) -> None:
    number = float if kind == DOUBLE else int
    rows = [row(1, number(0)), row(2, number(6), 1e6), row(1, number(4), 1e6)]
    run = run_over(f"{ALONE} MAX DELAY 3", *([single_row] for single_row in rows), kind=kind)
    assert validity(run.rows("tentative")) == [(0, 10), (0, 4)]
    assert validity(run.rows("invalidated")) == [(0, 10)]
    assert run.rows() == []
    assert (run.counts.late, run.counts.used) == (0, 3)
    run.step({"e": [row(2, number(20), 1e6)]})
    assert validity(run.rows()) == [(0, 4)]
    batch = run_over(ALONE, rows, kind=kind)
    batch.step({}, end=True)
    assert validity(batch.rows()) == [(0, 4)]


def test_after_the_delay_a_prediction_is_late_and_quarantined() -> None:
    run = run_over(f"{ALONE} MAX DELAY 3", [row(1, 0.0)], [row(2, 7.5, 1e6)], [row(1, 4.0, 1e6, 2.0)])
    assert validity(run.rows("invalidated")) == []
    assert (run.counts.read, run.counts.used, run.counts.late) == (3, 2, 1)
    (rejected,) = run.rejected
    assert "late" in rejected["reason"].lower()
    assert all(part in rejected["row"] for part in ('"id"', "4.0", "1000000.0", "2.0"))
    run.step({}, end=True)
    assert validity(run.rows()) == [(0, 10)]


def test_a_row_at_the_watermark_is_not_late() -> None:
    run = run_over(f"{ALONE} MAX DELAY 3", [row(1, 0.0)], [row(2, 7.0, 1e6)], [row(1, 4.0, 1e6)])
    assert run.counts.late == 0
    run.step({}, end=True)
    assert validity(run.rows()) == [(0, 4)]


def test_a_late_prediction_cuts_the_answer_about_a_pair() -> None:
    run = run_over(f"{PAIR} WITHIN 1 MAX DELAY 5", [row(1, 0.0), row(2, 0.0)], [row(3, 4.0, 1e6)], [row(2, 2.0, -1e6)])
    assert validity(run.rows("tentative")) == [(0, 10), (0, 3)]
    assert validity(run.rows("invalidated")) == [(0, 10)]
    run.step({}, end=True)
    assert validity(run.rows()) == [(0, 3)]


@pytest.mark.parametrize("distance", [0.0, 7e-4, 3e-4, 1.2e-3, 7e-10])
def test_an_answer_that_ends_near_the_watermark_is_validated_once(distance: float) -> None:
    """It is validated once, at this watermark or at the next."""
    end = 1e6 - distance
    run = run_over(
        f"MONITOR a FROM e WHERE a.x < {end!r}",
        [row(1, 0.0, 0.0, 1.0)],
        *([row(2, t, 2e6)] for t in (1e6, 1.5e6, 2e6)),
        period=2e6,
    )
    run.step({}, end=True)
    assert [answer["valid_to"] for answer in run.rows()] == pytest.approx([end])


# ---------------------------------------------------------------- a stream without new rows

TWO_STREAMS = (
    "CREATE STREAM e KEY (id INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 10;\n"
    "CREATE STREAM f KEY (id INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 4;\n"
    "CREATE QUERY q AS MONITOR a, b FROM e AS a, f AS b WHERE ABS(a.x - b.x) <= 1{};\n"
)


@pytest.mark.parametrize(("clauses", "validated"), [(" MAX DELAY 5", [(0, 4)]), ("", [])])
def test_max_delay_validates_while_one_stream_is_silent(clauses: str, validated: list[tuple[float, float]]) -> None:
    """A report takes at most 5 to arrive: at 20, no report of the other stream at 4 is on its way."""
    run = MonitorRun(local_job(TWO_STREAMS.format(clauses), "q", live=True), 1)
    run.step({"e": [row(1, 0.0)], "f": [row(2, 0.0)]})
    run.step({"e": [row(1, 9.0, 1e6)]})
    assert validity(run.rows()) == []
    run.step({"e": [row(1, 20.0, 1e6)]})
    assert validity(run.rows()) == validated
    run.step({"f": [row(2, 16.0)]})
    assert run.counts.late == 0
    run.step({}, end=True)
    assert validity(run.rows()) == [(0, 4)]


def test_a_report_that_is_later_than_max_delay_is_quarantined() -> None:
    run = MonitorRun(local_job(TWO_STREAMS.format(" MAX DELAY 5"), "q", live=True), 1)
    run.step({"e": [row(1, 0.0)], "f": [row(2, 0.0)]})
    run.step({"e": [row(1, 9.0)]})
    run.step({"f": [row(2, 3.0, 1e6), row(2, 4.0, 1e6)]})
    run.step({}, end=True)
    assert run.counts.late == 1
    assert validity(run.rows()) == [(0, 4)]


@examples(10)
@given(st.data())
def test_answers_are_validated_as_soon_as_no_report_can_change_them(data: st.DataObject) -> None:
    """After each micro-batch, exactly the answers that end before the newest row of any stream minus MAX DELAY."""
    options = {"time_types": [DOUBLE, INTEGER], "operands": [2], "thresholds": False, "tables": False}
    case = data.draw(monitor_cases(max_delay=1, **options))
    batches = data.draw(disordered_splits(case.rows, 1, clock=seconds, common_clock=True))
    query = bound_query(case.workbook, case.query)
    labels = [operand.label for operand in query.operands]
    expected = answers(query, case.rows, case.relations)
    run, newest = MonitorRun(local_job(case.workbook, case.query, case.relations, live=True), 1), -math.inf
    for batch in batches:
        run.step(batch)
        newest = max([newest, *(seconds(row) for rows in batch.values() for row in rows)])
        near = [answer for answer in expected if abs(float(answer["valid_to"]) - (newest - 1)) < 1e-5]
        event("at the watermark" if near else "not at the watermark")
        before = [answer for answer in expected if float(answer["valid_to"]) < newest - 1]
        found = [answer for answer in run.rows() if answer["valid_to"] < newest - 1 - 1e-5 or not near]
        assert_same(found, [answer for answer in before if answer not in near], labels, several_maxima=True)


# ---------------------------------------------------------------- tentative answers


def test_an_unchanged_tentative_answer_is_sent_once() -> None:
    """The second report of a cuts its first prediction at 8, which is after the answer has ended with that of b."""
    run = MonitorRun(local_job(TWO_STREAMS.format(""), "q", live=True), 1)
    run.step({"e": [row(1, 0.0)], "f": [row(2, 0.0)]})
    run.step({"e": [row(1, 8.0)]})
    assert validity(run.rows("tentative")) == [(0, 4)]
    assert run.rows("invalidated") == []


def test_of_two_answers_about_one_pair_only_the_cut_one_is_sent_again() -> None:
    run = run_over(
        "MONITOR a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) >= 2 AND a.id < b.id",
        [row(1, 0.0, -5.0, 1.0), row(2, 0.0)],
        [row(2, 8.0, 1e6)],
    )
    assert validity(run.rows("tentative")) == [(0, 3), (7, 10), (7, 8), (8, 10)]
    assert validity(run.rows("invalidated")) == [(7, 10)]


# ---------------------------------------------------------------- keys without rows, duplicates


def test_a_key_without_rows_for_a_period_has_no_prediction() -> None:
    run = run_over(PAIR, [row(1, 0.0), row(2, 0.0)], [row(2, 9.0)], [row(2, 18.0)], [row(1, 27.0)], [row(2, 27.5)])
    run.step({}, end=True)
    answers_found = [(row["a"]["t"], row["b"]["t"], row["valid_from"], row["valid_to"]) for row in run.rows()]
    assert sorted(answers_found) == [(0, 0, 0, 9), (0, 9, 9, 10), (27, 18, 27, 27.5), (27, 27.5, 27.5, 37)]


@pytest.mark.parametrize("buckets", [1, 3, 6])
def test_a_duplicate_prediction_is_used_once(buckets: int) -> None:
    run = run_over(PAIR, [row(1, 0.0), row(2, 0.0), row(1, 0.0)], [row(2, 0.0), row(1, 0.0, -0.0)], buckets=buckets)
    run.step({}, end=True)
    assert (run.counts.read, run.counts.used, run.counts.duplicate) == (5, 2, 3)
    assert validity(run.rows()) == [(0, 10)]
    assert len(run.rows("tentative")) == 1


# ---------------------------------------------------------------- state and memory


def some_state() -> MonitorRun:
    return run_over(f"{PAIR} WITHIN 1 MAX DELAY 2 EVERY 1", [row(1, 0.0), row(2, 0.5)], [row(3, 4.0, 1e6)], error=1)


def test_damaged_state_is_detected() -> None:
    run = some_state()
    state = run.states[0]
    assert state is not None
    for index in range(0, len(state), max(1, len(state) // 200)):
        damaged = bytearray(state)
        damaged[index] ^= 0x40
        with pytest.raises(StateError):
            run.job.operator().open(bytes(damaged))


def test_state_of_another_query_is_refused() -> None:
    run = some_state()
    other = in_context(run.job, fingerprint="f" * 32)
    with pytest.raises(StateError, match="another query"):
        other.operator().open(run.states[0])


def test_saved_state_is_the_same_after_it_is_opened() -> None:
    run = some_state()
    operator = run.job.operator()
    operator.open(run.states[0])
    assert operator.save() == run.states[0]


@pytest.mark.parametrize("clauses", ["", " WITHIN 2", " MAX DELAY 3", " BUFFER 50", " EVERY 1"])
def test_the_state_is_bounded(clauses: str) -> None:
    """After many predictions, a bucket holds only the latest ones, and its state does not grow."""
    run = run_over(f"{PAIR}{clauses}")
    kept, sizes = [], []
    for t in range(300):
        run.step({"e": [row(key, float(t), 0.1 * key, 0.01) for key in range(3)]})
        kept.append(run.outcomes[-1].counts.kept)
        sizes.append(len(run.states[0] or b""))
    assert max(kept[20:]) <= 3 * 14
    assert max(kept[32:]) == max(kept[20:32])
    assert max(sizes[32:]) <= max(sizes[20:32]) + 64


@pytest.mark.parametrize("clauses", ["", " WITHIN 2", " BUFFER 50"])
def test_keys_without_predictions_are_forgotten(clauses: str) -> None:
    run = run_over(f"{PAIR}{clauses}")
    sizes = []
    for t in range(300):
        run.step({"e": [row(10 * t + key, float(t), 0.1 * key, 0.01) for key in range(10)]})
        sizes.append(len(run.states[0] or b""))
    assert max(sizes[200:]) <= 1.05 * max(sizes[50:100])


def test_old_predictions_are_removed_when_time_advances() -> None:
    run = run_over(
        f"{PAIR} WITHIN 2", [row(key, 0.1 * key) for key in range(10)], [row(99, 1e6, 1e6)], [row(99, 1e6 + 1, 1e6)]
    )
    assert run.outcomes[-1].counts.kept <= 2
    assert len(run.rows()) == 45


@examples(20)
@given(st.data(), monitor_cases(time_types=TIMES, thresholds=False, max_delay=1))
def test_every_tentative_answer_is_invalidated_or_validated_once(data: st.DataObject, case: Case) -> None:
    """For each combination: only tentative answers are invalidated, and the remaining ones are validated."""
    run = run_of(case, data.draw(disordered_splits(case.rows, 1, clock=seconds, common_clock=True)), 1, live=True)
    labels = [operand.label for operand in bound_query(case.workbook, case.query).operands]
    open_answers: dict[Any, list[tuple[float, float]]] = {}
    for outcome in run.outcomes:
        part = MonitorRun(run.job, 1)
        part.outcomes = [outcome]
        for answer in part.rows("invalidated"):
            assert any(has_interval(answer, other) for other in open_answers.get(predictions_of(answer, labels), [])), (
                answer
            )
            intervals = open_answers[predictions_of(answer, labels)]
            intervals.remove(next(other for other in intervals if has_interval(answer, other)))
        for answer in part.rows("tentative"):
            open_answers.setdefault(predictions_of(answer, labels), []).append(
                (answer["valid_from"], answer["valid_to"])
            )
        for answer in part.rows("validated"):
            intervals = open_answers.get(predictions_of(answer, labels), [])
            same = [other for other in intervals if has_interval(answer, other)]
            if same:
                intervals.remove(same[0])
    assert not any(open_answers.values())


def has_interval(answer: Answer, interval: tuple[float, float]) -> bool:
    return abs(answer["valid_from"] - interval[0]) < 1e-5 and abs(answer["valid_to"] - interval[1]) < 1e-5
