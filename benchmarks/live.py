"""Streams at full speed and at a fixed rate: rows per second, and the time from arrival to answer.

`streaming.batches` reads files that are there already, one per micro-batch: how long a micro-batch of a size takes, and
how many rows per second a stream of such micro-batches sustains. `streaming.operators` measures
the same without Spark: a micro-batch is packed, and the operators of all buckets are opened, stepped and saved.
`streaming.rates` moves prepared files into the input folder at fixed intervals. The latency of a row is the time from
the move of its file until the answers of its micro-batch are on disk, by the log of the stream. A rate is sustained if
the last micro-batches wait no longer than the first ones.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.stream_log import Entry, entries
from benchmarks.buckets import Buckets
from benchmarks.engines import SPARK, make_job, open_session, spark_session
from benchmarks.harness import Options, Record, load_records, recorder
from benchmarks.workloads import write_parquet, write_part, written_once

Columns = dict[str, np.ndarray]

WARM_UP = 3
"""Micro-batches that are not timed: workers start and kernels load."""

WARM_UP_SMALL = 40
"""The same for small micro-batches: a stream runs for days, and the JVM compiles its code in the first minute."""

TIMED = 15
"""Micro-batches without Spark that are timed, after as many that are not."""

INTERVAL = 0.2
"""Seconds between two files of a stream with a fixed rate."""

SECONDS = 12.0
"""How long rows arrive at a fixed rate; the first quarter is not timed."""


# ------------------------------------------------------------ workloads


@dataclass(frozen=True, slots=True)
class Live:
    """A query, and the rows of some keys at an instant.

    Attributes
    ----------
    rows_per_key : the rows of a key at an instant
    most_rows : the largest micro-batch; a micro-batch of MONITOR and CONSTRAIN has more answers than rows
    """

    kind: str
    stream: str
    query: str
    rows: Callable[[np.random.Generator, np.ndarray, int], Columns]
    rows_per_key: int = 1
    most_rows: int = 1_000_000

    def workbook(self, folder: Path) -> str:
        """Return the workbook that reads a folder."""
        return f"CREATE STREAM r {self.stream} FROM '{folder}/*.parquet';\nCREATE QUERY q AS {self.query};\n"

    def tables(self, n_rows: int, n_keys: int, files: int, seed: int) -> Iterator[pa.Table]:
        """Yield the rows of each file: an instant of the next keys of a ring, so that all keys have equally many."""
        rng = np.random.default_rng(seed)
        per_file = max(1, min(n_keys, n_rows // self.rows_per_key))
        instants = -(-n_rows // (per_file * self.rows_per_key))
        t = 0
        for _ in range(files):
            parts = []
            for _ in range(instants):
                keys = (t * per_file + np.arange(per_file)) % n_keys
                parts.append(pa.table(self.rows(rng, keys, t)))
                t += 1
            yield pa.concat_tables(parts)

    def files(self, n_rows: int, n_keys: int, files: int, seed: int) -> Path:
        """Return a folder with the files of a stream."""

        def write(folder: Path) -> None:
            for number, table in enumerate(self.tables(n_rows, n_keys, files, seed)):
                write_part(table, folder, number)

        name = self.kind.lower().replace(", ", "-").replace(" ", "-")
        return written_once(f"live-{name}-{n_rows}-{n_keys}-{files}-seed{seed}", write)


def _rooms(rng: np.random.Generator, keys: np.ndarray, t: int) -> Columns:
    """Two rooms of each key, which goes around a ring of 20 rooms."""
    here = (keys + t // 2) % 20
    p = rng.uniform(0.5, 0.9, len(keys))
    return {
        "k": np.repeat(keys, 2),
        "v": np.stack([here, (here + 1) % 20], axis=1).reshape(-1),
        "t": np.full(2 * len(keys), t),
        "p": np.stack([p, 0.95 - p], axis=1).reshape(-1),
    }


def _readings(rng: np.random.Generator, keys: np.ndarray, t: int) -> Columns:
    """A reading of each key at one of 20 readers."""
    return {"k": keys, "v": rng.integers(0, 20, len(keys)), "t": np.full(len(keys), t)}


def _intervals(rng: np.random.Generator, keys: np.ndarray, t: int) -> Columns:
    """One segment of each key with lost ends, over before the next instant; a key comes again as another entity."""
    names, start = np.repeat(keys + t * 10_000_000, 2), 20 * t
    return {
        "k": names,
        "n": np.tile([1, 2], len(keys)),
        "t": np.stack([np.full(len(keys), start), start + rng.integers(2, 8, len(keys))], axis=1).reshape(-1),
        "l": np.full(2 * len(keys), 2),
        "g": names // 2,
    }


def _intervals_apart(rng: np.random.Generator, keys: np.ndarray, t: int) -> Columns:
    """The same, one entity after the other, so that each has a few others near it in time."""
    intervals = _intervals(rng, keys, 0)
    first = 3 * (t * len(keys) + np.arange(len(keys)))
    return intervals | {"k": np.repeat(keys + t * 10_000_000, 2), "t": intervals["t"] + np.repeat(first, 2)}


def _reports(rng: np.random.Generator, keys: np.ndarray, t: int) -> Columns:
    """A report of each key, ten metres from its neighbours on average."""
    return {
        "k": keys,
        "x": keys * 10.0 + rng.uniform(-5, 5, len(keys)),
        "x_rate": rng.uniform(-1, 1, len(keys)),
        "t": np.full(len(keys), float(t)),
    }


def _located(rng: np.random.Generator, keys: np.ndarray, t: int) -> Columns:
    """A reading of each key at its place in a grid of 100 metres, of which a tenth are high."""
    return {
        "k": keys,
        "v": rng.uniform(0, 1, len(keys)),
        "x": keys % 1000 * 100.0,
        "y": keys // 1000 * 100.0,
        "t": np.full(len(keys), t),
    }


WORKLOADS = (
    Live(
        "PATTERN",
        "KEY (k INTEGER) VALUE (v INTEGER) TIME t INTEGER MODEL INDEPENDENT",
        "PATTERN r(k, 3) THEN r(k, 4) THEN r(k, 5) GROUP BY k THRESHOLD 0.1",
        _rooms,
        rows_per_key=2,
    ),
    Live(
        "SEQUENCE",
        "KEY (k INTEGER) VALUE (v INTEGER) TIME t INTEGER",
        "SEQUENCE (x, y, z) FROM r WHERE x.v = 1 AND y.v = 2 AND z.v = 3 AND x.k = y.k AND y.k = z.k WITHIN 1000",
        _readings,
    ),
    Live(
        "RELATE",
        "KEY (k INTEGER, g INTEGER) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS",
        "RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.g = b.g AND a.k < b.k",
        _intervals,
        rows_per_key=2,
        most_rows=100_000,
    ),
    Live(
        "RELATE, without an equality",
        "KEY (k INTEGER, g INTEGER) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS",
        "RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.k < b.k",
        _intervals_apart,
        rows_per_key=2,
        most_rows=100_000,
    ),
    Live(
        "MONITOR",
        "KEY (k INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 1 PERIOD 2",
        "MONITOR a, b FROM r AS a, r AS b WHERE ABS(a.x - b.x) <= 2 AND a.k < b.k",
        _reports,
        most_rows=100_000,
    ),
    Live(
        "CONSTRAIN",
        "KEY (k INTEGER) VALUE (v DOUBLE) TIME t INTEGER SPACE (x, y)",
        "CONSTRAIN a, b FROM r WHERE a.v > 0.9 AND b.v > 0.9 AND a.k < b.k "
        "AND DISTANCE(a, b) <= 150 AND SPAN(a, b) <= 1",
        _located,
        most_rows=100_000,
    ),
)


# ------------------------------------------------------------ at full speed


def batches(options: Options) -> Iterator[Record]:
    """Yield the time of micro-batches of several sizes, and the rows per second that they sustain, for each kind."""
    sizes = [(1_000, 1_000)] if options.quick else [(1_000, 1_000), (1_000, 1_000_000), (100_000, 100_000)]
    with spark_session() as spark:
        for workload in WORKLOADS:
            grid = [*sizes, (1_000_000, 1_000_000)] if not options.quick and workload.most_rows == 1_000_000 else sizes
            for n_rows, n_keys in grid:
                description = f"{workload.kind}: micro-batches of {n_rows:,} rows, {n_keys:,} keys"
                record = recorder("streaming.batches", description, options)
                is_small = n_rows <= 1_000 and not options.quick
                warm_up, count = (WARM_UP_SMALL, 20) if is_small else (WARM_UP, 5)
                folder = workload.files(n_rows, n_keys, warm_up + count, options.seed)
                timed = _run_all(spark, workload, folder)[warm_up:]
                if n_rows == n_keys and not any(entry.rows.answers for entry in timed):
                    raise AssertionError(f"{description}: no answers")
                seconds = median(entry.seconds for entry in timed)
                yield record(f"{SPARK}, one micro-batch", seconds, "s")
                yield record(f"{SPARK}, sustained", timed[0].rows.read / _period(timed), "rows/s")
                yield record("answers of a micro-batch", median(entry.rows.answers for entry in timed), "answers")
        yield from load_records(record)


def _run_all(spark: SparkSession, workload: Live, folder: Path) -> list[Entry]:
    """Return the entries of the micro-batches of a stream over all files of a folder, one file for each."""
    with _stream_folders() as (checkpoint, output):
        session = open_session(spark, workload.workbook(folder))
        running = session.start("q", str(checkpoint), str(output), trigger={"availableNow": True}, max_files=1)
        running.awaitTermination()
        return _batches(checkpoint)


def _period(timed: list[Entry]) -> float:
    """Return the median time from the end of a micro-batch to that of the next, which includes the commit."""
    ends = [entry.at.timestamp() for entry in timed]
    return median(np.diff(ends))


# ------------------------------------------------------------ the operators alone


def operators(options: Options) -> Iterator[Record]:
    """Yield the processor time that a micro-batch of 1,000 rows takes without Spark, by the number of buckets."""
    for workload in WORKLOADS:
        record = recorder("streaming.operators", f"{workload.kind}: micro-batches of 1,000 rows, 1,000 keys", options)
        folder = workload.files(1_000, 1_000, 2 * TIMED, options.seed)
        job = make_job(workload.workbook(folder), "q", live=True)
        tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
        for n_buckets in (16, 4):
            seconds = _operator_seconds(Buckets(job, n_buckets), tables)
            yield record(f"{n_buckets} buckets", 1000 * median(seconds[TIMED:]), "ms")


def _operator_seconds(buckets: Buckets, tables: list[pa.Table]) -> list[float]:
    """Return the processor time of each micro-batch of one table."""
    seconds = []
    for rows in tables:
        start = time.process_time()
        buckets.step(rows)
        seconds.append(time.process_time() - start)
    if not buckets.answers:
        raise AssertionError("no answers")
    return seconds


# ------------------------------------------------------------ at a fixed rate


def rates(options: Options) -> Iterator[Record]:
    """Yield the latency of each kind at several rates of arrival, with 10,000 keys."""
    with spark_session() as spark:
        for workload in WORKLOADS:
            for rate in (1_000,) if options.quick else (1_000, 10_000, 100_000):
                record = recorder("streaming.rates", f"{workload.kind}: {rate:,} rows/s, 10,000 keys", options)
                latencies = _latencies(spark, workload, rate, 4.0 if options.quick else SECONDS, options.seed)
                timed = latencies[len(latencies) // 4 :]
                yield record("median latency", float(np.median(timed)), "s")
                yield record("99% of rows", float(np.quantile(timed, 0.99)), "s")
                # Half of the timed files each: a backlog shows as a later half that waits longer.
                early, late = np.median(timed[: len(timed) // 2]), np.median(timed[len(timed) // 2 :])
                yield record("later half to earlier half", late / early, "times")
        yield from load_records(record)


def _latencies(spark: SparkSession, workload: Live, rate: int, seconds: float, seed: int) -> np.ndarray:
    """Return the seconds from the arrival of each file to the answers of its micro-batch on disk."""
    n_files = int(seconds / INTERVAL)
    source = workload.files(int(rate * INTERVAL), 10_000, WARM_UP + n_files, seed)
    with _stream_folders() as (checkpoint, output), tempfile.TemporaryDirectory(prefix="anabranch-input-") as arriving:
        files = sorted(source.glob("*.parquet"))
        rows = _copied_in(files[:1], Path(arriving))
        session = open_session(spark, workload.workbook(Path(arriving)))
        running = session.start("q", str(checkpoint), str(output))
        for path in files[1:WARM_UP]:
            running.processAllAvailable()
            rows += _copied_in([path], Path(arriving))
        running.processAllAvailable()
        arrivals: list[float] = []
        feeder = Thread(target=_feed, args=(files[WARM_UP:], Path(arriving), arrivals))
        feeder.start()
        feeder.join()
        running.processAllAvailable()
        running.stop()
        per_file = (sum(entry.rows.read for entry in _batches(checkpoint)) - rows) // n_files
        ends = [(entry.total.read, entry.at.timestamp()) for entry in _batches(checkpoint)]
    totals, times = np.array(ends).T
    needed = rows + per_file * np.arange(1, n_files + 1)
    return times[np.searchsorted(totals, needed)] - np.array(arrivals)


def _batches(checkpoint: Path) -> list[Entry]:
    """Return the entries of the micro-batches that read rows."""
    return [entry for entry in entries(LocalFolder(checkpoint)) if entry.batch is not None and entry.rows.read]


def _copied_in(files: list[Path], folder: Path) -> int:
    """Copy files into the input folder, each visible at once; return their rows."""
    rows = 0
    for path in files:
        table = pq.read_table(path)
        rows += table.num_rows
        write_parquet(table, folder / f".{path.name}")
        os.replace(folder / f".{path.name}", folder / path.name)
    return rows


def _feed(files: list[Path], folder: Path, arrivals: list[float]) -> None:
    """Let a file arrive every INTERVAL seconds, and append when it did."""
    for path in files:
        shutil.copyfile(path, folder / f".{path.name}")
    start = time.time()
    for number, path in enumerate(files):
        time.sleep(max(0.0, start + number * INTERVAL - time.time()))
        os.utime(folder / f".{path.name}")
        arrivals.append(time.time())
        os.replace(folder / f".{path.name}", folder / path.name)


@contextmanager
def _stream_folders() -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="anabranch-live-") as folder:
        yield Path(folder) / "checkpoint", Path(folder) / "answers"


PARTS = {"batches": batches, "operators": operators, "rates": rates}
