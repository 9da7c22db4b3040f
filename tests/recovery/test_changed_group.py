"""Queries are added and removed while the stream is down after a kill: the others give every answer exactly once."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.oracles.events import frozen
from tests.recovery.killing import kill_after, micro_batches, started

from anabranch import Session

STREAM = "CREATE STREAM seen KEY (car STRING) VALUE (x DOUBLE) TIME t INTEGER WATERMARK 3 FROM 'cars/*.parquet';\n"
QUERIES = {
    "passing": "u, v FROM seen AS u, seen AS v WHERE v.t - u.t IN [0, 1] AND v.x - u.x IN [0, 4] AND u.car <> v.car",
    "close": "u, v FROM seen AS u, seen AS v WHERE v.t - u.t IN [0, 3] AND u.car < v.car AND v.x - u.x IN [-1, 1]",
    "lonely": "u, NOT v FROM seen AS u, seen AS v WHERE SPAN(u, v) <= 1 AND u.car <> v.car AND v.x - u.x IN [-1, 1]",
}
FILES = 16


def workbook(names: Sequence[str]) -> str:
    return STREAM + "".join(f"CREATE QUERY {name} AS CONSTRAIN {QUERIES[name]};\n" for name in names)


class Cars:
    """Adds files of positions, in order of their times; file n is micro-batch n."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder = folder / "cars"
        self.folder.mkdir()
        self.files: list[list[dict]] = [[] for _ in range(FILES)]
        for t in range(2 * FILES):
            for car in (f"car {number}" for number in range(6)):
                late = t // 2 + (rng.random() < 0.3)
                self.files[min(late, FILES - 1)].append({"car": car, "t": t, "x": rng.uniform(0, 20)})
        self._added = 0

    def add_up_to(self, count: int) -> None:
        while self._added < min(count, FILES):
            draft = self.folder / f".{self._added:03d}.parquet"
            pq.write_table(pa.Table.from_pylist(self.files[self._added]), draft)
            # Spark reads files in the order of their times.
            os.utime(draft, (1_800_000_000 + self._added, 1_800_000_000 + self._added))
            draft.rename(self.folder / f"{self._added:03d}.parquet")
            self._added += 1


def test_queries_change_after_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20261117)
    cars = Cars(tmp_path, rng)
    cars.add_up_to(2)
    checkpoint = tmp_path / "checkpoint" / "passing+close"
    (tmp_path / "workbook.abq").write_text(workbook(["passing", "close"]))
    kill_after(tmp_path, checkpoint, cars, 5, delay=rng.uniform(0, 0.8))
    n_read = micro_batches(checkpoint)
    (tmp_path / "workbook.abq").write_text(workbook(["lonely", "close"]))
    log = kill_after(tmp_path, checkpoint, cars, n_read + 3, delay=rng.uniform(0, 0.8))
    assert "added lonely: it sees the events that are newer than all rows read before\n" in log
    assert "removed passing: its answers so far stay in its folder\n" in log
    cars.add_up_to(FILES)
    with started(tmp_path, "--once") as running:
        running.finish()
        assert "added" not in running.log

    newest = max(row["t"] for rows in cars.files[:n_read] for row in rows)
    everything = [row for rows in cars.files for row in rows]
    assert answers(tmp_path, "close") == batch(spark, "close", everything)
    after = [row for row in everything if row["t"] > newest]
    assert answers(tmp_path, "lonely") == batch(spark, "lonely", after)
    assert answers(tmp_path, "lonely").total() > 10
    passing, complete = answers(tmp_path, "passing"), batch(spark, "passing", everything)
    assert passing <= complete
    decided = Counter({answer: count for answer, count in complete.items() if dict(answer)["t"] < newest - 3})
    assert decided <= passing
    assert decided.total() > 10


def answers(folder: Path, name: str) -> Counter:
    files = sorted((folder / "out" / name).glob("*.parquet"))
    return Counter(frozen(row) for path in files for row in pq.read_table(path).to_pylist())


def batch(spark: SparkSession, name: str, rows: Sequence[dict]) -> Counter:
    session = Session(spark)
    session.execute(workbook([name]))
    session.bind("seen", spark.createDataFrame(pa.Table.from_pylist(list(rows))))
    return Counter(map(frozen, session.run(name).toArrow().to_pylist()))
