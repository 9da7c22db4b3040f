"""Cold keys in Spark's state store: they are found again, also in a micro-batch that is replayed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import NOW

from anabranch import Session
from anabranch.transport import pages

WORKBOOK = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT FROM '{folder}/in/*.parquet';
CREATE QUERY q AS PATTERN r(k, 'a') THEN r(k, 'b') GROUP BY k;
"""
#: With 16 buckets, more idle keys in each than stay hot.
KEYS = 2 * 16 * pages.MOST_IDLE
ASKED = range(100, 110)


class Pages:
    """A stream with many idle keys; every one of a folder resumes from the same checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._session, self._folder = Session(spark), folder
        self._session.execute(WORKBOOK.format(folder=folder))
        (folder / "in").mkdir(exist_ok=True)

    def add(self, number: int, keys: range, value: str) -> None:
        """Add a file, with all rows at the time of its number."""
        path, n = self._folder / "in" / f"{number}.parquet", len(keys)
        pq.write_table(pa.table({"k": list(keys), "v": [value] * n, "t": [number] * n, "p": [0.5] * n}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)

    def process_files(self) -> list[int]:
        """Process all files, one per micro-batch; returns the number of values and pages after each."""
        checkpoint, output = str(self._folder / "checkpoint"), str(self._folder / "out")
        running = self._session.start("q", checkpoint, output, trigger=NOW, max_files=1)
        running.awaitTermination()
        batches = [batch for batch in running.recentProgress if batch["numInputRows"]]
        return [sum(operator["numRowsTotal"] for operator in batch["stateOperators"]) for batch in batches]

    def answers(self) -> dict[tuple[int, int], float]:
        """The probability of each answer, by time and key."""
        rows = pq.read_table(self._folder / "out").to_pylist()
        assert len({(row["t"], row["k"]) for row in rows}) == len(rows)
        return {(row["t"], row["k"]): row["probability"] for row in rows}


def test_cold_keys_have_their_answers_once(spark: SparkSession, tmp_path: Path) -> None:
    stream = Pages(spark, tmp_path)
    stream.add(1, range(KEYS), "a")
    for number in (2, 3, 4):
        stream.add(number, range(3), "a")
    counts = stream.process_files()
    assert counts[0] == 16
    assert counts[-1] > 16 + KEYS / pages.MOST_ROWS
    stream.add(5, ASKED, "b")
    stream.add(6, range(3), "a")
    stream.process_files()
    expected = {(5, key): pytest.approx(0.25) for key in ASKED}
    assert stream.answers() == expected
    # As if the machine had stopped before Spark's commit of the last batch, which makes cold keys hot.
    commits = tmp_path / "checkpoint" / "spark" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    restarted = Pages(spark, tmp_path)
    restarted.add(7, ASKED, "b")
    restarted.add(8, range(3), "a")
    restarted.process_files()
    # b is the next one after a if it did not happen at 5.
    again = {(7, key): pytest.approx(0.125) for key in ASKED}
    assert restarted.answers() == expected | again
