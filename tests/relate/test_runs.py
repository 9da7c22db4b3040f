"""INTERVALS FROM s WHILE: the answers are those over the segments of the oracle, in batch and for any split."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.workbooks import codes
from tests.local import FINGERPRINT, declared, local_job, prepared_query
from tests.oracles.runs import runs_of
from tests.relate.local import RelateRun, run_stream, run_whole
from tests.relate.test_segments import answers, batches_of

from anabranch.planning.derived import layouts_of
from anabranch.planning.identity import identity_of
from anabranch.planning.prepared import with_job
from anabranch.relate.job import RelateJob
from anabranch.transport.job import JobContext

SPEEDS = "CREATE STREAM speeds KEY (k STRING) VALUE (v INTEGER, ok BOOLEAN) TIME t {time} {watermark};"
JAMS = "CREATE STREAM jams KEY (k STRING) TIME t INTERVALS FROM speeds WHILE v < 30 AND ok {clauses};"
QUERY = "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b WHERE a.k < b.k COMPLEMENT {tail};"
#: The same over segments that are given, with the windows of lost ends.
GIVEN = "CREATE STREAM jams KEY (k STRING) TIME t {time} MODEL INTERVALS ORDER seq WINDOW (lo, hi) {clauses};"
HORIZON = "HORIZON [-5, 50]"


def run_job(clauses: str, live: bool = False, time: str = "INTEGER", watermark: str = "", tail: str = "") -> RelateJob:
    text = (SPEEDS + JAMS + QUERY).format(time=time, watermark=watermark, clauses=clauses, tail=tail)
    prepared, catalog = prepared_query(text, "q"), declared(text)
    layouts = layouts_of([catalog.require_stream("jams")], [catalog.require_stream("speeds")], ["."])
    _, job = with_job([prepared], JobContext(layouts, {}, FINGERPRINT, live, (".",)))
    return job


def given_answers(clauses: str, rows: list[dict[str, Any]], **options: Any) -> dict:
    text = (GIVEN + QUERY).format(time="INTEGER", clauses=clauses, tail="")
    return answers(run_whole(local_job(text, "q", **options), {"jams": rows}))


def given_rows(
    rows: list[dict[str, Any]], at_least: int | None, silence: int | None, horizon: bool
) -> list[dict[str, Any]]:
    """The events of the oracle's segments."""
    events = []
    for k in sorted({row["k"] for row in rows}):
        own = [(row["t"], bool(row["ok"]) and row["v"] is not None and row["v"] < 30) for row in rows if row["k"] == k]
        number = 0
        for start, end in runs_of(own, at_least and Fraction(at_least), silence and Fraction(silence)):
            lost = isinstance(end, tuple)
            if lost and end[1] is None and not horizon:
                continue
            lo, hi = end if lost else (None, None)
            events += [
                {"k": k, "seq": number + 1, "t": start},
                {"k": k, "seq": number + 2, "t": None if lost else end, "lo": lo, "hi": hi},
            ]
            number += 2
    return events


speeds = st.lists(
    st.fixed_dictionaries({
        "k": st.sampled_from(["x", "y", "z"]),
        "t": st.integers(0, 40),
        "v": st.sampled_from([10, 20, 60, None]),
        "ok": st.sampled_from([True, True, True, False, None]),
    }),
    max_size=30,
)  # fmt: skip


