"""`anabranch stream`, killed with its JVM at random moments and restarted: every answer is written exactly once."""

from __future__ import annotations

import json
import os
import random
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.monitor.compare import assert_same
from tests.monitor.local import with_numbers
from tests.recovery.killing import kill_after, started
from tests.runtime.office import answers_of, collect, same, write_parquet

from anabranch import Session

WORKBOOK = """
CREATE STREAM at KEY (person) VALUE (place) TIME t MODEL MARKOV WATERMARK 3 FROM 'in/*.parquet';
CREATE QUERY coffee AS
  PATTERN at(x, 'hall') THEN at(x, 'hall')+<x | TRUE> THEN at(x, 'coffee') GROUP BY x;
CREATE STREAM cars KEY (car) VALUE (x) TIME t MODEL PREDICTED ERROR 1 PERIOD 5 FROM 'cars/*.parquet';
CREATE QUERY near AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 3 AND a.car < b.car WITHIN 1 SEMANTICS MAY MAX DELAY 3;
CREATE STREAM seen KEY (car) VALUE (x) TIME t WATERMARK 3 FROM 'cars/*.parquet';
CREATE QUERY passing AS
  CONSTRAIN u, v FROM seen AS u, seen AS v WHERE v.t - u.t IN [0, 1] AND v.x - u.x IN [0, 4] AND u.car <> v.car
  EMIT EARLY;
"""
SCHEMA = pa.schema(
    [
        ("person", pa.string()), ("place", pa.string()), ("prev_place", pa.string()), ("t", pa.int64()),
        ("p", pa.float64()),
    ]
)  # fmt: skip
REPORTS = pa.schema([("car", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("x_rate", pa.float64())])
PLACES = ("hall", "coffee", "room")
FILES = 20
#: The stream is killed after these numbers of micro-batches and a random delay.
KILLS = (2, 6, 11)


def files_of_rows(rng: random.Random) -> list[list[tuple]]:
    """The rows of each file: a distribution per person and instant, in disorder within the watermark; some are bad."""
    files: list[list[tuple]] = [[] for _ in range(FILES)]
    for t in range(2 * FILES):
        for person in (f"person {number}" for number in range(6)):
            # File n has instants 2n and 2n + 1; some of their rows are in the next file.
            late = t // 2 + (rng.random() < 0.3)
            rows = files[min(late, FILES - 1)]
            for before in (None,) if t == 0 else PLACES:
                weights = [rng.random() for _ in PLACES]
                rows += [
                    (person, place, before, t, weight / sum(weights))
                    for place, weight in zip(PLACES, weights, strict=True)
                ]
        if t % 7 == 0:
            files[t // 2].append((None, "hall", "hall", t, 0.5))
    return files


def files_of_reports(rng: random.Random) -> list[list[tuple]]:
    """The reports of cars; some are in the file after the one of their time."""
    files: list[list[tuple]] = [[] for _ in range(FILES)]
    for t in range(2 * FILES):
        for car in (f"car {number}" for number in range(6)):
            if rng.random() < 0.5:
                late = t // 2 + (rng.random() < 0.3)
                files[min(late, FILES - 1)].append((car, t, rng.uniform(0, 20), rng.uniform(-2, 2)))
    return files


class Feeder:
    """Adds the files of both streams one after another, so that the stream always has work."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._streams = [
            (folder / "in", files_of_rows(rng), SCHEMA), (folder / "cars", files_of_reports(rng), REPORTS)
        ]  # fmt: skip
        self.rows = self._streams[0][1]
        self._added = 0

    def add_up_to(self, count: int) -> None:
        while self._added < min(count, FILES):
            for folder, files, schema in self._streams:
                write_parquet(folder / f"{self._added:03d}.parquet", files[self._added], schema)
            self._added += 1


class Reader(threading.Thread):
    """Reads new files of the output folder all the time; every file must be complete."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.problems: list[str] = []
        self.files_read = 0
        self._known: dict[str, list] = {}
        self._seen: dict[str, tuple[int, int, int]] = {}
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.05):
            try:
                self._read_new_files()
            except Exception as error:
                self.problems.append(repr(error))

    def _read_new_files(self) -> None:
        if not self.folder.exists():
            return
        for name in sorted(os.listdir(self.folder)):
            if name.startswith(("_", ".")):
                continue
            path = self.folder / name
            file = path.stat()
            if not file.st_size:
                self.problems.append(f"{name} is empty")
            version = file.st_ino, file.st_mtime_ns, file.st_size
            if self._seen.get(name) == version:
                continue
            self._seen[name] = version
            rows = sorted(map(repr, pq.read_table(path).to_pylist()))
            if self._known.setdefault(name, rows) != rows:
                self.problems.append(f"{name} has changed")
            self.files_read += 1

    def stop(self) -> None:
        self._done.set()
        self.join()


def test_a_stream_that_is_killed_at_any_moment_gives_every_answer_once(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20260807)
    (tmp_path / "workbook.abq").write_text(WORKBOOK)
    feeder = Feeder(tmp_path, rng)
    feeder.add_up_to(2)
    output = tmp_path / "out" / "coffee"
    reader = Reader(output)
    reader.start()
    try:
        for count in KILLS:
            kill_after(tmp_path, tmp_path / "checkpoint" / "coffee", feeder, count, delay=rng.uniform(0, 0.8))
        feeder.add_up_to(FILES)
        with started(tmp_path, "--once") as running:
            running.finish()
    finally:
        reader.stop()
    assert reader.problems == []
    assert reader.files_read > 0

    session = Session(spark)
    session.execute_file(str(tmp_path / "workbook.abq"))
    batch = collect(session.run("coffee"))
    assert len(batch) > 100
    assert same(answers_of(pq.read_table(output).to_pylist()), batch)
    assert same(answers_of(pd.read_parquet(output).to_dict("records")), batch)
    assert same(collect(spark.read.parquet(str(output))), batch)

    near = pq.read_table(tmp_path / "out" / "near").drop_columns("status").to_pylist()
    assert len(near) > 50
    assert_same(
        [with_numbers(row) for row in near],
        [with_numbers(row) for row in session.run("near").toArrow().to_pylist()],
        ["a", "b"],
    )

    passing = pq.read_table(tmp_path / "out" / "passing")
    assert passing.num_rows > 50
    assert sorted(map(repr, passing.to_pylist())) == sorted(map(repr, session.run("passing").toArrow().to_pylist()))

    bad = [row for rows in feeder.rows for row in rows if row[0] is None]
    quarantine_files = sorted((tmp_path / "out" / "_quarantine" / "coffee").glob("*.json"))
    quarantined = [json.loads(line) for file in quarantine_files for line in file.read_text().splitlines()]
    assert sorted(json.loads(row["row"])["t"] for row in quarantined) == sorted(row[3] for row in bad)
    assert {row["reason"] for row in quarantined} == {"person is NULL"}
    assert session.counts("coffee").late == 0
