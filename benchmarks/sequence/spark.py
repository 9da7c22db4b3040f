"""SEQUENCE through Spark, from one CSV file to discarded answers, and the same file through Flink SQL."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.session import Session
from benchmarks.engines import consume, open_session, spark_session
from benchmarks.harness import Options, Record, Recorder, load_records, recorder
from benchmarks.sequence import flink
from benchmarks.sequence.speed import PER_KEY
from benchmarks.sequence.workloads import QUERY, Load, QueryShape, count_matches, count_next, write_csv

FLINK = {"(A, B, C)": ("strict", "skip"), "(A, !B, C)": ("negated",)}
"""The patterns of MATCH_RECOGNIZE that are closest to each query."""

FlinkRun = Callable[[str, int], tuple[Sequence[float], int]]
"""Runs a pattern within a window; returns the seconds of each round, and the number of matches."""


def spark_million(options: Options) -> Iterator[Record]:
    """From one CSV file with a million events to discarded answers, by Spark and by Flink SQL."""
    yield from _measure(Load(events=20_000) if options.quick else Load(), options)


def spark_large(options: Options) -> Iterator[Record]:
    """The same for three million events."""
    yield from _measure(Load(events=20_000 if options.quick else 3_000_000), options)


def _measure(size: Load, options: Options) -> Iterator[Record]:
    """Measure both queries on one core and on two."""
    rounds = 1 if options.quick else min(options.rounds, 3)
    python = None if options.quick else flink.interpreter()
    if python is None:
        print(f"Flink is skipped: {flink.INTERPRETER} does not name a Python that has it")
    table = size.table(options.seed)
    with tempfile.TemporaryDirectory(prefix="anabranch-sequence-") as folder:
        with_header, without_header = Path(folder) / "events.csv", Path(folder) / "rows.csv"
        write_csv(table, with_header)
        write_csv(table, without_header, header=False)
        for cores in (1, 2):
            record = recorder("sequence.spark", f"{size}, {PER_KEY} per key in a window, {cores} cores", options)
            run_flink = partial(_run_flink, python, without_header, table, cores, rounds) if python else None
            with spark_session(cores) as session:
                for negative in (False, True):
                    query = QueryShape(3, size.window(PER_KEY), negative=negative)
                    yield from measure_query(session, query, with_header, table, run_flink, rounds, record)


def measure_query(
    spark: SparkSession,
    query: QueryShape,
    path: Path,
    table: pa.Table,
    run_flink: FlinkRun | None,
    rounds: int,
    record: Recorder,
) -> Iterator[Record]:
    """Yield the records of one query, of the first run and of warm runs."""
    session = open_session(spark, query.workbook(f" FROM '{path}'"))
    seconds = [_timed(session) for _ in range(1 + rounds)]
    matches, expected = session.run(QUERY).count(), count_matches(table, query)
    if matches != expected:
        raise AssertionError(f"Spark has {matches} matches of {query} instead of the expected {expected}")
    rates = {"first run": table.num_rows / seconds[0], "warm": table.num_rows / median(seconds[1:])}
    for when, rate in rates.items():
        yield record(f"{query}, {when}", rate, "events/s")
    yield record(f"{query}: matches", matches, "matches")
    for pattern in FLINK[str(query)] if run_flink else ():
        flink_seconds, count = run_flink(pattern, query.within)
        cold, warm = table.num_rows / flink_seconds[0], table.num_rows / median(flink_seconds[1:])
        yield record(f"Flink {pattern}, first run", cold, "events/s", str(query), cold / rates["first run"])
        yield record(f"Flink {pattern}, warm", warm, "events/s", str(query), warm / rates["warm"])
        yield record(f"Flink {pattern}: matches", count, "matches")
    yield from load_records(record)


def _timed(session: Session) -> float:
    start = time.perf_counter()
    consume(session.run(QUERY))
    return time.perf_counter() - start


def _run_flink(
    python: str, path: Path, table: pa.Table, cores: int, rounds: int, pattern: str, within: int
) -> tuple[Sequence[float], int]:
    """Return the seconds of Flink and its matches, after a comparison with the expected number."""
    seconds, matches = flink.measure(python, path, pattern, within, cores, 1 + rounds)
    expected = count_next(table, within)[pattern]
    if matches != expected:
        raise AssertionError(f"Flink has {matches} matches of {pattern} instead of the expected {expected}")
    return seconds, matches
