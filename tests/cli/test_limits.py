"""A query with too many answers fails alone: the other queries of the workbook are answered."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.local import declared

import anabranch as ab
from anabranch.catalog import Catalog
from anabranch.cli.messages import RunFailed
from anabranch.cli.stream import _Group
from anabranch.runtime import execution
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.file_system import LocalFolder

WORKBOOK = """
CREATE STREAM e KEY (k STRING) TIME t INTEGER FROM 'e';
CREATE QUERY pairs AS SEQUENCE (x, y) FROM e WHERE x.t >= 0 AND y.t >= 0 AND x.k = y.k WITHIN 1;
CREATE QUERY many AS SEQUENCE (w, x, y, z) FROM e
  WHERE w.t >= 0 AND x.t >= 0 AND y.t >= 0 AND z.t >= 0 AND w.k = x.k AND x.k = y.k AND y.k = z.k WITHIN 1000;
CREATE QUERY triples AS SEQUENCE (x, y, z) FROM e
  WHERE x.t >= 0 AND y.t >= 0 AND z.t >= 0 AND x.k = y.k AND y.k = z.k WITHIN 2;
CREATE QUERY seen AS PATTERN e(x) GROUP BY x;
CREATE QUERY all_bindings AS PATTERN e(x) THEN e(y) GROUP BY x, y;
"""
N = 40
#: The answers of the queries that have at most 200.
ANSWERS = {"pairs": N - 1, "triples": N - 2, "seen": N + 40}


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    (tmp_path / "e").mkdir()
    rows = [f"a,{t}" for t in range(N)] + [f"{key}{number},{t}" for t, key in enumerate("kl") for number in range(20)]
    (tmp_path / "e" / "rows.csv").write_text("\n".join(["k,t", *rows]))
    path = tmp_path / "w.abq"
    path.write_text(WORKBOOK)
    return path


def written(folder: Path, names: Iterable[str] = ANSWERS) -> dict[str, int]:
    """The number of final answers of queries in an output folder."""
    return {
        name: sum(pq.ParquetFile(path).metadata.num_rows for path in (folder / name).glob("part-*.parquet"))
        for name in names
    }


def test_a_run_goes_on_without_the_queries_that_have_too_many_answers(
    spark: SparkSession, workbook: Path, anabranch: Command
) -> None:
    output, summary = workbook.parent / "out", workbook.parent / "summary.json"
    arguments = ["--output", output, "--max-answers", "200", "--summary", summary]
    outcome = anabranch("run", workbook, *arguments)
    assert outcome.status == 1
    failed = [line for line in outcome.err.splitlines() if "more than" in line]
    assert [line.rpartition("; ")[0].partition(" (")[0] for line in failed] == [
        f"{workbook}:4:1: many: more than 200 answers in one bucket and step",
        f"{workbook}:9:1: all_bindings: more than 1,600 pairs of a binding and an event in one bucket and step",
    ]
    assert written(output) == ANSWERS
    assert not (output / "many").exists()
    report = json.loads(summary.read_text())
    assert report["error"] == failed[0]
    assert {query["query"]: query["answers"] for query in report["queries"]} == ANSWERS


def test_a_stream_goes_on_without_the_queries_that_have_too_many_answers(
    spark: SparkSession, workbook: Path, anabranch: Command
) -> None:
    output, checkpoint = workbook.parent / "out", workbook.parent / "checkpoint"
    arguments = ["--once", "--checkpoint", checkpoint, "--output", output, "--max-answers", "200"]
    outcome = anabranch("stream", workbook, *arguments)
    assert outcome.status == 1
    assert outcome.first.startswith(
        f"{workbook}:4:1: many: more than 200 answers in one bucket and step (the last one: "
    )
    assert "removed many: its answers so far stay in its folder" in outcome.err
    assert written(output) == ANSWERS
    # Later rows: the query is started again, and sees what is newer.
    rows = [f"a,{t}" for t in range(1000, 1005)]
    (workbook.parent / "e" / "later.csv").write_text("\n".join(["k,t", *rows]))
    outcome = anabranch("stream", workbook, *arguments, "--query", "pairs", "--query", "many", "--query", "triples")
    assert outcome.status == 0
    assert "added many: it sees the events that are newer than all rows read before" in outcome.err
    assert written(output) == {"pairs": N - 1 + 4, "triples": N - 2 + 3, "seen": N + 40}
    assert written(output, ["many"]) == {"many": 5}


def test_the_limit_of_a_session_and_of_a_run(spark: SparkSession, workbook: Path) -> None:
    session = ab.Session(spark, max_answers=200)
    session.execute_file(str(workbook))
    with pytest.raises(ab.TooManyAnswers, match=r"^many: more than 200 answers in one bucket and step \(.*k = a\)"):
        session.run("many").count()
    assert session.run("pairs").count() == ANSWERS["pairs"]
    with pytest.raises(ab.TooManyAnswers, match="^pairs: more than 10 answers"):
        session.run("pairs", max_answers=10).count()
    assert session.run("many", max_answers=1_000_000).count() == 91_390
    with pytest.raises(ab.TooManyAnswers, match="^many: more than 200 answers"):
        session.run_all(["pairs", "many"])
    with pytest.raises(ab.AnabranchError, match="max_answers is at least 1, not 0"):
        session.run("pairs", max_answers=0)


def test_the_default_limit_is_higher_over_an_archive(spark: SparkSession, workbook: Path, tmp_path: Path) -> None:
    session = ab.Session(spark)
    session.execute_file(str(workbook))
    queries = [session.catalog.query("many")]
    workspace = session._workspace
    archive = execution.resolve(workspace.planner, workspace.bindings, queries)
    live = execution.resolve(
        workspace.planner, workspace.bindings, queries, Checkpoint(LocalFolder(tmp_path / "checkpoint"))
    )
    assert (archive.context.max_answers, live.context.max_answers) == (4_000_000, 1_000_000)


@dataclass
class Started:
    """Stands for a session: it records the names of the queries that are started together."""

    catalog: Catalog
    names: list[list[str]] = field(default_factory=list)

    def start_together(self, names: list[str], *_: object, **__: object) -> None:
        self.names.append(names)


@dataclass
class Failed:
    """A stream that has ended with an error."""

    error: Exception

    def awaitTermination(self) -> None:
        raise self.error


def test_a_running_stream_is_restarted_without_a_query_that_has_too_many_answers(tmp_path: Path) -> None:
    catalog = declared(WORKBOOK)
    session = Started(catalog)
    queries = [catalog.require_query(name) for name in ("pairs", "many")]
    group = _Group(session, queries, str(tmp_path / "checkpoint"), str(tmp_path / "out"), "parquet")
    watched = group.watched("w.abq")
    watched.start()
    for text, goes_on in (("many: more than 10 answers", True), ("pairs: more than 10 answers", False)):
        with pytest.raises(RunFailed, match=rf"^w.abq:\d:1: {text}$") as failure:
            watched.await_end(Failed(ab.TooManyAnswers(text)))
        assert watched.leave_out(failure.value) is goes_on
    watched.start()
    assert session.names == [["pairs", "many"], ["pairs"]]
    with pytest.raises(RunFailed, match=r"^w.abq:3:1: pairs failed: the disk is full$") as failure:
        watched.await_end(Failed(OSError("the disk is full")))
    assert not watched.leave_out(failure.value)
