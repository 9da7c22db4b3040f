"""Queries that share a pass over an archive have the answers that each of them has alone; inference happens once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.inference.test_stream import building, random_readings

from anabranch.columns.calibration import CalibrationMap
from anabranch.inference.model import write_hmm
from anabranch.inference.stream import InferredKeys
from anabranch.language.parser import parse
from anabranch.planning.derived import layouts_of
from anabranch.planning.in_process import answers_in_process
from anabranch.planning.planner import MOST_TOGETHER, Planner
from anabranch.planning.prepared import with_job
from anabranch.transport.finishing import finish_table
from anabranch.transport.job import Job, JobContext
from anabranch.transport.routing import route
from anabranch.transport.shared import SharedJob
from anabranch.transport.watermark import Clock

INFERRED = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE STREAM at KEY (tag) VALUE (room STRING) TIME t INFERRED FROM readings USING HMM 'model/' METHOD {};
CREATE QUERY a AS PATTERN at(x, 'hall') THEN at(x, r) WHERE r <> 'hall' GROUP BY x;
CREATE QUERY b AS PATTERN at(y, 'office') THEN at(y, 'hall') GROUP BY y THRESHOLD 0.05;
CREATE QUERY c AS PATTERN at(_, 'office') THEN at(_, 'lab');
CREATE QUERY d AS PATTERN at('tag1', r) THEN at('tag1', s) WHERE r <> s;
"""


def planned(text: str, folder: Path) -> tuple[list, JobContext]:
    """The prepared queries of a workbook over the same streams, and their context."""
    planner = Planner()
    assert planner.declare(parse(text)) == []
    (queries,) = planner.groups(planner.catalog.queries())
    group = [planner.prepare(query) for query in queries]
    streams = group[0].bound.streams
    read = [planner.catalog.stream(getattr(stream.source, "stream", stream.name)) for stream in streams]
    layouts = layouts_of(streams, read, [str(folder)] * len(streams))
    return group, JobContext(layouts, {}, "", folders=(str(folder),) * len(group))


def run(job: Job, tables: dict[str, pa.Table], n_buckets: int) -> pa.Table:
    """The raw answers of all buckets, as a batch run has them."""
    routed = [route(tables[layout.name], stream, job, n_buckets) for stream, layout in enumerate(job.layouts)]
    watermark = Clock(job.layouts).advance([part.newest for part in routed], ended=True)
    answers = []
    for bucket in range(n_buckets):
        packets = [(stream, blob) for stream, part in enumerate(routed) for of, blob in part.packets if of == bucket]
        answers.append(job.operator().step(packets, watermark, ended=True).answers)
    return pa.concat_tables(answers)


def canonical(answers: pa.Table) -> list[tuple[Any, ...]]:
    rows = ((name, *map(repr, row.values())) for name, row in enumerate(answers.to_pylist()))
    return sorted(row[1:] for row in rows)


