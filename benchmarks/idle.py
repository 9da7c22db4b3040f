"""What a micro-batch costs when a stream has many idle keys, and what RELATE writes for what arrives.

The first file has one row of each idle key. The others have 1,000 rows of 1,000 other keys, later than the window of
the query; one SEQUENCE has a longer window, in which the idle keys are, too. The figure is the time of such a
micro-batch with 1,000,000 idle keys, divided by that with 1,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.buckets import Buckets
from benchmarks.engines import SPARK, make_job, open_session, run_stream, spark_session
from benchmarks.harness import Options, Record, recorder
from benchmarks.workloads import write_part, written_once

FEW, MANY = 1_000, 1_000_000
ROWS = 1_000
"""Rows of a micro-batch, one for each active key."""

FILES = 9
"""Micro-batches; the first three are not timed. In the second one, the idle keys of PATTERN move to pages."""

GAP = 1_000
"""The time between the idle keys and the active ones; most windows are shorter."""

Columns = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Idle:
    """A query, and the rows of some keys at a time."""

    kind: str
    stream: str
    query: str
    rows: Callable[[np.ndarray, int], Columns]

    def workbook(self, folder: Path) -> str:
        """Return the workbook that reads a folder."""
        return f"CREATE STREAM r {self.stream} FROM '{folder}';\nCREATE QUERY q AS {self.query};\n"

    def folder(self, n_idle: int) -> Path:
        """Return a folder with the files of the stream."""
        name = self.kind.partition(",")[0].lower()
        return written_once(f"idle-{name}-{n_idle}", lambda folder: self._write(folder, n_idle))

    def _write(self, folder: Path, n_idle: int) -> None:
        write_part(pa.table(self.rows(np.arange(n_idle), 0)), folder, 0)
        for number in range(1, FILES):
            write_part(pa.table(self.rows(np.arange(MANY, MANY + ROWS), GAP + 10 * number)), folder, number)


def _values(keys: np.ndarray, t: int) -> Columns:
    return {"k": keys, "v": np.full(len(keys), "a"), "t": np.full(len(keys), t), "p": np.full(len(keys), 0.5)}


def _events(keys: np.ndarray, t: int) -> Columns:
    return {"k": keys, "v": np.full(len(keys), "a"), "t": np.full(len(keys), t)}


def _intervals(keys: np.ndarray, t: int) -> Columns:
    """One segment of each key; keys come again as other keys, because an entity ends with its segment."""
    names = np.repeat(keys + t * MANY, 2)
    return {
        "k": names,
        "n": np.tile([1, 2], len(keys)),
        "t": np.tile([t, t + 5], len(keys)),
        "l": np.full(2 * len(keys), 2),
        "g": names % 100_000,
    }


def _predictions(keys: np.ndarray, t: int) -> Columns:
    return {"k": keys, "x": keys * 10.0, "x_rate": np.zeros(len(keys)), "t": np.full(len(keys), float(t))}


WORKLOADS = (
    Idle(
        "PATTERN",
        "KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT",
        "PATTERN r(k, 'a') THEN r(k, 'b') GROUP BY k",
        _values,
    ),
    Idle(
        "SEQUENCE",
        "KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER",
        "SEQUENCE (x, y) FROM r WHERE x.v = 'a' AND y.v = 'b' AND x.k = y.k WITHIN 100",
        _events,
    ),
    Idle(
        "SEQUENCE, idle keys in the window",
        "KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER",
        "SEQUENCE (x, y) FROM r WHERE x.v = 'a' AND y.v = 'b' AND x.k = y.k WITHIN 100000",
        _events,
    ),
    Idle(
        "RELATE",
        "KEY (k INTEGER, g INTEGER) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS",
        "RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.g = b.g AND a.k < b.k",
        _intervals,
    ),
    Idle(
        "MONITOR",
        "KEY (k INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 100",
        "MONITOR a, b FROM r AS a, r AS b WHERE ABS(a.x - b.x) <= 1 AND a.k < b.k",
        _predictions,
    ),
)


def idle(options: Options) -> Iterator[Record]:
    """Yield the time of a micro-batch with few and with many idle keys, by Spark's own metric, for each kind."""
    many = 10_000 if options.quick else MANY
    with spark_session() as spark:
        for workload in WORKLOADS:
            description = f"{workload.kind}: micro-batches of {ROWS:,} rows"
            record = recorder("whole.idle", description, options)
            few_seconds = _seconds(spark, workload, FEW)
            name = f"{SPARK}, {FEW:,} idle keys"
            yield record(name, few_seconds, "s")
            many_seconds = _seconds(spark, workload, many)
            yield record(f"{SPARK}, {many:,} idle keys", many_seconds, "s", name, many_seconds / few_seconds)


def _seconds(spark: SparkSession, workload: Idle, n_idle: int) -> float:
    session = open_session(spark, workload.workbook(workload.folder(n_idle)))
    return median(run_stream(session, "q", foreach_batch=_count).seconds[3:])


def _count(answers: DataFrame, number: int) -> None:
    answers.count()


def written_bytes(workbook: str, query: str, folder: Path, n_buckets: int = 16) -> tuple[int, int]:
    """Return the bytes that arrive in buckets and those that are written to their state, over the files of a folder."""
    buckets = Buckets(make_job(workbook, query, live=True), n_buckets)
    for path in sorted(folder.glob("*.parquet")):
        buckets.step(pq.read_table(path))
    return buckets.arrived, buckets.written
