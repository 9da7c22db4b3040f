"""BUFFER: what is held after each arrival, its contributions, and what a buffer that is never full answers."""

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
from anabranch.monitor.predictions import clock_of

CODES = {
    LEAST_CONTRIBUTION: kernel.LEAST_CONTRIBUTION, OLDEST: kernel.OLDEST, RANDOM: kernel.RANDOM, NEWEST: kernel.NEWEST,
}  # fmt: skip
POLICIES = tuple(CODES)
STREAMS = ("e", "f")

Row = dict[str, Any]
#: By stream, key and time: from when to when it applies, and more.
Held = dict[tuple[str, int, float], Any]

numbers = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, 3.25, -2.5, 7.0])
rates = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 0.25])


@st.composite
def arrivals(draw: Any, most: int = 14, keys: int = 3, streams: int = 1, spreads: bool = False) -> list[Row]:
    """Rows in the order of time, no two of one key and time."""
    found: list[Row] = []
    time = 0.0
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.sampled_from([0.0, 1.0, 0.5, 0.25, 2.0, 6.0]))
        row: Row = {"stream": STREAMS[draw(st.integers(0, streams - 1))], "id": draw(st.integers(1, keys)), "t": time}
        row |= {"x": draw(numbers), "x_rate": draw(rates), "y": draw(numbers), "y_rate": draw(rates)}
        row |= {"spread": draw(st.sampled_from([1.0, 0.0, 2.0, 0.5]))} if spreads else {}
        name = (row["stream"], row["id"], row["t"])
        if name not in {(each["stream"], each["id"], each["t"]) for each in found}:
            found.append(row)
    return found


def fractions(row: Row, columns: Sequence[str]) -> list[Fraction]:
    return [Fraction(row[column]) for column in columns]


# ---------------------------------------------------------------- the kernel


class Kernel:
    """The kernel's buffer, a prediction at a time."""

    def __init__(self, rows: Sequence[Row], rules: kernel.Rules) -> None:
        n = len(rows)
        stream = np.array([STREAMS.index(row["stream"]) for row in rows], np.int64)
        key = np.array([row["id"] for row in rows], np.int64)
        columns = [np.array([[row[f"{c}{end}"] for c in "xy"] for row in rows]) for end in ("", "_rate")]
        periods = rules.periods[stream]

        def roomy(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.zeros((n, *array.shape[1:]), array.dtype)])

        self.rules, self.n, self.newest = rules, 0, np.full(len(STREAMS), -np.inf)
        times = np.array([row["t"] for row in rows])
        self.given = kernel.Versions(
            roomy(stream), roomy(stream << 32 | key), roomy(order_doubles(times)), roomy(times), roomy(np.zeros(n)),
            roomy(periods.astype(np.float64)), *map(roomy, columns), roomy(np.ones((n, 2))),
            roomy(np.zeros(n, np.bool_)), roomy(np.zeros(n)), roomy(np.arange(n)),
        )  # fmt: skip
        self.versions = kernel.Versions(*(np.zeros((2 * n, *each.shape[1:]), each.dtype) for each in self.given))

    def arrive(self, row: int) -> None:
        """Let one of the rows come."""
        for mine, theirs in zip(self.versions, self.given, strict=True):
            mine[self.n] = theirs[row]
        known = self.n
        _, self.n = kernel.arrive(self.versions, known, known + 1, self.rules, self.newest)

    def held(self) -> dict[tuple[str, int, float], tuple[float, float, float]]:
        """When what is in the buffer applies, and its contribution, by who it is."""
        v = self.versions
        return {
            (STREAMS[v.stream[k]], int(v.who[k] & 0xFFFFFFFF), float(v.time[k])): (
                float(v.time[k] + v.begin[k]), float(v.time[k] + v.end[k]), float(v.contribution[k]),
            )
            for k in range(self.n)
            if v.held[k]
        }  # fmt: skip


