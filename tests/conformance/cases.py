"""The case folders, run on a Spark session in batch or as streams, and held against their expected answers."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch import Session
from anabranch.catalog import Stream
from anabranch.rows.operator import FINAL
from tests.runtime.office import write_csv

CASES = Path(__file__).parents[3] / "shared" / "cases"

FOLDERS = ("pattern", "pattern_stream", "sequence", "relate", "monitor", "constrain")
#: So many queries stream at a time: most of a start is waiting. Spark gives the Python process of each ten seconds to
#: come up, so that more of them would fail on a busy machine.
TOGETHER = 3

Answers = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Verdict:
    """Whether all answers of a folder are the expected ones, and what the comparison said."""

    right: bool
    said: str


def run_batch(spark: SparkSession, name: str, partitions: int) -> Verdict:
    """Run the queries of a folder over its files, cut into so many partitions."""
    session = _session(spark, name, partitions)
    alike: dict[tuple[str, ...], list[DataFrame]] = {}
    for query in session.catalog.queries():
        found = session.run(query.name)
        alike.setdefault(tuple(found.columns), []).append(found.withColumn("query", F.lit(query.name)))
    answers: Answers = {query.name: [] for query in session.catalog.queries()}
    # Queries with the same columns are one job.
    for frames in alike.values():
        for row in reduce(DataFrame.unionAll, frames).toArrow().to_pylist():
            answers[row["query"]].append(row)
    return _verdict(name, answers)


def run_streaming(spark: SparkSession, name: str, partitions: int) -> Verdict:
    """Run the queries of a folder as streams: as many files, one a micro-batch, and tasks as there are partitions."""
    session = _session(spark, name, partitions)
    answers: Answers = {query.name: [] for query in session.catalog.queries()}
    names = list(answers)
    with tempfile.TemporaryDirectory(prefix="anabranch-cases-") as folder:
        for stream, files in _stream_files(session, CASES / name, Path(folder) / "in", partitions):
            session.bind(stream, str(files))
        for first in range(0, len(names), TOGETHER):
            chosen = {query: answers[query] for query in names[first : first + TOGETHER]}
            _stream_together(session, chosen, Path(folder) / "checkpoints")
    return _verdict(name, {query: [row for row in rows if _is_final(row)] for query, rows in answers.items()})


@dataclass(frozen=True)
class Way:
    """A way to run a folder, and the folders that can be run so."""

    run: Callable[[SparkSession, str, int], Verdict]
    folders: tuple[str, ...]


#: Some queries of `pattern` must see the whole archive.
WAYS = {"batch": Way(run_batch, FOLDERS), "streaming": Way(run_streaming, FOLDERS[1:])}


def _session(spark: SparkSession, name: str, partitions: int) -> Session:
    session = Session(spark, partitions=partitions)
    session.execute_file(str(CASES / name / "workbook.abq"))
    return session


def _stream_together(session: Session, answers: Answers, checkpoints: Path) -> None:
    """Start queries, let them read all there is, end their inputs, and stop them; their answers are put into lists."""
    running = []
    for query, rows in answers.items():
        take = lambda frame, batch, rows=rows: rows.extend(frame.toArrow().to_pylist())  # noqa: E731
        checkpoint = str(checkpoints / query)
        running.append((session.start(query, checkpoint, foreach_batch=take, max_files=1), checkpoint))
    for started, checkpoint in running:
        started.processAllAvailable()
        session.end_input(checkpoint)
    for started, _ in running:
        started.processAllAvailable()
        started.stop()


def _stream_files(session: Session, case: Path, folder: Path, count: int) -> Iterator[tuple[str, Path]]:
    for entry in session.catalog.entries.values():
        if isinstance(entry, Stream):
            yield entry.name, _in_files(case / entry.source.path, folder / entry.name, entry.time.name, count)


def _in_files(source: Path, folder: Path, time: str, count: int) -> Path:
    """A CSV file as several, the earlier rows in the first; an instant at a cut has rows on both sides."""
    with open(source) as file:
        names, *rows = csv.reader(file)
    place = names.index(time)
    rows.sort(key=lambda row: float(row[place] or "inf"))
    for number in range(count):
        part = rows[number * len(rows) // count : (number + 1) * len(rows) // count]
        write_csv(folder / f"{number}.csv", part, ",".join(names))
    return folder


def _is_final(row: dict[str, Any]) -> bool:
    return row.get("status", "final") in FINAL


def _verdict(name: str, answers: Answers) -> Verdict:
    said = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="anabranch-cases-") as folder:
        for query, rows in answers.items():
            (Path(folder) / query).mkdir()
            lines = [json.dumps(row, default=str) + "\n" for row in rows]
            (Path(folder) / query / "answers.json").write_text("".join(lines))
        with redirect_stdout(said), warnings.catch_warnings():
            # The comparison, which is not ours, leaves its files open.
            warnings.simplefilter("ignore", ResourceWarning)
            right = _comparison()(CASES / name, Path(folder)) == 0
    return Verdict(right, said.getvalue().strip())


@cache
def _comparison() -> Callable[[Path, Path], int]:
    """The comparison that belongs to the cases."""
    spec = importlib.util.spec_from_file_location("check", CASES / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check
