"""NEAREST k, against the oracle: which candidates are kept and when, in batch and for every split; and by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import bound_query, local_job
from tests.monitor.compare import assert_same
from tests.monitor.local import MonitorRun, positions_job, run_of
from tests.monitor.test_globe import drawn_fixes, tracks
from tests.monitor.test_positions import run_over as globe_run
from tests.oracles.monitor_globe import distance
from tests.oracles.monitor_nearest import Contact, answers
from tests.splits import disordered_splits, splits

from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan

STREAM = (
    "CREATE STREAM {name} KEY (id STRING, zone INTEGER) VALUE (x DOUBLE, y DOUBLE, z DOUBLE) TIME t {time} "
    "SPACE (x, y) MODEL PREDICTED ERROR ({error}) PERIOD 4{clauses};\n"
)

Row = dict[str, Any]


@st.composite
def cases(draw: Draw, clauses: str = "") -> Case:
    """Taxis and riders, or taxis alone; a distance, sometimes another condition, and few different places."""
    time = draw(st.sampled_from(["INTEGER", "DOUBLE"]))
    second = draw(st.sampled_from(["riders", "riders", "taxis"]))
    radius = draw(st.sampled_from([3.3, 6, 2, 20]))
    conditions = [f"DISTANCE({draw(st.sampled_from(['a, b', 'b, a']))}) {draw(st.sampled_from(['<=', '<']))} {radius}"]
    others = ["a.z <= 1", "b.z >= 0.7", f"DISTANCE(a, b) >= {radius / 4}", "a.zone = b.zone", "a.id <> b.id"]
    conditions += draw(st.lists(st.sampled_from(others), max_size=2, unique=True))
    # In a ring, the search for the highest probability may end at a local maximum.
    errors = [0] if any(">= " in condition and "DISTANCE" in condition for condition in conditions) else [0, 1, 0.5]
    error = ", ".join(f"{column} = {draw(st.sampled_from(errors))}" for column in "xyz")
    names = sorted({"taxis", second})
    streams = [STREAM.format(name=name, time=time, error=error, clauses=clauses) for name in names]
    rows = {name: draw(st.lists(predictions(time), min_size=1, max_size=5)) for name in names}
    threshold = draw(st.sampled_from(["", "", " THRESHOLD 0.4"]))
    query = f"MONITOR a, b FROM taxis AS a, {second} AS b WHERE {' AND '.join(conditions)}{threshold}"
    workbook = f"{''.join(streams)}CREATE QUERY q AS {query} NEAREST {draw(st.integers(1, 3))};"
    return Case(workbook, "q", rows, {})


@st.composite
def predictions(draw: Draw, time: str) -> Row:
    """A prediction; a key may have two of the same time."""
    at = draw(st.sampled_from([0, 1, 2, 3]))
    row: Row = {"id": draw(st.sampled_from("pqrs")), "zone": draw(st.sampled_from([1, 2])), "t": at}
    if time == "DOUBLE":
        row["t"] = at + draw(st.sampled_from([0.0, 0.3]))
    for column in "xyz":
        row[column] = draw(st.sampled_from([0.0, 1.0, -1.3, 2.5, 4.0]))
        row[f"{column}_rate"] = draw(st.sampled_from([0.0, 1.0, -1.1, 0.5]))
    return row


def expected_of(case: Case) -> list[Row]:
    """The answers of the oracle, without cases in which rounding errors decide."""
    query = bound_query(case.workbook, case.query)
    assume(plan(analyse(query)).refused is None)
    try:
        expected = answers(query, case.rows)
    except Contact:
        assume(False)
        raise
    event(f"{min(len(expected), 5)} answers or more")
    return expected


@examples(60)
@given(cases(), st.integers(1, 4))
def test_batch_gives_the_answers_of_the_oracle(case: Case, buckets: int) -> None:
    expected = expected_of(case)
    assert_same(run_of(case, [case.rows], buckets).rows(), expected, "ab", several_maxima=True)


@examples(40)
@given(st.data(), cases())
def test_any_split_gives_the_answers_of_the_oracle(data: st.DataObject, case: Case) -> None:
    expected = expected_of(case)
    run = run_of(case, data.draw(splits(case.rows)), data.draw(st.integers(1, 3)), live=True)
    assert_same(run.rows(), expected, "ab", several_maxima=True)
    assert_replaced(run)


@examples(40)
@given(st.data(), cases(clauses=" WATERMARK 2"))
def test_late_rows_give_the_answers_of_the_oracle(data: st.DataObject, case: Case) -> None:
    expected = expected_of(case)
    run = run_of(case, data.draw(disordered_splits(case.rows, 2)), data.draw(st.integers(1, 3)), live=True)
    assert run.counts.late == 0
    assert_same(run.rows(), expected, "ab", several_maxima=True)
    assert_replaced(run)


def assert_replaced(run: MonitorRun) -> None:
    """Every answer that was tentative was validated or invalidated, and no answer both."""
    tentative, invalidated = run.rows("tentative"), run.rows("invalidated")
    event(f"{'some' if invalidated else 'no'} invalidated answers")
    open_answers = list(tentative)
    for gone in invalidated:
        open_answers.remove(next(answer for answer in open_answers if _is_same(answer, gone)))
    for answer in open_answers:
        assert any(_is_same(answer, validated) for validated in run.rows()), (answer, run.rows())


def _is_same(one: Row, other: Row) -> bool:
    names = ("valid_from", "valid_to", "probability")
    return all(one[name] == other[name] for name in "ab") and all(abs(one[n] - other[n]) < 1e-6 for n in names)


# ---------------------------------------------------------------- by hand


def row(id: str, t: float, x: float, x_rate: float = 0.0, y: float = 0.0, zone: int = 1) -> Row:
    return {"id": id, "zone": zone, "t": t, "x": x, "x_rate": x_rate, "y": y, "y_rate": 0.0, "z": 0.0, "z_rate": 0.0}


def workbook_of(clauses: str, error: float = 0) -> str:
    """Riders within 10 of taxis; the x of both have an error."""
    errors = f"x = {error}, y = 0, z = 0"
    streams = [STREAM.format(name=name, time="DOUBLE", error=errors, clauses="") for name in ("taxis", "riders")]
    query = f"CREATE QUERY q AS MONITOR a, b FROM taxis AS a, riders AS b WHERE DISTANCE(a, b) <= 10 {clauses};"
    return "".join(streams) + query


def job_of(clauses: str, live: bool = False, error: float = 0) -> Any:
    return local_job(workbook_of(clauses, error), "q", live=live)


def run_over(job: Any, *batches: Rows, buckets: int = 2) -> MonitorRun:
    """A run over batches, whose input has not ended."""
    run = MonitorRun(job, buckets)
    for batch in batches:
        run.step(batch)
    return run


def ranges(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """When each rider is an answer."""
    times: dict[str, list[tuple[float, float]]] = {}
    for answer in rows:
        times.setdefault(answer["b"]["id"], []).append((answer["valid_from"], answer["valid_to"]))
    return {name: [pytest.approx(own) for own in sorted(found)] for name, found in sorted(times.items())}


#: Is at t at time t.
TAXI = row("taxi", 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("k", "riders", "expected"),
    [
        # The taxi is in the middle of the riders at 2.
        (1, [row("p", 0.0, 0.0), row("q", 0.0, 4.0)], {"p": [(0, 2)], "q": [(2, 4)]}),
        (2, [row("p", 0.0, 0.0), row("q", 0.0, 4.0)], {"p": [(0, 4)], "q": [(0, 4)]}),
        # Both are always as far away.
        (1, [row("p", 0.0, 2.0, y=1.0), row("q", 0.0, 2.0, y=-1.0)], {"p": [(0, 4)], "q": [(0, 4)]}),
        # p is at a distance of 1. q is nearer while the taxi is between 1 and 3, and r is as near at 2 only.
        (1, [row("p", 0.0, 1.0, 1.0), row("q", 0.0, 2.0)], {"p": [(0, 1), (3, 4)], "q": [(1, 3)]}),
        (1, [row("p", 0.0, 1.0, 1.0), row("r", 0.0, 2.0, y=1.0)], {"p": [(0, 4)]}),
        (1, [row("p", 0.0, 1.0, 1.0), row("r", 0.0, 4 / 3, y=1.0)], {"p": [(0, 4)]}),
        # p is within reach from 2 on, and nearer than q when 24 - 7t is below 9.
        (1, [row("p", 0.0, 24.0, -6.0), row("q", 0.0, 9.0, 1.0)], {"p": [(15 / 7, 4)], "q": [(0, 15 / 7)]}),
        # Two predictions of one key at one time count once, and not for each other.
        (1, [row("p", 0.0, 2.0), row("p", 0.0, 2.5), row("q", 0.0, 9.0)], {"p": [(0, 4), (0, 4)]}),
        (2, [row("p", 0.0, 2.0), row("p", 0.0, 2.5), row("q", 0.0, 9.0)], {"p": [(0, 4), (0, 4)], "q": [(0, 4)]}),
        # The next prediction of p is out of reach.
        (1, [row("p", 0.0, 2.0), row("p", 3.0, 50.0), row("q", 0.0, 9.0)], {"p": [(0, 3)], "q": [(3, 4)]}),
    ],
)
def test_who_is_nearest(k: int, riders: list[Row], expected: dict[str, Any]) -> None:
    rows = {"taxis": [TAXI], "riders": riders}
    run = run_over(job_of(f"NEAREST {k}"))
    run.run([rows])
    assert ranges(run.rows()) == expected
    assert ranges(answers(bound_query(workbook_of(f"NEAREST {k}"), "q"), rows)) == expected
    assert all(answer["probability"] == 1.0 for answer in run.rows())


@pytest.mark.parametrize(("threshold", "kept"), [("", ["p", "q"]), ("THRESHOLD 0.9", ["p"])])
def test_the_probability_is_the_highest_of_where_while_the_pair_is_kept(threshold: str, kept: list[str]) -> None:
    """q is at a distance of 10 - t / 2, and p of 10.5 - 3t / 4, which is less after 2, when both are 9 away.

    The difference of two errors of 1 is above 1 with probability 1/8. So q is within 10 with at most 7/8.
    """
    riders = [row("q", 0.0, 10.0, -0.5), row("p", 0.0, 10.5, -0.75)]
    run = run_over(job_of(f"{threshold} NEAREST 1", error=1))
    run.run([{"taxis": [row("taxi", 0.0, 0.0)], "riders": riders}])
    found = {answer["b"]["id"]: answer for answer in run.rows()}
    assert sorted(found) == kept
    assert found["p"]["probability"] == 1.0
    if "q" in found:
        assert found["q"]["probability"] == pytest.approx(0.875, abs=1e-12)


# ---------------------------------------------------------------- on a stream


def test_a_report_of_one_rider_replaces_the_answers_about_others() -> None:
    job = job_of("NEAREST 1", live=True)
    run = run_over(job, {"taxis": [TAXI], "riders": [row("q", 0.0, 4.0)]}, {"riders": [row("p", 1.0, 0.0)]})
    assert ranges(run.rows("tentative")) == {"p": [(1, 2)], "q": [(0, 1), (0, 4), (2, 4)]}
    assert ranges(run.rows("invalidated")) == {"q": [(0, 4)]}
    run.step({"taxis": [row("other", 3.0, 500.0)], "riders": [row("other", 3.0, 900.0)]})
    assert ranges(run.rows()) == {"p": [(1, 2)], "q": [(0, 1)]}
    # The taxi reports that it stands. What is validated does not change.
    run.step({"taxis": [row("taxi", 3.5, 3.5)]})
    run.step({}, end=True)
    assert ranges(run.rows()) == {"p": [(1, 2), (4, 5)], "q": [(0, 1), (2, 3.5), (3.5, 4)]}


def test_candidates_that_ended_before_the_watermark_still_count() -> None:
    """p was nearest until 2. It is forgotten only with the answer about q, which begins at 2 because of p."""
    job = job_of("NEAREST 1", live=True)
    riders = [row("p", 0.0, 0.0), row("p", 2.0, 70.0), row("q", 0.0, 8.0)]
    clock = [{"taxis": [row("other", t, 500.0)], "riders": [row("other", t, 900.0)]} for t in (3.0, 3.5)]
    run = run_over(job, {"taxis": [TAXI], "riders": riders}, *clock)
    assert ranges(run.rows()) == {"p": [(0, 2)]}
    run.step({"riders": [row("q", 3.75, 8.0, 2.0)]})
    assert ranges(run.rows("invalidated")) == {"q": [(2, 4)]}
    run.step({}, end=True)
    assert ranges(run.rows()) == {"p": [(0, 2)], "q": [(2, 3.75), (3.75, 4)]}


def test_state_is_bounded() -> None:
    """Taxis and riders report every 2 for a long time; what ended before the watermark is forgotten."""
    job = job_of("NEAREST 2", live=True)
    run = MonitorRun(job, 2)
    sizes = []
    for step in range(12):
        at = 2.0 * step
        riders = [row(name, at, at + offset) for name, offset in (("p", 1.0), ("q", 2.0), ("r", 3.0))]
        run.step({"taxis": [row("taxi", at, at, 1.0)], "riders": riders})
        sizes.append(sum(len(state or b"") for state in run.states))
    assert max(sizes[6:]) <= max(sizes[2:6])
    assert len(run.rows()) >= 20


def test_every_bucket_answers_for_its_own_taxis() -> None:
    """Riders go to all buckets, and each row is counted once."""
    taxis = [row(f"taxi {number}", 0.0, float(number), 1.0) for number in range(12)]
    riders = [row("p", 0.0, 3.0), row("q", 0.0, 7.0), row("q", 0.0, 7.0)]
    runs = [run_over(job_of("NEAREST 1"), buckets=buckets) for buckets in (1, 5)]
    for run in runs:
        run.run([{"taxis": taxis, "riders": riders}])
        assert (run.counts.used, run.counts.duplicate) == (14, 1)
    assert_same(runs[1].rows(), runs[0].rows(), "ab")
    assert sum(len(outcome.answers) > 0 for outcome in runs[1].outcomes) > 1


def test_partial_answers_are_those_that_continue() -> None:
    job = job_of("EVERY 1 MAX DELAY 0 NEAREST 1", live=True)
    batches = [{"taxis": [TAXI], "riders": [row("p", 0.0, 0.0), row("q", 0.0, 4.0)]}]
    batches += [{"riders": [row("other", t, 900.0)]} for t in (1.0, 3.0, 3.5)]
    run = run_over(job, *batches)
    assert ranges(run.rows("partial")) == {"p": [(0, 1)], "q": [(2, 3)]}
    assert ranges(run.rows()) == {"p": [(0, 2)]}


# ---------------------------------------------------------------- on the globe


@examples(15)
@given(st.data(), st.integers(1, 2))
def test_the_nearest_on_the_globe(data: st.DataObject, k: int) -> None:
    """Against great circles at some instants, where the distances differ by more than the scale may change."""
    query = f"CREATE QUERY q AS MONITOR a, b FROM ships WHERE DISTANCE(a, b) <= 1500 NEAREST {k};"
    workbook, rows, plane, error = data.draw(drawn_fixes(query))
    found = globe_run(positions_job(workbook, "q"), [{"fixes": rows}], 3).rows()
    live = globe_run(positions_job(workbook, "q", live=True), data.draw(splits({"fixes": rows})), 3).rows()
    assert_same(live, found, "ab")
    known = tracks(rows, plane, error)
    for (one, first), part in itertools.product(known.items(), range(1, 8)):
        instant = first.time + (first.end - first.time) * part / 8
        far = {
            other: distance(first.at(instant), second.at(instant))
            for other, second in known.items()
            if other[0] != one[0] and second.time <= instant < second.end
        }
        if any(abs(own - 1500) <= 1e-3 * own for own in far.values()):
            continue
        far = {other: own for other, own in far.items() if own < 1500}
        for other, own in far.items():
            surely, maybe = (
                sum(its < share * own for key, its in far.items() if key != other) for share in (0.999, 1.001)
            )
            if (surely < k) == (maybe < k):
                structs = {"a": {"id": one[0], "t": one[1]}, "b": {"id": other[0], "t": other[1]}}
                is_found = any(
                    row["valid_from"] <= instant < row["valid_to"] and all(row[name] == structs[name] for name in "ab")
                    for row in found
                )
                event(f"{'near' if surely < k else 'far'}")
                assert is_found == (surely < k), (instant, structs, far)


# ---------------------------------------------------------------- explain


def test_explain() -> None:
    described = plan(job_of("NEAREST 2").spec.analysis)
    assert described.classification == "nearest neighbours among predictions"
    assert "the 2 nearest b of each a are kept at each instant, and all that are as near" in described.why
    assert described.routing == "each a has a bucket, by its key; all predictions go to all buckets"
    assert "square of the candidates" in described.cost
    assert "rank" in [step.id for step in described.steps]
    equated = plan(job_of("AND a.zone = b.zone NEAREST 2").spec.analysis)
    assert equated.routing == "predictions are routed by a.zone = b.zone"