@given(
    speeds,
    st.sampled_from([None, 3]),
    st.sampled_from([None, 4]),
    st.booleans(),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_answers_are_those_of_the_segments_of_the_oracle(
    rows: list[dict[str, Any]], at_least: int | None, silence: int | None, horizon: bool, cuts: list[int]
) -> None:
    clauses = f"{f'FOR AT LEAST {at_least}' if at_least else ''} {f'SILENCE {silence}' if silence else ''}"
    clauses += f" {HORIZON}" if horizon else ""
    expected = given_answers(HORIZON if horizon else "", given_rows(rows, at_least, silence, horizon))
    run = run_whole(run_job(clauses), {"jams": rows})
    assert answers(run) == expected
    assert run.counts.read == run.counts.used == len(rows)
    for watermark, ordered in (("WATERMARK 100", rows), ("", sorted(rows, key=lambda row: row["t"]))):
        live = run_stream(run_job(clauses, live=True, watermark=watermark), batches_of(cuts, ordered, "jams"))
        assert answers(live) == expected
        assert live.counts.late == 0


def test_a_run_is_answered_when_it_is_closed() -> None:
    def row(k: str, t: int, v: int) -> dict[str, Any]:
        return {"k": k, "t": t, "v": v, "ok": True}

    run = RelateRun(run_job("SILENCE 10", live=True))
    run.step({"jams": [row("x", 0, 10), row("y", 1, 10), row("x", 5, 60), row("y", 6, 60)]})
    assert run.reported[-1] == []  # the rows at 6 are not complete yet
    run.step({"jams": [row("x", 7, 60)]})
    assert [(pair, answer.status) for pair, answer in run.reported[-1]] == [(("x", "y"), "provisional")]
    run.step({"jams": [row("x", 3, 60)]})
    assert run.reasons() == {"late": 1}
    run.step({}, end=True)
    assert {pair: answer.probability for pair, answer in run.answers().items()} == {("x", "y"): 1.0}


@pytest.mark.parametrize("times", [(0.1, 0.4), (1.1, 1.4)])
def test_decimal_durations_are_taken_as_written(times: tuple[float, float]) -> None:
    rows = [{"k": "x", "t": t, "v": v, "ok": True} for t, v in zip(times, (10, 60), strict=True)]
    rows += [{"k": "y", "t": t, "v": v, "ok": True} for t, v in ((0.0, 10), (9.0, 60))]
    for least, expected in (("0.3", {("x", "y")}), ("0.31", set())):
        run = run_whole(run_job(f"FOR AT LEAST {least}", time="DOUBLE"), {"jams": rows})
        assert {pair for pair, answer in run.answers().items() if answer.probability} == expected


def test_a_timeout_counts_from_the_last_row() -> None:
    rows = [{"k": k, "t": t, "v": 10 if t < 9 else 60, "ok": True} for k in "xy" for t in (0, 3, 6, 9, 30)]
    for live in (False, True):
        run = (run_stream if live else run_whole)(
            run_job("", live=live, tail="TIMEOUT 5"), [{"jams": rows}] if live else {"jams": rows}
        )
        assert set(run.answers()) == {("x", "y")}
        assert run.reasons() == {"late": 2}


def test_the_identity_has_the_condition() -> None:
    def identity(text: str) -> dict[str, object]:
        catalog = declared(text)
        layouts = layouts_of([catalog.require_stream("jams")], [catalog.require_stream("speeds")], ["."])
        return identity_of([prepared_query(text, "q")], layouts)

    text = (SPEEDS + JAMS + QUERY).format(time="INTEGER", watermark="", clauses="SILENCE 5", tail="")
    for old, new in (("v < 30", "v < 31"), ("SILENCE 5", "SILENCE 6"), ("SILENCE 5", "FOR AT LEAST 5")):
        assert identity(text) != identity(text.replace(old, new))
    assert identity(text) == identity(text)


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ("ORDER seq", "clause-model"), ("VALUE (v)", "clause-model"), ("FOR AT LEAST 0", "out-of-range"),
        ("SILENCE -1", "out-of-range"), ("DURATION EXPONENTIAL(mean)", "clause-model"),
    ],
)  # fmt: skip
def test_clauses_that_do_not_fit(clauses: str, code: str) -> None:
    base = SPEEDS.format(time="INTEGER", watermark="")
    assert codes(base + JAMS.format(clauses=clauses)) == [code]


def test_conditions_and_sources_that_do_not_fit() -> None:
    base = SPEEDS.format(time="INTEGER", watermark="")
    made = "CREATE STREAM j KEY ({key}) TIME t INTERVALS FROM {source} WHILE {condition};"
    good = {"key": "k", "source": "speeds", "condition": "v < 30"}
    assert codes(base + made.format(**good)) == []
    assert codes(base + made.format(**good | {"condition": "w < 30"})) == ["unknown-column"]
    assert codes(base + made.format(**good | {"condition": "v"})) == ["not-a-condition"]
    assert codes(base + made.format(**good | {"key": "z"})) == ["key-columns"]
    assert codes(base + made.format(**good | {"source": "speed"})) == ["unknown-stream"]
    relation = "CREATE RELATION slow (v INTEGER);"
    assert codes(base + relation + made.format(**good | {"condition": "slow(v)"})) == ["while-relation"]
    assert codes("CREATE STREAM s KEY (k) TIME t SILENCE 5;") == ["clause-model"]
