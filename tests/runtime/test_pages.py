"""Cold keys in Spark's state store: they are found again, also in a micro-batch that is replayed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.runtime.streams import NOW

from anabranch import Session
from anabranch.transport import pages

WORKBOOK = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT FROM '{folder}/in/*.parquet';
CREATE QUERY q AS PATTERN r(k, 'a') THEN r(k, 'b') GROUP BY k;
"""
SEQUENCE = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER FROM '{folder}/in/*.parquet';
CREATE QUERY q AS SEQUENCE (x, y) FROM r WHERE x.v = 'a' AND y.v = 'b' AND x.k = y.k WITHIN 1000;
"""
BUCKETS = 4
#: More idle keys in each bucket than stay hot.
KEYS = 2 * BUCKETS * pages.MOST_IDLE
ASKED = range(100, 110)


class Pages:
    """A stream with many idle keys; every one of a folder resumes from the same checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, workbook: str) -> None:
        self._session, self._folder = Session(spark), folder
        self._session.execute(workbook.format(folder=folder))
        (folder / "in").mkdir(exist_ok=True)

    def add(self, number: int, keys: range, value: str) -> None:
        """Add a file, with all rows at the time of its number."""
        path, n = self._folder / "in" / f"{number}.parquet", len(keys)
        pq.write_table(pa.table({"k": list(keys), "v": [value] * n, "t": [number] * n, "p": [0.5] * n}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)

    def process_files(self) -> list[int]:
        """Process all files, one per micro-batch; returns the number of values and pages after each."""
        checkpoint, output = str(self._folder / "checkpoint"), str(self._folder / "out")
        running = self._session.start("q", checkpoint, output, trigger=NOW, max_files=1, buckets=BUCKETS)
        running.awaitTermination()
        batches = [batch for batch in running.recentProgress if batch["numInputRows"]]
        return [sum(operator["numRowsTotal"] for operator in batch["stateOperators"]) for batch in batches]

    def answers(self) -> dict[tuple[int, int], float]:
        """The probability of each answer, by time and key."""
        rows = pq.read_table(self._folder / "out").to_pylist()
        answers = {(row["t"], row["k"] if "k" in row else row["x"]["k"]): row["probability"] for row in rows}
        assert len(answers) == len(rows)
        return answers


@pytest.mark.parametrize(("workbook", "first", "second"), [(WORKBOOK, 0.25, 0.125), (SEQUENCE, 1.0, 1.0)])
def test_cold_keys_have_their_answers_once(
    spark: SparkSession, tmp_path: Path, workbook: str, first: float, second: float
) -> None:
    stream = Pages(spark, tmp_path, workbook)
    stream.add(1, range(KEYS), "a")
    for number in (2, 3, 4):
        stream.add(number, range(3), "a")
    counts = stream.process_files()
    assert counts[0] == BUCKETS
    assert counts[-1] > BUCKETS + KEYS / pages.MOST_ROWS
    stream.add(5, ASKED, "b")
    stream.add(6, range(3), "a")
    stream.process_files()
    expected = {(5, key): pytest.approx(first) for key in ASKED}
    assert stream.answers() == expected
    # As if the machine had stopped before Spark's commit of the last batch, which makes cold keys hot.
    commits = tmp_path / "checkpoint" / "spark" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    restarted = Pages(spark, tmp_path, workbook)
    restarted.add(7, ASKED, "b")
    restarted.add(8, range(3), "a")
    restarted.process_files()
    # In PATTERN, b is the next one after a if it did not happen at 5.
    again = {(7, key): pytest.approx(second) for key in ASKED}
    assert restarted.answers() == expected | again


RELATE = """
CREATE STREAM r KEY (k INTEGER, g INTEGER) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS FROM '{folder}/in/*.parquet';
CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.g = b.g AND a.k < b.k;
"""


def test_rows_of_entities_whose_keys_are_cold_are_late(spark: SparkSession, tmp_path: Path) -> None:
    session = Session(spark)
    session.execute(RELATE.format(folder=tmp_path))
    (tmp_path / "in").mkdir()

    def add(number: int, keys: range) -> None:
        """Add a file with one segment of each key; two keys in a row are a pair."""
        names = [key for key in keys for _ in range(2)]
        columns = {"k": names, "g": [key // 2 for key in names], "n": [1, 2] * len(keys), "l": [2] * 2 * len(keys)}
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(pa.table(columns | {"t": [10 * number, 10 * number + 5] * len(keys)}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)

    def process() -> StreamingQuery:
        folders = str(tmp_path / "checkpoint"), str(tmp_path / "out")
        running = session.start("q", *folders, trigger=NOW, max_files=1, buckets=BUCKETS)
        running.awaitTermination()
        return running

    add(1, range(KEYS))
    for number in (2, 3):
        add(number, range(KEYS + 10 * number, KEYS + 10 * number + 2))
    batches = process().recentProgress
    assert batches[-1]["stateOperators"][0]["numRowsTotal"] > BUCKETS + KEYS / pages.MOST_ROWS
    add(4, ASKED)
    add(5, range(2 * KEYS, 2 * KEYS + 2))
    process()
    session.end_input(str(tmp_path / "checkpoint"))
    process()
    assert session.counts("q").late == 2 * len(ASKED)
    final = [row for row in pq.read_table(tmp_path / "out").to_pylist() if row["status"] == "final"]
    assert len(final) == KEYS // 2 + 3
