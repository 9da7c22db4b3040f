"""BUFFER: the predictions in the buffer after each arrival, their contributions, and the answers of a large buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, seconds
from tests.drawn import examples
from tests.local import bound_query, local_job
from tests.monitor.compare import assert_same
from tests.monitor.local import MonitorRun, run_of
from tests.monitor.strategies import monitor_cases
from tests.oracles.monitor_buffer import (
    LEAST_CONTRIBUTION,
    NEWEST,
    OLDEST,
    RANDOM,
    Buffered,
    BufferManager,
)
from tests.splits import splits

from anabranch.columns.times import order_doubles
from anabranch.monitor.kernel import buffer as kernel
from anabranch.monitor.operator import MonitorOperator
from anabranch.monitor.predictions import exact_times

CODES = {
    LEAST_CONTRIBUTION: kernel.LEAST_CONTRIBUTION, OLDEST: kernel.OLDEST, RANDOM: kernel.RANDOM, NEWEST: kernel.NEWEST,
}  # fmt: skip
POLICIES = tuple(CODES)
STREAMS = ("e", "f")

Row = dict[str, Any]
#: The predictions in a buffer: by stream, key and time, when each applies, and sometimes its contribution.
Held = dict[tuple[str, int, float], Any]

numbers = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, 3.25, -2.5, 7.0])
rates = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 0.25])


@st.composite
def drawn_arrivals(draw: Any, most: int = 14, keys: int = 3, streams: int = 1, spreads: bool = False) -> list[Row]:
    """Rows in the order of time; no two have the same key and time."""
    rows: list[Row] = []
    time = 0.0
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.sampled_from([0.0, 1.0, 0.5, 0.25, 2.0, 6.0]))
        row: Row = {"stream": STREAMS[draw(st.integers(0, streams - 1))], "id": draw(st.integers(1, keys)), "t": time}
        row |= {"x": draw(numbers), "x_rate": draw(rates), "y": draw(numbers), "y_rate": draw(rates)}
        row |= {"spread": draw(st.sampled_from([1.0, 0.0, 2.0, 0.5]))} if spreads else {}
        name = (row["stream"], row["id"], row["t"])
        if name not in {(other["stream"], other["id"], other["t"]) for other in rows}:
            rows.append(row)
    return rows


def fractions(row: Row, columns: Sequence[str]) -> list[Fraction]:
    return [Fraction(row[column]) for column in columns]


# ---------------------------------------------------------------- the kernel


class Kernel:
    """The buffer of the kernel; predictions are added one by one."""

    def __init__(self, rows: Sequence[Row], rules: kernel.Rules) -> None:
        n = len(rows)
        stream = np.array([STREAMS.index(row["stream"]) for row in rows], np.int64)
        key = np.array([row["id"] for row in rows], np.int64)
        columns = [np.array([[row[f"{c}{end}"] for c in "xy"] for row in rows]) for end in ("", "_rate")]
        periods = rules.periods[stream]

        def with_room(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.zeros((n, *array.shape[1:]), array.dtype)])

        self.rules, self.n, self.newest = rules, 0, np.full(len(STREAMS), -np.inf)
        times = np.array([row["t"] for row in rows])
        arrays = (
            stream, stream << 32 | key, order_doubles(times), times, np.zeros(n), periods.astype(np.float64), *columns,
            np.ones((n, 2)), np.zeros(n, np.bool_), np.zeros(n), np.arange(n),
        )  # fmt: skip
        self.arrivals = kernel.Versions(*map(with_room, arrays))
        self.versions = kernel.Versions(
            *(np.zeros((2 * n, *column.shape[1:]), column.dtype) for column in self.arrivals)
        )

    def arrive(self, row: int) -> None:
        """Add one of the rows."""
        for version_column, arrival_column in zip(self.versions, self.arrivals, strict=True):
            version_column[self.n] = arrival_column[row]
        known = self.n
        _, self.n = kernel.arrive(self.versions, known, known + 1, self.rules, self.newest)

    def held(self) -> dict[tuple[str, int, float], tuple[float, float, float]]:
        """The predictions in the buffer: when each applies, and its contribution."""
        v = self.versions
        return {
            (STREAMS[v.stream[k]], int(v.key[k] & 0xFFFFFFFF), float(v.time[k])): (
                float(v.time[k] + v.begin[k]), float(v.time[k] + v.end[k]), float(v.contribution[k]),
            )
            for k in range(self.n)
            if v.held[k]
        }  # fmt: skip


def filled_buffer(rows: Sequence[Row], size: int) -> Kernel:
    """A buffer to which all rows were added; only its size discards predictions."""
    buffer = Kernel(rows, kernel.Rules(size, kernel.LEAST_CONTRIBUTION, np.array([100.0, 100.0]), 0.0, 100.0))
    for index in range(len(rows)):
        buffer.arrive(index)
    return buffer


def oracle_of(size: int, policy: str, width: float, periods: Sequence[float]) -> BufferManager:
    return BufferManager(size, policy, dict(zip(STREAMS, map(Fraction, periods), strict=True)), Fraction(width))


def follow(
    oracle: BufferManager, row: Row, actual: dict[tuple[str, int, float], Any], errors: Sequence[Fraction]
) -> None:
    """Add a row to the oracle and compare it with a buffer; where ties are random, make the same choice."""
    victims = oracle.arrive(
        row["stream"], row["id"], Fraction(row["t"]), fractions(row, "xy"), fractions(row, ("x_rate", "y_rate")), errors
    )
    if victims:
        discarded = [buffered for buffered in oracle.held if name_of(buffered) not in actual]
        assert len(discarded) == 1, (row, discarded, actual)
        contributions = [(name_of(buffered), oracle.contribution(buffered)) for buffered in oracle.held]
        assert discarded[0] in victims, (discarded, contributions)
        replacements = oracle.replacements(discarded[0])
        changed = [buffered for buffered in replacements if is_changed(buffered, actual)]
        oracle.discard(discarded[0], (changed or replacements or [None])[0])
    assert {name_of(buffered) for buffered in oracle.held} == set(actual)
    for buffered in oracle.held:
        begin, end = actual[name_of(buffered)][:2]
        assert begin == pytest.approx(float(buffered.begin), abs=1e-9), (buffered, actual)
        assert end == pytest.approx(float(buffered.end), abs=1e-9), (buffered, actual)


def name_of(buffered: Buffered) -> tuple[str, int, float]:
    return buffered.stream, buffered.key, float(buffered.time)


def is_changed(buffered: Buffered, actual: Held) -> bool:
    begin, end = actual[name_of(buffered)][:2]
    return abs(begin - float(buffered.begin)) > 1e-9 or abs(end - float(buffered.end)) > 1e-9


@examples(40)
@given(
    drawn_arrivals(streams=2), st.integers(1, 5), st.sampled_from(POLICIES), st.sampled_from([0.0, 2.0, 100.0]),
    st.sampled_from([(4.0, 4.0), (1.0, 8.0), (100.0, 100.0)]),
)  # fmt: skip
def test_the_buffer_equals_the_oracle_after_each_arrival(
    rows: list[Row], size: int, policy: str, width: float, periods: tuple[float, float]
) -> None:
    buffer = Kernel(rows, kernel.Rules(size, CODES[policy], np.array(periods), 0.0, width))
    oracle = oracle_of(size, policy, width, periods)
    for index, row in enumerate(rows):
        buffer.arrive(index)
        follow(oracle, row, buffer.held(), (Fraction(1), Fraction(1)))
        for buffered in oracle.held:
            *_, contribution = buffer.held()[name_of(buffered)]
            assert contribution == pytest.approx(float(oracle.contribution(buffered)), abs=1e-9, rel=1e-9), buffered
    assert all(sum(name[0] == stream for name in buffer.held()) <= size for stream in STREAMS)


@pytest.mark.parametrize(("third", "replacement"), [(0.25, 3.0), (8.0, 0.0)])
def test_the_neighbour_with_the_smaller_error_replaces_a_discarded_prediction(third: float, replacement: float) -> None:
    rows = [
        {"stream": "e", "id": 1, "t": t, "x": x, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
        for t, x in ((0.0, 1.0), (2.0, 0.5), (3.0, third), (4.0, 100.0))
    ]
    buffer = filled_buffer(rows, size=3)
    held = {time: (begin, end) for (_, _, time), (begin, end, _) in buffer.held().items()}
    assert set(held) == {0.0, 3.0, 4.0}
    assert held[replacement] == ((2.0, 4.0) if replacement == 3.0 else (0.0, 3.0))


def test_a_late_prediction_with_the_least_contribution_is_discarded_itself() -> None:
    """If predictions arrive out of order, the new one may have the least contribution."""
    rows = [
        {"stream": "e", "id": 1, "t": t, "x": x, "x_rate": 1.0, "y": 0.0, "y_rate": 0.0}
        for t, x in ((0.0, 0.0), (2.0, 9.0), (4.0, 20.0), (1.5, 1.6))
    ]
    buffer = filled_buffer(rows, size=3)
    assert {time for _, _, time in buffer.held()} == {0.0, 2.0, 4.0}


def test_the_absolute_value_is_inside_the_integral() -> None:
    """Two lines that cross in the middle differ, although their signed difference has integral 0."""
    rows = [
        {"stream": "e", "id": key, "t": t, "x": x, "x_rate": rate, "y": 0.0, "y_rate": 0.0}
        for key, t, x, rate in ((1, 0.0, 0.0, 0.0), (1, 1.0, -1.0, 1.0), (1, 3.0, 0.0, 0.0), (2, 3.0, 0.0, 0.0))
    ]
    buffer = filled_buffer(rows, size=10)
    held = buffer.held()
    assert held["e", 1, 1.0] == (1.0, 3.0, 1.0)
    assert held["e", 1, 3.0][2] == held["e", 2, 3.0][2] == np.inf


# ---------------------------------------------------------------- the job


DECLARED = (
    "CREATE STREAM {} KEY (id INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {} PERIOD {};\n"
)


def workbook_of(errors: str, period: float, within: float, buffer: str, streams: Sequence[str] = ("e", "e")) -> str:
    text = "".join(DECLARED.format(name, errors, period) for name in sorted(set(streams)))
    order = " AND a.id < b.id" if len(set(streams)) == 1 else ""
    return (
        f"{text}CREATE QUERY q AS MONITOR a, b FROM {streams[0]} AS a, {streams[1]} AS b "
        f"WHERE ABS(a.x - b.x) <= 3 AND ABS(a.y - b.y) <= 4{order} WITHIN {within}{buffer};\n"
    )


def in_buffer(run: MonitorRun) -> dict[tuple[str, int, float], tuple[float, float]]:
    """The predictions in the buffer of a run, and when each applies."""
    operator = run.job.operator()
    assert isinstance(operator, MonitorOperator)
    operator.open(run.states[0])
    held = operator._held
    layouts = run.job.layouts
    times = exact_times(held.code, layouts[0].time_kind)
    keys = [operator._arrivals.keys[stream].tuple_of(key)[0] for stream, key in zip(held.stream, held.key, strict=True)]
    applies_at = {}
    for k in np.flatnonzero(held.buffered).tolist():
        name = (layouts[held.stream[k]].name, keys[k], float(times[k]))
        assert name not in applies_at
        applies_at[name] = (float(times[k] + held.begin[k]), float(times[k] + held.end[k]))
    return applies_at


def by_stream(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {stream: [row for row in rows if row["stream"] == stream] for stream in STREAMS}


@examples(20)
@given(
    drawn_arrivals(most=10), st.integers(1, 4), st.sampled_from(POLICIES), st.sampled_from([0, 3]),
    st.sampled_from(["1", "(x = 0.5, y = 0)"]),
)  # fmt: skip
def test_the_buffer_of_a_job_equals_the_oracle(
    rows: list[Row], size: int, policy: str, within: int, errors: str
) -> None:
    workbook = workbook_of(errors, 4, within, f" BUFFER {size} DISCARD {policy}")
    run = MonitorRun(local_job(workbook, "q", live=True), 2)
    oracle = oracle_of(size, policy, within, (4, 4))
    row_errors = (Fraction(1), Fraction(1)) if errors == "1" else (Fraction(1, 2), Fraction(0))
    for row in rows:
        run.step(by_stream([row]))
        # Predictions that ended too early are removed, but not always at once.
        held = in_buffer(run)
        oracle.held = [
            buffered for buffered in oracle.held if name_of(buffered) in held or buffered.end + within >= row["t"]
        ]
        follow(oracle, row, held, row_errors)
    assert run.counts.used == len(rows)
    assert run.counts.duplicate == 0


@examples(20)
@given(drawn_arrivals(keys=2, spreads=True), st.integers(1, 4))
def test_contributions_with_an_error_column(rows: list[Row], size: int) -> None:
    workbook = workbook_of("spread", 8, 10, f" BUFFER {size}")
    run = MonitorRun(local_job(workbook, "q", live=True), 1)
    oracle = oracle_of(size, LEAST_CONTRIBUTION, 10, (8, 8))
    for row in rows:
        run.step(by_stream([row]))
        held = in_buffer(run)
        oracle.held = [
            buffered for buffered in oracle.held if name_of(buffered) in held or buffered.end + 10 >= row["t"]
        ]
        follow(oracle, row, held, [Fraction(row["spread"])] * 2)
        assert len(held) == min(size, len(oracle.held))


def test_a_redundant_row_contributes_nothing_whatever_its_error() -> None:
    rows = [{"id": 1, "t": t, "x": 100.0, "spread": 1.0 + t} for t in (0.0, 1.0)]
    rows += [{"id": 2, "t": t, "x": 5 * t, "spread": 1.0} for t in (2.0, 3.0, 4.0)]
    full = [row | {"stream": "e", "x_rate": 0.0, "y": 0.0, "y_rate": 0.0} for row in rows]
    run = MonitorRun(local_job(workbook_of("spread", 100, 50, " BUFFER 4"), "q", live=True), 1)
    for row in full:
        run.step(by_stream([row]))
    assert set(in_buffer(run)) == {("e", 1, 1.0), ("e", 2, 2.0), ("e", 2, 3.0), ("e", 2, 4.0)}


@pytest.mark.parametrize("policy", POLICIES)
@examples(25)
@given(st.data(), drawn_arrivals(most=12), st.integers(1, 4))
def test_splits_of_ordered_arrivals_do_not_change_the_buffer(
    policy: str, data: st.DataObject, rows: list[Row], size: int
) -> None:
    workbook = workbook_of("1", 8, 5, f" BUFFER {size} DISCARD {policy}")
    job = local_job(workbook, "q", live=True)
    buffers = []
    for batches in ([by_stream(rows)], [by_stream([row]) for row in rows], data.draw(splits(by_stream(rows)))):
        run = MonitorRun(job, 1)
        for batch in batches:
            run.step(batch)
        held, newest = in_buffer(run), max(row["t"] for row in rows)
        buffers.append({name: when for name, when in held.items() if when[1] + 5 >= newest})
    assert buffers[0] == buffers[1] == buffers[2]


@pytest.mark.parametrize("key", [2, 3, 4, 5])
def test_random_ties_do_not_depend_on_the_split(key: int) -> None:
    """The last predictions of two keys tie; the first one has replaced another, in this step or in an earlier one."""
    rows = [
        {"stream": "e", "id": row_key, "t": t, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
        for row_key, t in ((1, 0.0), (1, 1.0), (key, 1.0), (1, 2.0), (key + 1, 2.0))
    ]
    job = local_job(workbook_of("1", 8, 5, " BUFFER 1"), "q", live=True)
    buffers = []
    for batches in ([by_stream(rows)], [by_stream([row]) for row in rows]):
        run = MonitorRun(job, 1)
        for batch in batches:
            run.step(batch)
        buffers.append(in_buffer(run))
    assert buffers[0] == buffers[1]


@examples(15)
@given(drawn_arrivals(most=10), st.integers(1, 3), st.sampled_from(POLICIES))
def test_the_same_input_gives_the_same_answers(rows: list[Row], size: int, policy: str) -> None:
    workbook = workbook_of("1", 8, 5, f" BUFFER {size} DISCARD {policy}")
    case = Case(workbook, "q", by_stream(rows), {})
    one, other = (run_of(case, [by_stream([row]) for row in rows], 1, live=True) for _ in range(2))
    assert repr(one.rows()) == repr(other.rows())
    assert repr(one.rows("tentative")) == repr(other.rows("tentative"))


def with_buffer(case: Case, text: str) -> Case:
    return replace(case, workbook=case.workbook.rstrip().removesuffix(";") + f" {text};\n")


@examples(20)
@given(st.data(), monitor_cases(operands=(2,), tables=False), st.sampled_from(POLICIES))
def test_a_buffer_that_is_never_full_changes_nothing(data: st.DataObject, case: Case, policy: str) -> None:
    batches = data.draw(splits(case.rows, clock=seconds))
    labels = [operand.label for operand in bound_query(case.workbook, case.query).operands]
    plain = run_of(case, batches, 1, live=True)
    event(f"{'some' if plain.rows() else 'no'} answers")
    buffered = run_of(with_buffer(case, f"BUFFER 1000 DISCARD {policy}"), batches, 3, live=True)
    assert_same(buffered.rows(), plain.rows(), labels)
    for status in ("tentative", "invalidated"):
        assert_same(buffered.rows(status), plain.rows(status), labels)
    assert buffered.counts.duplicate == plain.counts.duplicate


def test_a_stream_that_is_ahead_removes_nothing_that_the_other_needs() -> None:
    """The current time is that of the slowest stream: its later rows are compared with older predictions."""
    workbook = workbook_of("1", 4, 0, " BUFFER 100", streams=("e", "f"))
    rows = {
        "e": [{"id": 1, "t": t, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0} for t in (0.0, 50.0)],
        "f": [{"id": 2, "t": 1.0, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}],
    }
    case = Case(workbook, "q", rows, {})
    batches = [{"e": rows["e"][:1]}, {"e": rows["e"][1:]}, {"f": rows["f"]}]
    (answer,) = run_of(case, batches, 1, live=True).rows()
    assert (answer["valid_from"], answer["valid_to"]) == (1.0, 4.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_answers_of_a_full_buffer_are_within_the_period(policy: str) -> None:
    """Each answer ends before the PERIOD of its predictions, and there are no duplicates."""
    rows = [
        {"stream": "e", "id": k % 3, "t": 0.5 * k, "x": float(k % 4), "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
        for k in range(20)
    ]
    case = Case(workbook_of("0", 4, 0, f" BUFFER 2 DISCARD {policy}"), "q", by_stream(rows), {})
    run = run_of(case, [by_stream([row]) for row in rows], 1, live=True)
    assert run.counts.used == 20
    for answer in run.rows():
        for label in "ab":
            assert answer["valid_to"] <= answer[label]["t"] + 4 + 1e-9
    answers = [(row["a"]["id"], row["b"]["id"], row["valid_from"], row["valid_to"]) for row in run.rows()]
    assert len(set(answers)) == len(answers)
