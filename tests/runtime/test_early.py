"""EMIT EARLY of SEQUENCE and PATTERN on Spark: provisional answers in their own folder, final ones as without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anabranch import Session

STREAM = "CREATE STREAM {name} KEY (k STRING) VALUE (v STRING) TIME t INTEGER{more} WATERMARK 5 FROM '{folder}/*.csv';"
SEQUENCE = """
CREATE QUERY early AS SEQUENCE (x, !y, z) FROM e
  WHERE x.v = 'a' AND y.v = 'b' AND z.v = 'c' AND x.k = y.k AND y.k = z.k WITHIN 20 {emit};
"""
GROUPED = "CREATE QUERY early AS PATTERN e(x, 'a') THEN e(x, 'c') GROUP BY x {emit};"
#: The chains of different buckets are combined.
COMBINED = "CREATE QUERY early AS PATTERN e(x, 'a') THEN e(x, 'c') {emit};"
CERTAIN, LIKELY = "", " MODEL INDEPENDENT"

#: Files in the order of their arrival: (key, value, time, probability). The row at 3 excludes a match of a SEQUENCE.
FILES = [
    [("pen", "a", 1, 0.5), ("ink", "a", 2, 0.8)],
    [("pen", "c", 4, 0.5), ("ink", "c", 4, 0.5)],
    [("ink", "b", 3, 0.5)],
    [("pen", "c", 12, 1.0)],
]


class Early:
    """A query on a stream of files, and what it has written after each of them."""

    def __init__(self, spark: SparkSession, folder: Path, query: str, model: str) -> None:
        self._folder, self._model = folder, model
        (folder / "in").mkdir()
        self.session = Session(spark)
        stream = STREAM.format(name="e", more=model, folder=folder / "in")
        self.session.execute(stream + query.format(emit="EMIT EARLY"))
        plain = query.replace("QUERY early", "QUERY plain").format(emit="")
        self.session.execute(plain)

    def arrive(self, number: int) -> None:
        names = ["k", "v", "t", *(["p"] if self._model else [])]
        lines = [",".join(map(str, row[: len(names)])) for row in FILES[number]]
        draft = self._folder / f"{number}.csv"
        draft.write_text("\n".join([",".join(names), *lines]))
        draft.rename(self._folder / "in" / draft.name)

    def run(self) -> list[list[Any]]:
        """The time and the probability of the provisional answers of each micro-batch."""
        checkpoint, output = str(self._folder / "checkpoint"), self._folder / "early"
        self.arrive(0)  # a stream needs a file to know its columns
        query = self.session.start("early", checkpoint, str(output))
        steps, known = [], set()
        for number in range(len(FILES) + 1):
            if number == 2:  # it resumes from the checkpoint
                query.stop()
                query = self.session.start("early", checkpoint, str(output))
            if 0 < number < len(FILES):
                self.arrive(number)
            elif number:
                self.session.end_input(checkpoint)
            query.processAllAvailable()
            files = set((output / "_provisional").glob("*.parquet")) - known
            known |= files
            rows = [row for file in files for row in pq.read_table(file).to_pylist()]
            assert all(row["status"] == "provisional" for row in rows)
            steps.append(numbers(rows))
        query.stop()
        return steps

    def final(self) -> list[Any]:
        """The final answers that were written."""
        files = (self._folder / "early").glob("*.parquet")
        return numbers([row for file in files for row in pq.read_table(file).to_pylist()])


def numbers(rows: Any) -> list[Any]:
    return sorted((row["t"], round(row["probability"], 9)) for row in rows)


@pytest.mark.parametrize(
    ("query", "model", "provisional", "final"),
    [
        (SEQUENCE, CERTAIN, [[], [(4, 1.0), (4, 1.0)], [], [(12, 1.0)], []], "matched"),
        (GROUPED, LIKELY, [[], [(4, 0.25), (4, 0.4)], [(4, 0.25), (4, 0.4)], [(12, 0.25)], []], "final"),
        (COMBINED, LIKELY, [[], [(4, 0.55)], [(4, 0.55)], [(12, 0.25)], []], "final"),
    ],
    ids=["SEQUENCE", "PATTERN GROUP BY", "PATTERN"],
)
def test_provisional_answers_on_a_stream(
    spark: SparkSession, tmp_path: Path, query: str, model: str, provisional: list[Any], final: str
) -> None:
    early = Early(spark, tmp_path, query, model)
    assert early.run() == provisional
    batch, plain = (early.session.run(name).collect() for name in ("early", "plain"))
    assert {row["status"] for row in batch} == {final}
    assert early.final() == numbers(batch) == numbers(plain)