def truth_of(size: int, policy: str, width: float, periods: Sequence[float]) -> BufferManager:
    return BufferManager(size, policy, dict(zip(STREAMS, map(Fraction, periods), strict=True)), Fraction(width))


def follow(
    truth: BufferManager, row: Row, found: dict[tuple[str, int, float], Any], errors: Sequence[Fraction]
) -> None:
    """Let a row come, and where lots decide, go the way that was gone."""
    victims = truth.arrive(
        row["stream"], row["id"], Fraction(row["t"]), fractions(row, "xy"), fractions(row, ("x_rate", "y_rate")), errors
    )
    if victims:
        gone = [each for each in truth.held if named(each) not in found]
        assert len(gone) == 1, (row, gone, found)
        assert gone[0] in victims, (gone, [(named(each), truth.contribution(each)) for each in truth.held])
        heirs = truth.heirs(gone[0])
        took = [each for each in heirs if is_changed(each, found)]
        truth.discard(gone[0], (took or heirs or [None])[0])
    assert {named(each) for each in truth.held} == set(found)
    for each in truth.held:
        begin, end = found[named(each)][:2]
        assert begin == pytest.approx(float(each.begin), abs=1e-9), (each, found)
        assert end == pytest.approx(float(each.end), abs=1e-9), (each, found)


def named(each: Buffered) -> tuple[str, int, float]:
    return each.stream, each.key, float(each.time)


def is_changed(each: Buffered, found: Held) -> bool:
    begin, end = found[named(each)][:2]
    return abs(begin - float(each.begin)) > 1e-9 or abs(end - float(each.end)) > 1e-9


@examples(40)
@given(
    arrivals(streams=2), st.integers(1, 5), st.sampled_from(POLICIES), st.sampled_from([0.0, 2.0, 100.0]),
    st.sampled_from([(4.0, 4.0), (1.0, 8.0), (100.0, 100.0)]),
)  # fmt: skip
def test_what_is_held_after_each_arrival(
    rows: list[Row], size: int, policy: str, width: float, periods: tuple[float, float]
) -> None:
    found = Kernel(rows, kernel.Rules(size, CODES[policy], np.array(periods), 0.0, width))
    truth = truth_of(size, policy, width, periods)
    for place, row in enumerate(rows):
        found.arrive(place)
        follow(truth, row, found.held(), (Fraction(1), Fraction(1)))
        for each in truth.held:
            *_, contribution = found.held()[named(each)]
            assert contribution == pytest.approx(float(truth.contribution(each)), abs=1e-9, rel=1e-9), each
    assert all(sum(name[0] == stream for name in found.held()) <= size for stream in STREAMS)


