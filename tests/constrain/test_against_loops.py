"""CONSTRAIN compared with nested loops: the same answers for every split, order and number of buckets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import TIMES, Case, Rows, seconds
from tests.constrain.local import ConstrainRun, answers_of, job_of, operators_long_after, truth_of
from tests.constrain.strategies import constrain_cases
from tests.drawn import examples
from tests.local import bound_query, in_context, to_table
from tests.splits import disordered_splits, splits

from anabranch.constrain.analysis import STRATEGIES, analyse
from anabranch.transport.routing import route
from anabranch.transport.watermark import Progress


def is_possible(case: Case) -> bool:
    """Whether the bounds of a case do not contradict each other."""
    return analyse(bound_query(case.workbook, case.query)).contradiction() is None


@examples(50)
@given(constrain_cases(), st.sampled_from([1, 2, 7]), st.sampled_from(["", *STRATEGIES]))
def test_batch_gives_every_solution_once(case: Case, n_buckets: int, strategy: str) -> None:
    truth = truth_of(case)
    if not is_possible(case):
        assert not truth
        return
    event(f"{'some' if truth else 'no'} answers")
    assert answers_of(case, [case.rows], n_buckets, strategy) == truth


@examples(25)
@given(constrain_cases(decimals=True, spaces=["plane"], tables=False), st.sampled_from([1, 3]))
def test_times_are_compared_as_decimals(case: Case, n_buckets: int) -> None:
    assume(is_possible(case))
    assert answers_of(case, [case.rows], n_buckets) == truth_of(case)


@examples(30)
@given(st.data(), constrain_cases(connected=True, consistent=True), st.sampled_from(STRATEGIES))
def test_any_split_gives_the_answers_of_the_whole(data: st.DataObject, case: Case, strategy: str) -> None:
    assume(is_possible(case))
    batches = data.draw(splits(case.rows, clock=seconds))
    assert answers_of(case, batches, data.draw(st.sampled_from([1, 2, 7])), strategy) == truth_of(case)


@examples(30)
@given(st.data(), st.sampled_from([1, 2]))
def test_any_arrival_within_the_watermark_gives_the_answers_of_the_whole(data: st.DataObject, delay: int) -> None:
    case = data.draw(constrain_cases(connected=True, consistent=True, watermark=delay))
    assume(is_possible(case))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    assert answers_of(case, batches, data.draw(st.sampled_from([1, 2, 7]))) == truth_of(case)


class ShuffledRun(ConstrainRun):
    """A run in which every bucket gets the packets of a step in another order."""

    def step(self, rows: Rows, end: bool = False) -> None:
        routed = [
            route(to_table(self.job, number, [row]), number, self.job, self.n_buckets)
            for number, layout in enumerate(self.job.layouts)
            for row in rows.get(layout.name, ())
        ]
        newest = max((part.newest for part in routed), default=0)
        watermark = Progress.of_all(newest + 1, len(self.job.layouts))
        for bucket in range(self.n_buckets):
            packets = [(0, blob) for part in routed for number, blob in part.packets if number == bucket]
            operator = self.job.operator()
            operator.open(None)
            self.outcomes.append(operator.step(packets[:: -1 if bucket % 2 else 1], watermark, ended=end))


@pytest.mark.parametrize("emit", ["", " EMIT EARLY"])
def test_events_at_one_time_form_one_solution_in_any_order_of_packets(emit: str) -> None:
    rows = [{"id": x, "t": 1, "x": float(x), "y": 0.0} for x in range(60)]
    workbook = (
        "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y);\n"
        f"CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE u.id < v.id AND DISTANCE(u, v) <= 1 AND SPAN(u, v) <= 1{emit};"
    )
    run = ShuffledRun(in_context(job_of(Case(workbook, "q", {}, {})), live=True), 7)
    run.step({"e": rows})
    pairs = sorted((answer["u"]["id"], answer["v"]["id"]) for answer in run.answers())
    assert pairs == [(x, x + 1) for x in range(59)]


def test_kept_events_are_counted_once() -> None:
    """Events near the borders of cells and periods have copies in several buckets."""
    rows = [{"id": number, "t": 7 * number, "x": float(number % 90), "y": 0.0} for number in range(300)]
    workbook = (
        "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y);\n"
        "CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE v.t - u.t IN [0, 100] AND DISTANCE(u, v) <= 3 STRATEGY LOOSE;"
    )
    kept = {}
    for n_buckets in (1, 16):
        run = ConstrainRun(job_of(Case(workbook, "q", {"e": rows}, {})), n_buckets)
        run.step({"e": rows}, end=True)
        kept[n_buckets] = run.counts.kept
    # An event is kept for 100, so 15 at a time; buckets reach their largest numbers at different times.
    assert kept[1] == 15
    assert kept[16] <= 300


@examples(20)
@given(constrain_cases(connected=True, consistent=True, most_streams=1))
def test_tight_keeps_no_more_than_loose(case: Case) -> None:
    assume(is_possible(case))
    kept = {}
    for strategy in STRATEGIES:
        run = ConstrainRun(job_of(case, strategy), 1)
        run.step(case.rows, end=True)
        kept[strategy] = run.counts.kept
    assert kept["TIGHT"] <= kept["LOOSE"]
    assert kept["TIGHT"] <= kept["NOINDEX"]


@examples(20)
@given(constrain_cases(connected=True, consistent=True, time_types=TIMES[:1]))
def test_no_event_is_kept_that_cannot_be_needed(case: Case) -> None:
    assume(is_possible(case))
    for operator in operators_long_after(case, job_of(case)):
        assert len(operator.kept) <= 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_events_in_many_cells_match_those_of_adjacent_cells(strategy: str) -> None:
    """Enough events for a grid with several cells, and for the removal of expired items from lists."""
    rng = np.random.default_rng(5)
    t, (x, y) = np.sort(rng.integers(0, 300, 600)), rng.uniform(0.0, 40.0, (2, 600))
    rows = [{"id": i, "t": int(t[i]), "x": float(x[i]), "y": float(y[i])} for i in range(len(t))]
    workbook = (
        "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y);\n"
        "CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE v.t - u.t IN [1, 9] AND DISTANCE(u, v) <= 4;"
    )
    run = ConstrainRun(job_of(Case(workbook, "q", {"e": rows}, {}), strategy), 1)
    run.step({"e": rows}, end=True)
    later, distance = t - t[:, None], np.hypot(x - x[:, None], y - y[:, None])
    expected = np.argwhere((later >= 1) & (later <= 9) & (distance <= 4)).tolist()
    assert sorted([answer["u"]["id"], answer["v"]["id"]] for answer in run.answers()) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("last", ["BC", "CB"])
def test_an_event_that_expires_at_the_current_time_still_matches(strategy: str, last: str) -> None:
    """The first C visits many A without a B: they have expired and are removed from the list, except the last one."""
    kinds = [*(("A", t) for t in range(61)), *((kind, 62) for kind in last), ("C", 70)]
    rows = [{"id": i, "kind": kind, "t": t} for i, (kind, t) in enumerate(kinds)]
    workbook = (
        "CREATE STREAM e KEY (id INTEGER) VALUE (kind STRING) TIME t INTEGER;\nCREATE QUERY q AS CONSTRAIN u, v, w "
        "FROM e WHERE u.kind = 'A' AND v.kind = 'B' AND w.kind = 'C' AND v.t - u.t IN [1, 2] AND w.t - u.t IN [5, 50];"
    )
    run = ConstrainRun(job_of(Case(workbook, "q", {"e": rows}, {}), strategy), 1)
    run.step({"e": rows}, end=True)
    assert [answer["u"]["t"] for answer in run.answers()] == [60]
