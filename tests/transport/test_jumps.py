"""Numeric times that jump too far ahead (MAX AHEAD): which rows do, and what happens to them in all five kinds."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.test_stream import building, inferring_job, workbook_text
from tests.local import LocalRun, local_job
from tests.monitor.local import positions_job
from tests.oracles import jumps as oracle
from tests.relate.test_runs import run_job
from tests.transport.layouts import CERTAIN

from anabranch.arrays import BEGINNING, END
from anabranch.columns.times import TimeKind, order_doubles
from anabranch.inference.model import write_hmm
from anabranch.transport import jumps
from anabranch.transport.checks import AHEAD
from anabranch.transport.jumps import Run, rows_by_run
from anabranch.transport.layout import Layout
from anabranch.transport.watermark import Clock

LIMITS = (3, 3, 7, None)


def layouts_of(limits: list[int | None], kind: TimeKind) -> list[Layout]:
    return [replace(CERTAIN, time_kind=kind, max_ahead=None if most is None else float(most)) for most in limits]


def codes(times: list[int], kind: TimeKind) -> np.ndarray:
    return order_doubles(np.array(times, np.float64)) if kind is TimeKind.DOUBLE else np.array(times, np.int64)


def runs_in(times: np.ndarray, layout: Layout) -> list[Run]:
    """The runs of a part of the rows of a stream, as its sender finds them."""
    parts = [times[rows] for rows in rows_by_run(times, layout)] if layout.max_jump is not None else [times]
    return [Run(int(part.min()), int(part.max()), len(part)) for part in parts if len(part)]


@given(st.data(), st.sampled_from([TimeKind.INTEGER, TimeKind.DOUBLE]))
def test_the_rows_ahead_are_those_of_the_definition_however_rows_are_divided(data: Any, kind: TimeKind) -> None:
    limits = data.draw(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=2))
    layouts, counts, newest = layouts_of(limits, kind), [0] * len(limits), None
    saved = Clock(layouts).save()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jumps, "PATIENCE", 5)
        for _ in range(data.draw(st.integers(1, 4))):
            streams = [data.draw(st.lists(st.integers(-40, 40), max_size=12)) for _ in limits]
            rows = [(stream, t) for stream, times in enumerate(streams) for t in times]
            expected = oracle.accepted(rows, newest, counts, limits, 5)
            newest = max([t for _, t in expected] + ([] if newest is None else [newest]), default=None)
            clock = Clock(layouts, saved)
            runs = [
                [run for part in divided(data, times) for run in runs_in(codes(part, kind), layout)]
                for times, layout in zip(streams, layouts, strict=True)
            ]
            latest = clock.limits([data.draw(st.permutations(own)) for own in runs])
            kept = [(stream, t) for stream, t in rows if codes([t], kind)[0] <= latest[stream]]
            assert kept == expected
            accepted = [
                max((run.newest for run in own if run.oldest <= limit), default=BEGINNING)
                for own, limit in zip(runs, latest, strict=True)
            ]
            clock.advance(accepted)
            saved = clock.save()


def divided(data: Any, times: list[int]) -> list[list[int]]:
    """The times in two parts."""
    first = [data.draw(st.booleans()) for _ in times]
    return [[t for t, is_first in zip(times, first, strict=True) if is_first is side] for side in (True, False)]


def test_a_clock_without_limits_accepts_everything_and_saves_what_it_always_did() -> None:
    clock = Clock([CERTAIN])
    assert clock.limits([[Run(5, 10**18, 2)]]) == (END,)
    clock.advance([7])
    assert np.frombuffer(clock.save(), "<i8").tolist() == [7]
    # A stream that gets a limit when it is resumed has no counts yet.
    assert Clock([replace(CERTAIN, max_ahead=3.0)], clock.save()).limits([[Run(10, 10, 1), Run(12, 99, 3)]]) == (102,)


# ------------------------------------------------------------ the five kinds

FAR = 32_472_144_000  # a time in the year 2999, in seconds since 1970

CLOCK = "INTEGER WATERMARK 10 MAX AHEAD 1000"
EVENTS = f"KEY (k STRING) TIME t {CLOCK}"
SEGMENTS = f"KEY (k STRING) TIME (b, t) {CLOCK} MODEL INTERVALS"
PREDICTIONS = f"KEY (k STRING) VALUE (x DOUBLE) TIME t {CLOCK} MODEL PREDICTED ERROR 1 PERIOD 9"


def _events(*times: int) -> list[dict[str, Any]]:
    return [{"k": "ab"[number % 2], "t": t} for number, t in enumerate(times)]


def _segments(*times: int) -> list[dict[str, Any]]:
    return [{"k": f"k{t}", "b": t - 9 if t < FAR else 11, "t": t} for t in times]


def _points(*times: int) -> list[dict[str, Any]]:
    return [
        {"k": f"k{t}", "seq": seq, "what": what, "t": t + 5 * (seq - 1)}
        for seq, what in ((1, "start"), (2, "end"))
        for t in times
    ]


def _measured(*times: int) -> list[dict[str, Any]]:
    return [{"k": "a", "x": float(number % 3), "x_rate": 0.0, "t": t} for number, t in enumerate(times)]


#: For each kind, and each way to make rows: the declarations, the query, and rows at some times.
CASES: dict[str, tuple[str, str, Any]] = {
    "PATTERN": (f"CREATE STREAM s {EVENTS};", "PATTERN s('a') THEN s('b')", _events),
    "SEQUENCE": (
        f"CREATE STREAM s {EVENTS};",
        "SEQUENCE (x, y) FROM s WHERE x.k = 'a' AND y.k = 'b' WITHIN 5",
        _events,
    ),
    "CONSTRAIN": (
        f"CREATE STREAM s {EVENTS};",
        "CONSTRAIN v, w FROM s WHERE v.k = 'a' AND w.k = 'b' AND ABS(v.t - w.t) <= 5",
        _events,
    ),
    "RELATE": (
        f"CREATE STREAM s {EVENTS} ORDER seq ROLE what MODEL INTERVALS;",
        "RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k",
        _points,
    ),
    "RELATE, segments": (
        f"CREATE STREAM s {SEGMENTS};",
        "RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k TIMEOUT 20",
        _segments,
    ),
    "MONITOR": (f"CREATE STREAM s {PREDICTIONS};", "MONITOR a FROM s WHERE a.x > 0", _measured),
}


def run_steps(kind: str, time: str, batches: list[list[dict[str, Any]]]) -> LocalRun:
    """The micro-batches of a case, and the end of the input; every micro-batch is also replayed."""
    declarations, query, _ = CASES[kind]
    workbook = f"{declarations.replace('INTEGER', time)} CREATE QUERY q AS {query};"
    run = LocalRun(local_job(workbook, "q", live=True), 2)
    number = float if time == "DOUBLE" else int
    for rows in batches:
        rows = [{name: number(cell) if name in ("t", "b") else cell for name, cell in row.items()} for row in rows]
        killed, n_rejected = as_saved(run), len(run.rejected)
        killed.step({"s": rows})
        run.step({"s": rows})
        assert (killed.states, killed.clock.save()) == (run.states, run.clock.save())
        assert killed.rejected == run.rejected[n_rejected:]
    run.step({}, end=True)
    counts = run.counts
    assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined + counts.excluded
    return run


def as_saved(run: LocalRun) -> LocalRun:
    """A run that resumes from the saved state of another run."""
    copy = LocalRun(run.job, run.n_buckets)
    copy.states, copy.pages = list(run.states), deepcopy(run.pages)
    copy.clock = Clock(run.job.layouts, run.clock.save())
    return copy


@pytest.mark.parametrize("time", ["INTEGER", "DOUBLE"])
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("at", range(4))
def test_rows_from_the_year_2999_change_nothing(kind: str, time: str, at: int) -> None:
    rows_at = CASES[kind][2]
    good = [rows_at(10, 12, 15), rows_at(16, 17), [], rows_at(19, 20, 1015)]
    far = rows_at(FAR)
    expected = run_steps(kind, time, good)
    run = run_steps(kind, time, [rows + far if number == at else rows for number, rows in enumerate(good)])
    assert any(outcome.answers.num_rows for outcome in expected.outcomes)
    assert [outcome.answers.to_pylist() for outcome in run.outcomes] == [
        outcome.answers.to_pylist() for outcome in expected.outcomes
    ]
    assert run.counts.late == 0
    assert run.counts.quarantined == len(run.rejected) == len(far) * (2 if "segments" in kind else 1)
    assert {row["reason"] for row in run.rejected} == {AHEAD}
    assert all(json.loads(row["row"])["t"] >= FAR for row in run.rejected)


@pytest.mark.parametrize("kind", CASES)
def test_after_a_pause_rows_are_accepted_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows one by one, as slow sources send them: some are quarantined, then the clock moves."""
    monkeypatch.setattr(jumps, "PATIENCE", 6)
    rows_at = CASES[kind][2]
    after = [[row] for t in range(FAR, FAR + 16, 2) for row in rows_at(t)]
    run = run_steps(kind, "INTEGER", [rows_at(10, 12, 15), *after, rows_at(9)])
    n_ahead = 4 if kind == "RELATE, segments" else 5  # a segment is two events
    assert [row["reason"] for row in run.rejected].count(AHEAD) == n_ahead
    # The clock has moved, so an old row is late.
    assert run.counts.late >= 1


