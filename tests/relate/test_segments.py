"""Rows of segments (`TIME (t_from, t_to)`): the same answers as rows of their events, in batch and for any split."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local import local_job
from tests.relate.local import RelateRun, run_stream, run_whole
from tests.transport.layouts import table_of

from anabranch.relate.assembly import IntervalRows
from anabranch.relate.history import make_history
from anabranch.relate.job import RelateJob
from anabranch.runtime.validation import validate

Segment = tuple[int | None, int | None]

QUERY = "CREATE QUERY q AS RELATE AT LEAST 1 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k COMPLEMENT {tail};"
WIDE = "CREATE STREAM s KEY (k STRING) TIME (t_from INTEGER, t_to INTEGER) MODEL INTERVALS {clauses}; "
LONG = "CREATE STREAM s KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq {clauses}; "


def wide_job(clauses: str = "", live: bool = False, tail: str = "") -> RelateJob:
    return local_job((WIDE + QUERY).format(clauses=clauses, tail=tail), "q", live=live)


def long_job(clauses: str = "", live: bool = False, tail: str = "") -> RelateJob:
    return local_job((LONG + QUERY).format(clauses=clauses, tail=tail), "q", live=live)


def wide_rows(entities: dict[str, list[Segment]]) -> list[dict[str, Any]]:
    return [
        {"k": k, "n": number, "t_from": start, "t_to": end, "total": len(segments)}
        for k, segments in entities.items()
        for number, (start, end) in enumerate(segments, 1)
    ]


def long_rows(entities: dict[str, list[Segment]]) -> list[dict[str, Any]]:
    return [
        {"k": k, "seq": 2 * number + which, "t": time, "total": 2 * len(segments)}
        for k, segments in entities.items()
        for number, segment in enumerate(segments)
        for which, time in enumerate(segment, 1)
    ]


@st.composite
def segmented(draw: st.DrawFn, lost: bool) -> dict[str, list[Segment]]:
    """Up to four entities with increasing times, some of which may be lost."""
    entities = {}
    for k in "wxyz"[: draw(st.integers(2, 4))]:
        times = sorted(draw(st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True)))
        times = times[: len(times) // 2 * 2]
        kept = [time if not lost or draw(st.booleans()) else None for time in times]
        entities[k] = list(zip(kept[::2], kept[1::2], strict=True))
    return entities


def batches_of(draw_cuts: list[int], rows: list[dict[str, Any]], stream: str = "s") -> list[dict[str, list]]:
    cuts = sorted(min(cut, len(rows)) for cut in draw_cuts)
    return [{stream: rows[lo:hi]} for lo, hi in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def answers(run: RelateRun) -> dict:
    found = run.answers().items()
    return {pair: (round(answer.probability, 12), round(answer.complement, 12)) for pair, answer in found}


splits = st.lists(st.integers(0, 12), max_size=3)


@given(segmented(lost=True), splits, st.sampled_from(["", "LENGTH total"]), st.randoms(use_true_random=False))
def test_numbered_segments_are_their_events(entities: dict, cuts: list[int], length: str, random: Any) -> None:
    expected = answers(run_whole(long_job(f"HORIZON [-5, 35] {length}"), {"s": long_rows(entities)}))
    rows = wide_rows(entities)
    random.shuffle(rows)
    assert answers(run_whole(wide_job(f"ORDER n HORIZON [-5, 35] {length}"), {"s": rows})) == expected
    live = wide_job(f"ORDER n HORIZON [-5, 35] WATERMARK 100 {length}", live=True)
    assert answers(run_stream(live, batches_of(cuts, rows))) == expected


@given(segmented(lost=False), splits, st.randoms(use_true_random=False))
def test_segments_without_a_number_are_in_order_of_time(entities: dict, cuts: list[int], random: Any) -> None:
    expected = answers(run_whole(long_job(), {"s": long_rows(entities)}))
    rows = wide_rows(entities)
    rows += rows[:2]  # a row given twice is one segment
    random.shuffle(rows)
    assert answers(run_whole(wide_job(), {"s": rows})) == expected
    assert answers(run_stream(wide_job("WATERMARK 100", live=True), batches_of(cuts, rows))) == expected


@given(segmented(lost=False), splits)
def test_a_segment_arrives_when_it_has_ended(entities: dict, cuts: list[int]) -> None:
    """Rows in the order of their ends are never late, whatever their starts, and no early entity is forgotten."""
    rows = sorted(wide_rows(entities), key=lambda row: row["t_to"])
    expected = answers(run_whole(wide_job(), {"s": rows}))
    run = run_stream(wide_job("LENGTH total", live=True, tail="TIMEOUT 1000"), batches_of(cuts, rows))
    assert run.counts.late == 0
    assert answers(run) == expected


@pytest.mark.parametrize("segments", [[(1, 5), (3, 8)], [(1, 8), (3, 5)], [(1, 3), (1, 5)], [(1, 3), (3, 5)], [(4, 4)]])
def test_segments_that_overlap_or_touch_are_quarantined(segments: list[Segment]) -> None:
    run = run_whole(wide_job(), {"s": wide_rows({"x": segments, "y": [(0, 9)]})})
    assert run.reasons() == {"the times of its entity do not increase with the position": 2 * len(segments)}
    layout = wide_job().layouts[0]
    found = validate(table_of(layout, wide_rows({"x": segments, "y": [(0, 9)]})), layout)
    assert found.num_rows == len(segments)
    row = run.rejected[0]["row"]
    assert row == f'{{"k": "x", "t_to": {segments[0][1]}, "t_from": {segments[0][0]}}}'


def test_ends_that_are_lost_need_an_order() -> None:
    rows = wide_rows({"x": [(1, None), (5, 8)], "y": [(9, 12), (15, 13)]})
    run = run_whole(wide_job(), {"s": rows})
    assert run.reasons() == {
        "t_to is NULL, and the segments have no ORDER": 1, "t_from is after t_to": 1,
    }  # fmt: skip
    assert run_whole(wide_job("ORDER n"), {"s": rows}).reasons() == {"t_from is after t_to": 1}


def test_late_segments_are_judged_by_their_end() -> None:
    run = run_stream(
        wide_job(live=True), [{"s": wide_rows({"x": [(0, 10)]})}, {"s": wide_rows({"y": [(2, 4)], "z": [(1, 12)]})}]
    )
    assert run.reasons() == {"late": 2}
    assert [row["row"] for row in run.rejected] == ['{"k": "y", "t_to": 4, "t_from": 2}'] * 2
    assert set(run.answers()) == {("x", "z")}


def test_numbers_of_no_rows() -> None:
    assert len(IntervalRows.concat([]).numbered()) == 0


@given(segmented(lost=True), st.booleans())
def test_durations_are_learned_from_segments_as_from_events(entities: dict, numbered: bool) -> None:
    known = entities if numbered else {
        k: [segment for segment in segments if None not in segment] for k, segments in entities.items()
    }  # fmt: skip
    known = {k: segments for k, segments in known.items() if segments}
    wide = wide_job("ORDER n HORIZON [-5, 35]" if numbered else "").layouts[0]
    long = long_job("HORIZON [-5, 35]" if numbered else "").layouts[0]
    segments = make_history(table_of(wide, wide_rows(known)), wide, None).lengths
    events = make_history(table_of(long, long_rows(known)), long, None).lengths
    for field in fields(segments):
        assert np.array_equal(getattr(segments, field.name), getattr(events, field.name), equal_nan=True)
