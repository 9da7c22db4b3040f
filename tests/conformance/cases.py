"""Runs the case folders on a Spark session, in batch or as streams, and compares with their expected answers."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch import Session
from anabranch.catalog import Stream
from tests.runtime.office import write_csv

CASES = Path(__file__).parents[3] / "shared" / "cases"

FOLDERS = ("pattern", "pattern_stream", "pattern_second", "sequence", "relate", "monitor", "constrain")

#: For folders in which a comment states the shape of each query: the shapes that are run; the others are not supported.
SHAPES: dict[str, tuple[str, ...]] = {"pattern_second": ("within", "absent", "either", "per")}
#: The number of streams that run at the same time: most of a start is waiting. Spark allows the Python process of each
#: ten seconds to start, so more streams would fail on a busy machine.
MAX_STREAMS = 3

Answers = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Verdict:
    """Whether all answers of a folder are the expected ones, and the output of the comparison."""

    passed: bool
    output: str


@dataclass(frozen=True)
class Folder:
    """A folder of cases, or those of its cases that have certain shapes.

    Attributes
    ----------
    name : of the folder
    workbook : the text of its workbook, with the chosen queries only
    expected : for each of these queries, what it must give
    """

    name: str
    workbook: str
    expected: dict[str, Any]

    @property
    def path(self) -> Path:
        """Where it is."""
        return CASES / self.name

    def session(self, spark: SparkSession, partitions: int) -> Session:
        """A session with its declarations."""
        session = Session(spark, partitions=partitions)
        session.execute(self.workbook, str(self.path / "workbook.abq"))
        return session


def load_folder(name: str, shapes: Sequence[str] = ()) -> Folder:
    """The cases of a folder; where it has shapes, those of the given ones, or of `SHAPES`."""
    text = (CASES / name / "workbook.abq").read_text()
    expected = json.loads((CASES / name / "expected.json").read_text())
    if name not in SHAPES:
        return Folder(name, text, expected)
    parts = re.split(r"^-- shape: (\w+)$", text, flags=re.MULTILINE)[1:]
    chosen = [body for shape, body in zip(parts[::2], parts[1::2], strict=True) if shape in (shapes or SHAPES[name])]
    workbook = "".join(chosen)
    queries = set(re.findall(r"CREATE QUERY (\w+)", workbook))
    return Folder(name, workbook, {query: case for query, case in expected.items() if query in queries})


def run_batch(spark: SparkSession, folder: Folder, partitions: int) -> Verdict:
    """Run the queries of a folder over its files, with this number of partitions."""
    session = folder.session(spark, partitions)
    frames_by_columns: dict[tuple[str, ...], list[DataFrame]] = {}
    for query in session.catalog.queries():
        frame = session.run(query.name)
        frames_by_columns.setdefault(tuple(frame.columns), []).append(frame.withColumn("query", F.lit(query.name)))
    answers: Answers = {query.name: [] for query in session.catalog.queries()}
    # Queries with the same columns are one job.
    for frames in frames_by_columns.values():
        for row in reduce(DataFrame.unionAll, frames).toArrow().to_pylist():
            answers[row["query"]].append(row)
    return _verdict(folder, answers)


def run_streaming(spark: SparkSession, folder: Folder, partitions: int) -> Verdict:
    """Run the queries of a folder as streams, with as many files as partitions and one file per micro-batch."""
    session = folder.session(spark, partitions)
    queries = session.catalog.queries()
    groups = [[query.name for query in group] for group in session.groups(queries)]
    with tempfile.TemporaryDirectory(prefix="anabranch-cases-") as temporary:
        work = Path(temporary)
        for stream, files in _stream_files(session, folder.path, work / "in", partitions):
            session.bind(stream, str(files))
        for first in range(0, len(groups), MAX_STREAMS):
            _stream_together(session, groups[first : first + MAX_STREAMS], work)
        return _verdict(folder, {query.name: _rows(work / "out" / query.name) for query in queries})


@dataclass(frozen=True)
class Mode:
    """A function that runs a folder, and the folders that it can run."""

    run: Callable[[SparkSession, Folder, int], Verdict]
    folders: tuple[str, ...]


#: Some queries of `pattern` need the whole archive.
MODES = {"batch": Mode(run_batch, FOLDERS), "streaming": Mode(run_streaming, FOLDERS[1:])}


def _stream_together(session: Session, groups: Sequence[Sequence[str]], folder: Path) -> None:
    """Start a stream for each group of queries, process all input, end the inputs, and stop the streams."""
    running = []
    for names in groups:
        checkpoint = str(folder / "checkpoints" / names[0])
        outputs = [str(folder / "out" / name) for name in names]
        running.append((session.start_together(names, checkpoint, outputs, max_files=1), checkpoint))
    for started, checkpoint in running:
        started.processAllAvailable()
        session.end_input(checkpoint)
    for started, _ in running:
        started.processAllAvailable()
        started.stop()


def _rows(folder: Path) -> list[dict[str, Any]]:
    """The final answers that the stream of a query has written."""
    return [row for file in sorted(folder.glob("part-*")) for row in pq.read_table(file).to_pylist()]


def _stream_files(session: Session, case: Path, folder: Path, count: int) -> Iterator[tuple[str, Path]]:
    for entry in session.catalog.entries.values():
        if isinstance(entry, Stream):
            yield entry.name, _in_files(case / entry.source.path, folder / entry.name, entry.time.name, count)


def _in_files(source: Path, folder: Path, time: str, count: int) -> Path:
    """Split a CSV file into several by time; the rows of an instant can be in two files."""
    with open(source) as file:
        names, *rows = csv.reader(file)
    time_index = names.index(time)
    rows.sort(key=lambda row: float(row[time_index] or "inf"))
    for number in range(count):
        part = rows[number * len(rows) // count : (number + 1) * len(rows) // count]
        write_csv(folder / f"{number}.csv", part, ",".join(names))
    return folder


def _verdict(folder: Folder, answers: Answers) -> Verdict:
    output = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="anabranch-cases-") as temporary:
        wanted, given = Path(temporary) / "expected", Path(temporary) / "answers"
        wanted.mkdir()
        (wanted / "expected.json").write_text(json.dumps(folder.expected))
        for query, rows in answers.items():
            (given / query).mkdir(parents=True)
            lines = [json.dumps(row, default=str) + "\n" for row in rows]
            (given / query / "answers.json").write_text("".join(lines))
        with redirect_stdout(output), warnings.catch_warnings():
            # The comparison belongs to the cases, and leaves its files open.
            warnings.simplefilter("ignore", ResourceWarning)
            passed = _comparison()(wanted, given) == 0
    return Verdict(passed, output.getvalue().strip())


@cache
def _comparison() -> Callable[[Path, Path], int]:
    """Load the function that compares answers, which belongs to the cases."""
    spec = importlib.util.spec_from_file_location("check", CASES / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check