def test_a_large_micro_batch_after_a_pause_loses_nothing() -> None:
    run = run_steps("SEQUENCE", "INTEGER", [_events(1, 2), _events(*range(FAR, FAR + 200)), _events(10**12)])
    assert (run.counts.quarantined, run.counts.late) == (1, 0)


def test_a_sensor_with_a_wrong_clock_never_moves_the_clock() -> None:
    batches = [_events(t, t + 1) + _events(FAR + t) for t in range(0, 400, 2)]
    run = run_steps("PATTERN", "INTEGER", batches)
    assert (run.counts.quarantined, run.counts.late) == (200, 0)


# ------------------------------------------------------------ derived streams

POSITIONS = f"""
CREATE STREAM positions KEY (id INTEGER) VALUE (x DOUBLE) TIME t {CLOCK};
CREATE STREAM vans KEY (id INTEGER) VALUE (x DOUBLE) TIME t INTEGER
  PREDICTED FROM positions ERROR 1 PERIOD 9;
CREATE QUERY q AS MONITOR a FROM vans AS a WHERE a.x > 0;
"""


def derived_job(name: str, folder: Path) -> tuple[Any, str, Any]:
    """The job of a query over a derived stream, the name of the stream in its layout, and a row at some time."""
    limit = CLOCK.removeprefix("INTEGER")
    if name == "INFERRED":
        write_hmm(building(), folder / "model")
        job = inferring_job(workbook_text("at", watermark=limit), folder, live=True)
        return job, "readings", lambda t: {"tag": f"tag{t % 2}", "reader": "east", "t": t}
    if name == "INTERVALS":
        job = run_job("", live=True, watermark=limit, tail="TIMEOUT 20")
        # Both keys are slow at two of four times, so that their segments intersect.
        return job, "jams", lambda t: {"k": f"k{t % 2}", "v": 10 + 50 * (t % 4 < 2), "ok": True, "t": t}
    return positions_job(POSITIONS, "q", live=True), "positions", lambda t: {"id": t % 2, "x": float(t % 3), "t": t}


@pytest.mark.parametrize("name", ["INFERRED", "INTERVALS", "PREDICTED"])
def test_derived_streams_are_not_made_from_rows_from_the_year_2999(name: str, tmp_path: Path) -> None:
    job, stream, row_at = derived_job(name, tmp_path)
    expected, run = LocalRun(job, 2), LocalRun(job, 2)
    for times in ([1, 2, 3], [4, 5, 6, 7], [], [8, 9, 25], [30, 31]):
        rows = [row_at(t) for t in times]
        expected.step({stream: rows})
        run.step({stream: [*rows, row_at(FAR + len(times))] if len(times) % 3 == 0 else rows})
    for ending in (expected, run):
        ending.step({}, end=True)
    assert any(outcome.answers.num_rows for outcome in expected.outcomes)
    assert [outcome.answers.to_pylist() for outcome in run.outcomes] == [
        outcome.answers.to_pylist() for outcome in expected.outcomes
    ]
    assert (run.counts.late, run.counts.quarantined) == (expected.counts.late, expected.counts.quarantined + 3)
    assert [row["reason"] for row in run.rejected].count(AHEAD) == 3
