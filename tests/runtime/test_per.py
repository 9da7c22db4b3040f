"""PER on Spark: the same rows in batch and on a stream that is stopped, replayed and resumed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shutil import copy2
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.local import local_job
from tests.rows import RowsRun, comparable
from tests.runtime.test_constrain import STREAM, folder, rows

from anabranch import Session
from anabranch.errors import WorkbookError

__all__ = ["folder"]

TWICE = "CONSTRAIN u, v FROM e WHERE u.id = v.id AND u.kind = 'A' AND v.kind = 'A' AND v.t - u.t IN [1, 30]"
CROWD = "CONSTRAIN v*2 FROM e WHERE v.temp > 0.5 AND v.id <> v.id AND DISTANCE(v, v) <= 4 AND SPAN(v, v) <= 10"
QUERIES = {
    "windows": f"{TWICE} PER 50 AT LEAST 2 TIMES",
    "episodes": f"{TWICE} PER EPISODE GAP 2",
    "instants": f"{CROWD} PER EPISODE",
    "groups": f"{CROWD} PER KEYS",
    "answers": TWICE,
}
WORKBOOK = STREAM + "".join(f"CREATE QUERY {name} AS {query};" for name, query in QUERIES.items())
NAMES = tuple(QUERIES)


def expected(name: str) -> list[Any]:
    """The rows without Spark, which other tests compare with their definition."""
    run = RowsRun(local_job(WORKBOOK, name), 1)
    run.step({"e": rows()}, end=True)
    return same(name, run.rows)


def same(name: str, found: Iterable[dict[str, Any]]) -> list[Any]:
    return comparable(local_job(WORKBOOK, name).finishing().per, list(found))


def session_of(spark: SparkSession, source: Path) -> Session:
    session = Session(spark)
    session.execute(WORKBOOK)
    session.bind("e", str(source))
    return session


def test_the_rows_of_an_archive(spark: SparkSession, folder: Path) -> None:
    session = session_of(spark, folder)
    answers = session.run_all()
    for name in NAMES[:-1]:
        found = answers[name].toArrow().to_pylist()
        assert same(name, found) == expected(name)
        assert session.counts(name).answers == len(found) > 5
    session.release()
    alone = session.run("instants")
    assert alone.columns == ["t_from", "t_to", "v", "count", "probability", "expected"]
    assert same("instants", alone.toArrow().to_pylist()) == expected("instants")


def test_a_stream_gives_the_rows_of_the_archive_once(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """The last micro-batch before the stop is replayed, as if the machine had stopped before Spark's commit."""
    (tmp_path / "in").mkdir()
    checkpoint = tmp_path / "checkpoint"
    outputs = [tmp_path / "out" / name for name in NAMES]

    def process(*files: int) -> None:
        for number in files:
            copy2(folder / f"{number}.parquet", tmp_path / "in" / f"{number}.parquet")
        session = session_of(spark, tmp_path / "in")
        running = session.start_together(NAMES, str(checkpoint), list(map(str, outputs)), max_files=1)
        running.processAllAvailable()
        running.stop()

    process(0, 1)
    commits = checkpoint / "spark" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    process(2, 3)
    session_of(spark, tmp_path / "in").end_input(str(checkpoint))
    process()
    assert len(list((checkpoint / "rows").glob("*.rows"))) == 2, "older files are removed"
    for name, output in zip(NAMES[:-1], outputs, strict=False):
        found = [row for path in output.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
        assert same(name, found) == expected(name)
    provisional = list((tmp_path / "out" / "groups" / "_provisional").glob("*.parquet"))
    assert provisional
    assert set(pq.read_table(provisional[0])["status"].to_pylist()) == {"provisional"}


def test_a_stream_has_no_limit(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    session = session_of(spark, folder)
    session.execute(f"CREATE QUERY most AS {TWICE} ORDER BY probability DESC LIMIT 3;")
    assert session.run("most").count() == 3
    with pytest.raises(WorkbookError, match="LIMIT needs all answers, and a stream never has all; remove it"):
        session.start("most", str(tmp_path / "checkpoint"), str(tmp_path / "out"))


def test_a_pair_of_relate_is_a_row(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute("CREATE STREAM iv KEY (id) TIME t MODEL INTERVALS ORDER seq;")
    session.bind("iv", [("p", 1, 0), ("p", 2, 4), ("q", 1, 6), ("q", 2, 9)], columns=["id", "seq", "t"])
    found = session.ask("RELATE SOME a PRECEDES SOME b FROM iv AS a, iv AS b PER KEYS THRESHOLD 0.5")
    assert found.toArrow().to_pylist() == [
        {"a": {"id": "p"}, "b": {"id": "q"}, "count": 1, "probability": 1.0, "expected": 1.0}
    ]
