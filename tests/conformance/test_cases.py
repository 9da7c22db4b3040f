"""Every case folder of a kind that is built, in batch and in streaming, held against its expected answers."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch import Session
from anabranch.catalog import Stream
from anabranch.rows.operator import FINAL
from tests.runtime.office import write_csv

CASES = Path(__file__).parents[3] / "shared" / "cases"

#: The folders whose kind is built, and those of them that can stream.
BUILT = ["pattern", "pattern_stream", "sequence", "relate", "monitor", "constrain"]
STREAMING = ["pattern_stream", "sequence", "relate", "monitor", "constrain"]
#: So many queries stream at a time: most of a start is waiting.
TOGETHER = 4

pytestmark = [
    pytest.mark.skipif(not CASES.exists(), reason="the cases lie beside the project, not in it"),
    # The comparison, which is not ours, leaves its files open.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]


def check() -> Callable[[Path, Path], int]:
    """The comparison that belongs to the cases."""
    spec = importlib.util.spec_from_file_location("check", CASES / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check


def session_of(spark: SparkSession, folder: Path) -> Session:
    session = Session(spark)
    session.execute_file(str(folder / "workbook.abq"))
    return session


def write_answers(folder: Path, rows: list[dict]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers.json").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


@pytest.mark.parametrize("name", BUILT)
def test_batch_gives_the_expected_answers(spark: SparkSession, tmp_path: Path, name: str) -> None:
    session = session_of(spark, CASES / name)
    alike: dict[tuple[str, ...], list[DataFrame]] = {}
    for query in session.catalog.queries():
        answers = session.run(query.name)
        alike.setdefault(tuple(answers.columns), []).append(answers.withColumn("query", F.lit(query.name)))
    # Queries with the same columns are one job.
    rows = [row for frames in alike.values() for row in reduce(DataFrame.unionAll, frames).toArrow().to_pylist()]
    for query in session.catalog.queries():
        write_answers(tmp_path / query.name, [row for row in rows if row["query"] == query.name])
    assert check()(CASES / name, tmp_path) == 0


def in_two_files(source: Path, folder: Path, time: str) -> Path:
    """A CSV file as two, the earlier rows in the first; the instant in the middle has rows in both."""
    with open(source) as file:
        names, *rows = csv.reader(file)
    place = names.index(time)
    rows.sort(key=lambda row: float(row[place] or "inf"))
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        write_csv(folder / f"{number}.csv", part, ",".join(names))
    return folder


def stream_files(session: Session, case: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    for entry in session.catalog.entries.values():
        if isinstance(entry, Stream):
            yield entry.name, in_two_files(case / entry.source.path, folder / entry.name, entry.time.name)


@pytest.mark.parametrize("name", STREAMING)
def test_streaming_gives_the_expected_answers(spark: SparkSession, tmp_path: Path, name: str) -> None:
    session = session_of(spark, CASES / name)
    for stream, files in stream_files(session, CASES / name, tmp_path / "in"):
        session.bind(stream, str(files))
    answers: dict[str, list[dict]] = {query.name: [] for query in session.catalog.queries()}
    names = list(answers)
    for first in range(0, len(names), TOGETHER):
        running = []
        for query in names[first : first + TOGETHER]:
            rows = answers[query]
            take = lambda frame, batch, rows=rows: rows.extend(frame.toArrow().to_pylist())  # noqa: E731
            checkpoint = str(tmp_path / "checkpoints" / query)
            running.append((session.start(query, checkpoint, foreach_batch=take, max_files=1), checkpoint))
        for started, checkpoint in running:
            started.processAllAvailable()
            session.end_input(checkpoint)
        for started, _ in running:
            started.processAllAvailable()
            started.stop()
    for query, rows in answers.items():
        write_answers(tmp_path / "out" / query, [row for row in rows if row.get("status", "final") in FINAL])
    assert check()(CASES / name, tmp_path / "out") == 0
