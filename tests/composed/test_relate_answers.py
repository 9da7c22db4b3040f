"""Streams of the answers of RELATE: the time is the end of an operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.local import in_context, local_job, prepared_query, to_table

from anabranch.planning.in_process import answers_in_process

Rows = Sequence[Mapping[str, Any]]

STREAMS = """
CREATE STREAM jams KEY (k STRING) TIME t DOUBLE MODEL INTERVALS ORDER n HORIZON [0, 45];
CREATE QUERY together AS RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b WHERE a.k < b.k;
CREATE STREAM meetings FROM QUERY together;
CREATE STREAM ends KEY (b.k) VALUE (a.end) TIME b.end FROM QUERY together;
CREATE QUERY first AS PATTERN meetings(x, y) GROUP BY x, y;
CREATE QUERY last AS PATTERN ends(x, since) GROUP BY x, since;
CREATE QUERY both AS
  CONSTRAIN u, v FROM meetings WHERE u.`a.k` = v.`a.k` AND u.`b.k` < v.`b.k` AND ABS(u.`a.end` - v.`a.end`) <= 1;
CREATE QUERY apart AS
  CONSTRAIN u, v FROM meetings WHERE u.`a.k` < v.`a.k` AND u.`b.k` <> v.`b.k` AND ABS(u.`a.end` - v.`a.end`) <= 100;
"""


def jams(**segments: tuple[float | None, float | None]) -> Rows:
    """One segment of each key; None is a lost time."""
    return [{"k": k, "n": n, "t": t} for k, ends in segments.items() for n, t in enumerate(ends, start=1)]


def run(name: str, rows: Rows, workbook: str = STREAMS) -> list[dict[str, Any]]:
    """The answers of a query over the answers of `together`."""
    inner = in_context(local_job(workbook, "together"), ends=True)
    answers = answers_in_process(inner, [to_table(inner, 0, rows)])[0].flatten().to_pylist()
    outer = local_job(workbook, name)
    return answers_in_process(outer, [to_table(outer, 0, answers)])[0].to_pylist()


#: b begins at 5, and its end is lost: any instant until 45. It reaches c with probability 25/40, and d with 10/40.
ROWS = jams(b=(5.0, None), c=(20.0, 30.0), d=(35.0, 40.0), e=(22.0, 38.0))


def test_the_time_is_the_end_of_the_first_operand() -> None:
    found = {(row["x"], row["y"]): (row["t"], row["probability"]) for row in run("first", ROWS)}
    expected = {("b", "c"): (45.0, 25 / 40), ("b", "d"): (45.0, 10 / 40), ("b", "e"): (45.0, 23 / 40)}
    expected |= {("c", "e"): (30.0, 1.0), ("d", "e"): (40.0, 1.0)}
    assert found == {pair: (t, pytest.approx(p)) for pair, (t, p) in expected.items()}


def test_the_end_of_the_other_operand_can_be_named() -> None:
    found = {(row["t"], row["x"], row["since"]) for row in run("last", ROWS)}
    assert {(30.0, "c", 45.0), (40.0, "d", 45.0)} <= found


def test_answers_that_share_an_entity_have_bounds_that_are_reached() -> None:
    """If b reaches d, it also reaches c: both happen with the probability of the second."""
    answers = {(row["u"]["b.k"], row["v"]["b.k"]): row for row in run("both", ROWS)}
    row = answers["c", "d"]
    assert row["method"] == "bounds"
    assert row["lower"] <= 10 / 40 == pytest.approx(row["upper"])


def test_answers_about_different_entities_are_exact() -> None:
    rows = jams(a=(0.0, 10.0), b=(5.0, None), c=(20.0, None), d=(30.0, 35.0))
    answers = {tuple(row[name][key] for name in "uv" for key in ("a.k", "b.k")): row for row in run("apart", rows)}
    row = answers["a", "b", "c", "d"]
    assert (row["method"], row["probability"]) == ("exact", pytest.approx(15 / 25))


def test_times_and_types() -> None:
    workbook = STREAMS.replace("t DOUBLE", "t TIMESTAMP").replace("[0, 45]", "['2026-01-01', '2026-01-02']")
    day = datetime(2026, 1, 1, tzinfo=UTC)
    rows = jams(b=(day.replace(hour=5), None), c=(day.replace(hour=20), day.replace(hour=21)))
    ((t, p),) = ((row["t"], row["probability"]) for row in run("first", rows, workbook))
    assert (t, p) == (datetime(2026, 1, 2, tzinfo=UTC), pytest.approx(4 / 19))
    assert prepared_query(workbook, "first").bound.streams[0].time.name == "a.end"


def test_a_run_of_the_query_itself_has_no_ends() -> None:
    job = local_job(STREAMS, "together")
    (row, *_) = answers_in_process(job, [to_table(job, 0, ROWS)])[0].to_pylist()
    assert set(row) == {"a", "b", "probability"}
    assert set(row["a"]) == {"k"}