@pytest.mark.parametrize(("third", "heir"), [(0.25, 3.0), (8.0, 0.0)])
def test_the_neighbour_with_the_smaller_error_takes_over(third: float, heir: float) -> None:
    rows = [
        {"stream": "e", "id": 1, "t": t, "x": x, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
        for t, x in ((0.0, 1.0), (2.0, 0.5), (3.0, third), (4.0, 100.0))
    ]
    found = Kernel(rows, kernel.Rules(3, kernel.LEAST_CONTRIBUTION, np.array([100.0, 100.0]), 0.0, 100.0))
    for place in range(4):
        found.arrive(place)
    held = {time: (begin, end) for (_, _, time), (begin, end, _) in found.held().items()}
    assert set(held) == {0.0, 3.0, 4.0}
    assert held[heir] == ((2.0, 4.0) if heir == 3.0 else (0.0, 3.0))


def test_what_comes_late_and_says_little_goes_itself() -> None:
    """Of predictions out of their order it is not always an earlier one that contributes least."""
    rows = [
        {"stream": "e", "id": 1, "t": t, "x": x, "x_rate": 1.0, "y": 0.0, "y_rate": 0.0}
        for t, x in ((0.0, 0.0), (2.0, 9.0), (4.0, 20.0), (1.5, 1.6))
    ]
    found = Kernel(rows, kernel.Rules(3, kernel.LEAST_CONTRIBUTION, np.array([100.0, 100.0]), 0.0, 100.0))
    for place in range(4):
        found.arrive(place)
    assert {time for _, _, time in found.held()} == {0.0, 2.0, 4.0}


def test_the_absolute_value_is_inside_the_integral() -> None:
    """Two lines that cross in the middle differ, though what is above is as much as what is below."""
    rows = [
        {"stream": "e", "id": key, "t": t, "x": x, "x_rate": rate, "y": 0.0, "y_rate": 0.0}
        for key, t, x, rate in ((1, 0.0, 0.0, 0.0), (1, 1.0, -1.0, 1.0), (1, 3.0, 0.0, 0.0), (2, 3.0, 0.0, 0.0))
    ]
    found = Kernel(rows, kernel.Rules(10, kernel.LEAST_CONTRIBUTION, np.array([100.0, 100.0]), 0.0, 100.0))
    for place in range(4):
        found.arrive(place)
    assert found.held()["e", 1, 1.0] == (1.0, 3.0, 1.0)
    assert found.held()["e", 1, 3.0][2] == found.held()["e", 2, 3.0][2] == np.inf


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
    """When what is in the buffer of a run applies, by who it is."""
    operator = run.job.operator()
    assert isinstance(operator, MonitorOperator)
    operator.open(run.states[0])
    held = operator._held
    layouts = run.job.layouts
    times = clock_of(held.code, layouts[0].time_kind)
    keys = [operator._arrivals.keys[stream].tuple_of(key)[0] for stream, key in zip(held.stream, held.key, strict=True)]
    found = {}
    for k in np.flatnonzero(held.buffered).tolist():
        name = (layouts[held.stream[k]].name, keys[k], float(times[k]))
        assert name not in found
        found[name] = (float(times[k] + held.begin[k]), float(times[k] + held.end[k]))
    return found


def given_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {stream: [row for row in rows if row["stream"] == stream] for stream in STREAMS}


@examples(20)
@given(
    arrivals(most=10), st.integers(1, 4), st.sampled_from(POLICIES), st.sampled_from([0, 3]),
    st.sampled_from(["1", "(x = 0.5, y = 0)"]),
)  # fmt: skip
def test_a_job_holds_what_the_truth_does(rows: list[Row], size: int, policy: str, within: int, errors: str) -> None:
    workbook = workbook_of(errors, 4, within, f" BUFFER {size} DISCARD {policy}")
    run = MonitorRun(local_job(workbook, "q", live=True), 2)
    truth = truth_of(size, policy, within, (4, 4))
    own = (Fraction(1), Fraction(1)) if errors == "1" else (Fraction(1, 2), Fraction(0))
    for row in rows:
        run.step(given_of([row]))
        # What can meet nothing any more is forgotten, if not always at once; it has a place until one comes.
        found = in_buffer(run)
        ended = [each for each in truth.held if named(each) not in found and each.end + within < row["t"]]
        truth.held = [each for each in truth.held if each not in ended]
        follow(truth, row, found, own)
    assert run.counts.used == len(rows)
    assert run.counts.duplicate == 0


@examples(20)
@given(arrivals(keys=2, spreads=True), st.integers(1, 4))
def test_contributions_where_each_row_has_its_own_error(rows: list[Row], size: int) -> None:
    workbook = workbook_of("spread", 8, 10, f" BUFFER {size}")
    run = MonitorRun(local_job(workbook, "q", live=True), 1)
    truth = truth_of(size, LEAST_CONTRIBUTION, 10, (8, 8))
    for row in rows:
        run.step(given_of([row]))
        found = in_buffer(run)
        truth.held = [each for each in truth.held if named(each) in found or each.end + 10 >= row["t"]]
        follow(truth, row, found, [Fraction(row["spread"])] * 2)
        assert len(found) == min(size, len(truth.held))


def test_a_row_that_says_nothing_new_contributes_nothing_whatever_its_error() -> None:
    rows = [{"id": 1, "t": t, "x": 100.0, "spread": 1.0 + t} for t in (0.0, 1.0)]
    rows += [{"id": 2, "t": t, "x": 5 * t, "spread": 1.0} for t in (2.0, 3.0, 4.0)]
    full = [row | {"stream": "e", "x_rate": 0.0, "y": 0.0, "y_rate": 0.0} for row in rows]
    run = MonitorRun(local_job(workbook_of("spread", 100, 50, " BUFFER 4"), "q", live=True), 1)
    for row in full:
        run.step(given_of([row]))
    assert set(in_buffer(run)) == {("e", 1, 1.0), ("e", 2, 2.0), ("e", 2, 3.0), ("e", 2, 4.0)}


@pytest.mark.parametrize("policy", POLICIES)
@examples(25)
@given(st.data(), arrivals(most=12), st.integers(1, 4))
def test_splits_of_arrivals_in_order_do_not_change_what_is_held(
    policy: str, data: st.DataObject, rows: list[Row], size: int
) -> None:
    workbook = workbook_of("1", 8, 5, f" BUFFER {size} DISCARD {policy}")
    job = local_job(workbook, "q", live=True)
    found = []
    for batches in ([given_of(rows)], [given_of([row]) for row in rows], data.draw(splits(given_of(rows)))):
        run = MonitorRun(job, 1)
        for batch in batches:
            run.step(batch)
        held, newest = in_buffer(run), max(row["t"] for row in rows)
        found.append({name: when for name, when in held.items() if when[1] + 5 >= newest})
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("key", [2, 3, 4, 5])
def test_lots_do_not_depend_on_the_split(key: int) -> None:
    """Two last predictions of their keys are as good; the first took over from another, when it came or later."""
    rows = [
        {"stream": "e", "id": who, "t": t, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
        for who, t in ((1, 0.0), (1, 1.0), (key, 1.0), (1, 2.0), (key + 1, 2.0))
    ]
    job = local_job(workbook_of("1", 8, 5, " BUFFER 1"), "q", live=True)
    found = []
    for batches in ([given_of(rows)], [given_of([row]) for row in rows]):
        run = MonitorRun(job, 1)
        for batch in batches:
            run.step(batch)
        found.append(in_buffer(run))
    assert found[0] == found[1]


@examples(15)
@given(arrivals(most=10), st.integers(1, 3), st.sampled_from(POLICIES))
def test_the_same_input_gives_the_same_answers(rows: list[Row], size: int, policy: str) -> None:
    workbook = workbook_of("1", 8, 5, f" BUFFER {size} DISCARD {policy}")
    case = Case(workbook, "q", given_of(rows), {})
    one, other = (run_of(case, [given_of([row]) for row in rows], 1, live=True) for _ in range(2))
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


def test_a_stream_that_runs_ahead_takes_nothing_from_the_other() -> None:
    """Time has come as far as the slowest stream has: what its rows to come are compared with is still needed."""
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
def test_a_full_buffer_finds_no_more_than_there_is(policy: str) -> None:
    """Each answer of a buffer of one is about predictions that were there, in a time in which one may stand for it."""
    rows = [
        {"stream": "e", "id": k % 3, "t": 0.5 * k, "x": float(k % 4), "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
        for k in range(20)
    ]
    case = Case(workbook_of("0", 4, 0, f" BUFFER 2 DISCARD {policy}"), "q", given_of(rows), {})
    run = run_of(case, [given_of([row]) for row in rows], 1, live=True)
    assert run.counts.used == 20
    for answer in run.rows():
        for label in "ab":
            assert answer["valid_to"] <= answer[label]["t"] + 4 + 1e-9
    told = [(each["a"]["id"], each["b"]["id"], each["valid_from"], each["valid_to"]) for each in run.rows()]
    assert len(set(told)) == len(told)