@pytest.mark.parametrize("n_buckets", [1, 3])
@pytest.mark.parametrize("method", ["SMOOTH", "FILTER"])
def test_queries_over_an_inferred_stream_share_inference(
    method: str, n_buckets: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hmm(building(), tmp_path / "model")
    group, context = planned(INFERRED.format(method), tmp_path)
    tables = {"readings": pa.Table.from_pylist(random_readings(7, keys=6))}
    expected = []
    for prepared in group:
        _, job = with_job([prepared], context)
        expected.append(canonical(finish_table(job.finishing(), run(job, tables, n_buckets))))
    calls = []
    advance = InferredKeys.advance
    monkeypatch.setattr(InferredKeys, "advance", lambda *arguments: calls.append(1) or advance(*arguments))
    _, shared = with_job(group, context)
    assert isinstance(shared, SharedJob)
    answers = run(shared, tables, n_buckets)
    found = [canonical(finish_table(shared.finishing(number), answers)) for number in range(len(group))]
    assert found == expected
    assert all(found[:3])
    # a and b route alike; c has all keys in one bucket, and d one key only.
    assert len(calls) <= (3 if n_buckets == 1 else 3 * n_buckets)
    assert len(calls) < len(group) * n_buckets


def test_streams_may_be_in_another_order_in_each_query(tmp_path: Path) -> None:
    text = """
    CREATE STREAM a KEY (k STRING) VALUE (v STRING) TIME t INTEGER;
    CREATE STREAM b KEY (k STRING) VALUE (v STRING) TIME t INTEGER;
    CREATE QUERY one AS PATTERN a(x, 'u') THEN b(x, 'w') GROUP BY x;
    CREATE QUERY two AS PATTERN b(x, 'u') THEN a(x, v) GROUP BY x;
    """
    group, context = planned(text, tmp_path)
    rows = {"k": ["p", "p", "q", "q"], "v": ["u", "w", "u", "w"], "t": [1, 4, 2, 3]}
    tables = {"a": pa.table(rows), "b": pa.table(rows | {"t": [2, 5, 1, 4]})}
    _, shared = with_job(group, context)
    answers = run(shared, tables, 2)
    for number, prepared in enumerate(group):
        own = JobContext(layouts_of(prepared.bound.streams, prepared.bound.streams, [".", "."]), {}, "", folders=(".",))
        _, job = with_job([prepared], own)
        expected = canonical(finish_table(job.finishing(), run(job, tables, 2)))
        assert canonical(finish_table(shared.finishing(number), answers)) == expected != []


RELATE = """
CREATE STREAM s KEY (k STRING) TIME t DOUBLE MODEL INTERVALS ORDER seq;
CREATE QUERY q0 AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k;
CREATE QUERY q1 AS RELATE ALL a STARTS BEFORE SOME b FROM s AS a, s AS b;
"""
MONITOR = """
CREATE STREAM s KEY (k STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 1 PERIOD 9;
CREATE QUERY q0 AS MONITOR a, b FROM s AS a, s AS b WHERE ABS(a.x - b.x) < 3 AND a.k < b.k SEMANTICS MAY;
CREATE QUERY q1 AS MONITOR a FROM s AS a WHERE a.x > 2;
"""


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (RELATE, {"k": ["a", "a", "b", "b"], "t": [1.0, 5.0, 3.0, 7.0], "seq": [1, 2, 1, 2]}),
        (MONITOR, {"k": ["a", "b", "a"], "x": [0.0, 2.0, 4.0], "t": [0.0, 1.0, 5.0], "x_rate": [0.5, 0.0, 0.1]}),
    ],
    ids=["RELATE", "MONITOR"],
)
def test_relate_and_monitor_queries_share_a_pass(text: str, rows: dict[str, list], tmp_path: Path) -> None:
    group, context = planned(text, tmp_path)
    tables = [pa.table(rows)]
    _, shared = with_job(group, context)
    for number, prepared in enumerate(group):
        _, job = with_job([prepared], context)
        expected, _ = answers_in_process(job, tables)
        found, _ = answers_in_process(shared, tables, number)
        assert canonical(found) == canonical(expected) != []


def test_groups_are_not_too_large_and_streams_run_alone() -> None:
    planner = Planner()
    queries = "".join(f"CREATE QUERY q{n} AS PATTERN s(x, '{n}') GROUP BY x;" for n in range(MOST_TOGETHER + 1))
    assert planner.declare(parse(f"CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER;{queries}")) == []
    assert [len(group) for group in planner.groups(planner.catalog.queries())] == [MOST_TOGETHER, 1]
    assert len(planner.groups(planner.catalog.queries(), live=True)) == MOST_TOGETHER + 1


def test_limits_and_calibrations_belong_to_their_query(tmp_path: Path) -> None:
    group, context = planned(RELATE, tmp_path)
    calibration = CalibrationMap(((0.0, 0.0), (1.0, 0.5)))
    _, shared = with_job(group, replace(context, limits={1: 3}, calibrations={0: calibration}))
    first, second = (shared.finishing(number) for number in range(2))
    assert (first.limit, first.calibration) == (None, calibration)
    assert (second.limit, second.calibration) == (3, None)
