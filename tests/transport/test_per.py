"""PER over answers: the same rows as by definition, for every split of the answers into micro-batches."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drawn import examples
from tests.rows import (
    all_rows,
    answer_table,
    codes_of,
    comparable,
    drawn_answers,
    drawn_instants,
    exact_times,
    of_oracle,
    rules,
)

from anabranch.arrays import BEGINNING
from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.columns.times import TimeKind
from anabranch.transport.per import KeyColumn, Moment, PerRule, advance
from anabranch.transport.state import read_tables, write_tables


@examples(100)
@given(rules(), drawn_answers(), st.data())
def test_rows_are_those_of_the_definition(rule: PerRule, answers: list[dict], data: st.DataObject) -> None:
    table, instants = answer_table(rule, answers), data.draw(drawn_instants(answers))
    expected = of_oracle(rule, table, exact_times(instants, rule.time_kind))
    assert comparable(rule, all_rows(rule, table, instants).to_pylist()) == comparable(rule, expected)


@examples(100)
@given(rules(), drawn_answers(), st.data())
def test_a_stream_gives_the_same_rows(rule: PerRule, answers: list[dict], data: st.DataObject) -> None:
    """Answers and instants arrive in any order, but none before the watermark; a row is given once."""
    all_instants = data.draw(drawn_instants(answers))
    waiting, instants = data.draw(st.permutations(answers)), list(all_instants)
    given_rows, open_rows, before = [], None, None
    watermarks = sorted(data.draw(st.lists(st.integers(-15, 40), max_size=4)))
    for watermark in [*watermarks, None]:
        due = [answer for answer in waiting if watermark is None or answer["begin"] < watermark]
        early = [answer for answer in waiting if not any(answer is other for other in due)]
        arrived = due + early[: data.draw(st.integers(0, len(early)))]
        waiting = [answer for answer in waiting if not any(answer is other for other in arrived)]
        known = len(instants) if watermark is None else bisect_left(instants, watermark) + data.draw(st.integers(0, 2))
        codes, instants = codes_of(instants[:known], rule.time_kind), instants[known:]
        reached = BEGINNING if watermark is None else int(codes_of([watermark], rule.time_kind)[0])
        now = Moment(reached, watermark is None, codes)
        now = now if before is None else now.after(before.watermark, before.kept_instants([rule]))
        step = advance(rule, open_rows, answer_table(rule, arrived), now)
        open_rows = read_tables(write_tables({"rows": step.open_rows}))["rows"].replace_schema_metadata(None)
        given_rows += [row for row in step.rows.to_pylist() if row.get("status") != "provisional"]
        before = now
    assert not open_rows.num_rows
    expected = of_oracle(rule, answer_table(rule, answers), exact_times(all_instants, rule.time_kind))
    assert comparable(rule, given_rows) == comparable(rule, expected)


VESSELS = (KeyColumn("v", ("id",)), KeyColumn("w", ("id",)))


def _pair(t: int, first: str, second: str, p: float = 1.0) -> dict:
    return {"t": t, "v": {"id": first}, "w": {"id": second}, "probability": p}


def test_many_answers_of_few_groups() -> None:
    rows = [_pair(t, "a", "b") for t in range(100)] + [_pair(t, "a", "c", 0.5) for t in range(0, 100, 30)]
    answers = pa.Table.from_pylist(rows)
    rule = PerRule(PerKeys(), VESSELS, ("t", "t"), TimeKind.INTEGER, TimeKind.INTEGER)
    assert all_rows(rule, answers).drop_columns("status").to_pylist() == [
        {"t_from": 0, "t_to": 99, "v": {"id": "a"}, "w": {"id": "b"}, "count": 100, "probability": 1, "expected": 100},
        {"t_from": 0, "t_to": 90, "v": {"id": "a"}, "w": {"id": "c"}, "count": 4, "probability": 0.5, "expected": 2},
    ]


@pytest.mark.parametrize(
    ("at_least", "lower", "upper"),
    # Of three answers with 0.9, 0.8 and 0.7: at least one, two, three; a fourth cannot be true.
    [(1, 0.9, 1.0), (2, 0.7, 1.0), (3, 0.4, 0.8), (4, None, None)],
)
def test_the_bounds_of_a_window(at_least: int, lower: float | None, upper: float | None) -> None:
    answers = pa.Table.from_pylist([_pair(t, "a", "b", p) for t, p in ((0, 0.9), (5, 0.8), (9, 0.7))])
    rule = PerRule(PerWindow(10.0, at_least), VESSELS, ("t", "t"), TimeKind.INTEGER, TimeKind.INTEGER)
    rows = all_rows(rule, answers).to_pylist()
    if lower is None:
        assert not rows
        return
    (row,) = rows
    assert (row["t_from"], row["t_to"], row["method"]) == (0, 10, "bounds")
    assert [row[name] for name in ("probability", "lower", "upper", "expected")] == pytest.approx(
        [lower, lower, upper, 2.4]
    )


def test_provisional_rows_of_keys_are_those_that_changed() -> None:
    rule = PerRule(PerKeys(threshold=0.5), VESSELS, ("t", "t"), TimeKind.INTEGER, TimeKind.INTEGER)
    first = advance(rule, None, pa.Table.from_pylist([_pair(1, "a", "b"), _pair(2, "a", "c", 0.4)]), Moment(3, False))
    assert [(row["w"]["id"], row["count"], row["status"]) for row in first.rows.to_pylist()] == [
        ("b", 1, "provisional")
    ]
    second = advance(rule, first.open_rows, pa.Table.from_pylist([_pair(5, "a", "c", 0.6)]), Moment(6, False))
    assert [(row["w"]["id"], row["count"], row["status"]) for row in second.rows.to_pylist()] == [
        ("c", 2, "provisional")
    ]
    last = advance(rule, second.open_rows, pa.Table.from_pylist([_pair(5, "a", "c")]).slice(1), Moment(6, True))
    assert {(row["w"]["id"], row["count"], row["status"]) for row in last.rows.to_pylist()} == {
        ("b", 1, "final"), ("c", 2, "final")
    }  # fmt: skip


def test_an_answer_that_is_at_no_instant_touches_none() -> None:
    """Such as one about the end of a window that began with an event."""
    rule = PerRule(PerEpisode(), VESSELS, ("t", "t"), TimeKind.INTEGER, TimeKind.INTEGER)
    answers = pa.Table.from_pylist([_pair(t, "a", "b") for t in (1, 4, 6, 7)])
    rows = all_rows(rule, answers, [1, 4, 5, 7]).to_pylist()
    assert [(row["t_from"], row["t_to"]) for row in rows] == [(1, 4), (6, 6), (7, 7)]


def test_decimal_gaps_are_inclusive() -> None:
    """0.1 + 0.3 is slightly more than 0.4, and 1.1 + 0.3 slightly less than 1.4."""
    rows = [_pair(0, "a", "b") | {"t": t} for t in (0.1, 0.4, 1.1, 1.4)]
    rule = PerRule(PerEpisode(gap=0.3), VESSELS, ("t", "t"), TimeKind.DOUBLE, TimeKind.DOUBLE)
    episodes = all_rows(rule, pa.Table.from_pylist(rows)).to_pylist()
    assert [(row["t_from"], row["t_to"]) for row in episodes] == [(0.1, 0.4), (1.1, 1.4)]


#: In 2026, Zurich sets its clocks forward on 29 March at 01:00 UTC, and back on 25 October at 01:00 UTC.
DAYS = {
    "2026-03-28T23:00": "2026-03-28T23:00",
    "2026-03-29T21:59": "2026-03-28T23:00",
    "2026-03-29T22:00": "2026-03-29T22:00",
    "2026-10-24T21:59": "2026-10-23T22:00",
    "2026-10-24T22:00": "2026-10-24T22:00",
    "2026-10-25T22:59": "2026-10-24T22:00",
    "2026-10-25T23:00": "2026-10-25T23:00",
}


def test_windows_in_a_zone_are_those_of_its_clock() -> None:
    """A day has 23, 24 or 25 hours; a stream gives it when it is over."""
    moments = {text: datetime.fromisoformat(f"{text}+00:00") for text in (*DAYS, *DAYS.values())}
    answers = pa.Table.from_pylist([_pair(0, text, "b") | {"t": moments[text]} for text in DAYS])
    per = PerWindow(86_400.0, zone="Europe/Zurich")
    rule = PerRule(per, VESSELS, ("t", "t"), TimeKind.TIMESTAMP, TimeKind.TIMESTAMP)
    rows = all_rows(rule, answers).to_pylist()
    assert {row["v"]["id"]: row["t_from"] for row in rows} == {text: moments[day] for text, day in DAYS.items()}
    assert {row["t_to"] - row["t_from"] for row in rows} == {timedelta(hours=hours) for hours in (23, 24, 25)}
    for text, given_rows in (("2026-10-25T22:59", 4), ("2026-10-25T23:00", 6)):
        watermark = int(moments[text].timestamp()) * 1_000_000
        assert advance(rule, None, answers, Moment(watermark, False)).rows.num_rows == given_rows
