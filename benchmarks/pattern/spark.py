"""PATTERN over files: an archive and a stream, by Spark on two cores and by one process on one thread."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.session import Session
from anabranch.transport.job import Job
from benchmarks.engines import (
    IN_PROCESS,
    SPARK,
    TOLERANCE,
    LocalStream,
    Streamed,
    largest_difference,
    make_job,
    one_thread,
    open_session,
    rows_read,
    run_in_process,
    run_stream,
    seconds_beside_spark,
    spark_session,
)
from benchmarks.harness import Options, Record, interleaved, recorder
from benchmarks.pattern.queries import QUERIES, archive_specs, workbook
from benchmarks.profile import print_profile
from benchmarks.workloads import Spec, archive, make_relations, micro_batches

#: Files of a stream that are not timed: workers start, kernels load, the JVM warms up.
WARM_UP_FILES = 2
TIMED_FILES = 5


# ------------------------------------------------------------ an archive


def batch(options: Options) -> Iterator[Record]:
    """An archive in one process, and by Spark on two cores from the same file."""
    with spark_session() as spark:
        # 20 million rows, so that the fixed cost of a Spark job (half a second) does not dominate.
        for spec in archive_specs(options, instants=204):
            folder = archive(spec)
            text = workbook(folder, spec)
            session = open_session(spark, text)
            for query, title in QUERIES.items():
                job = make_job(text, query, make_relations(spec))
                in_process = partial(_on_one_thread, job, folder / "stream.parquet")
                difference = largest_difference(session.run(query).toArrow(), in_process())
                seconds = seconds_beside_spark(in_process, session, query, options.rounds)
                rows = rows_read(session, query)
                record = recorder("pattern.batch", f"{title}: {spec}, {rows:,} rows", options)
                ratio = seconds[IN_PROCESS] / seconds[SPARK]
                yield record(IN_PROCESS, rows / seconds[IN_PROCESS], "rows/s")
                yield record(SPARK, rows / seconds[SPARK], "rows/s", IN_PROCESS, ratio)
                yield record("largest difference of the answers", difference, "probability")
                if options.profile:
                    print_profile(f"{title}: {spec}", in_process)


def _on_one_thread(job: Job, path: Path) -> pa.Table:
    with one_thread():
        return run_in_process(job, path)


# ------------------------------------------------------------ a stream


def streaming(options: Options) -> Iterator[Record]:
    """Micro-batches of one file with a million rows: rows per second by Spark's own metric, and in one process."""
    files = WARM_UP_FILES + TIMED_FILES
    rows_per_file = 20_000 if options.quick else 1_000_000
    with spark_session() as spark:
        for model in ("INDEPENDENT", "MARKOV"):
            for keys in (100, 1_000) if options.quick else (100, 10_000, 100_000):
                spec = Spec(model, keys, 1, seed=options.seed)
                spec = replace(spec, instants=files * max(1, rows_per_file // spec.rows_per_instant))
                yield from _stream(spark, spec, files, options)


def _stream(spark: SparkSession, spec: Spec, files: int, options: Options) -> Iterator[Record]:
    folder = micro_batches(spec, files)
    text = workbook(folder, spec, source="stream")
    paths = sorted((folder / "stream").iterdir())
    rows = spec.rows_per_instant * (spec.instants // files)
    local = LocalStream(make_job(text, "three", make_relations(spec)))
    local_seconds = _timed_steps(local, paths)
    expected = pa.concat_tables(local.answers)
    session = open_session(spark, text)
    record = recorder("pattern.streaming", f"three goals: {spec}, {rows:,} rows per micro-batch", options)
    yield record(IN_PROCESS, rows / local_seconds, "rows/s")
    yield record("state, all buckets", len(local.state) / 1e6, "MB")
    for sink, run in (("counted", _stream_counted), ("to files", _stream_to_files)):
        streamed, difference = run(session, expected)
        timed = streamed.seconds[WARM_UP_FILES:]
        seconds = median(timed)
        yield record(f"{SPARK}, answers {sink}", rows / seconds, "rows/s", IN_PROCESS, local_seconds / seconds)
        yield record(f"longest micro-batch, answers {sink}", max(timed), "s")
        yield record(f"difference of the answers, {sink}", difference, "probability")


def _timed_steps(local: LocalStream, paths: list[Path]) -> float:
    """Return the median seconds of a micro-batch in this process, without the warm-up files."""
    with one_thread():
        for path in paths[:WARM_UP_FILES]:
            local.step(path)
        seconds = [interleaved({"": partial(local.step, path)}, 1)[""] for path in paths[WARM_UP_FILES:]]
    return median(seconds)


def _stream_counted(session: Session, expected: pa.Table) -> tuple[Streamed, float]:
    """Stream to a sink that counts the answers and sums their probabilities; the difference of the sums is relative."""
    batches: list[tuple[int, float]] = []

    def count(answers: DataFrame, number: int) -> None:
        row = answers.agg(F.count("*"), F.sum("probability")).first()
        batches.append((row[0], row[1] or 0.0))

    streamed = run_stream(session, "three", foreach_batch=count)
    answers, total = (sum(column) for column in zip(*batches, strict=True))
    expected_total = float(expected["probability"].to_numpy().sum())
    difference = abs(total - expected_total) / expected_total
    if answers != expected.num_rows or difference > TOLERANCE:
        message = f"{answers} answers sum to {total}; expected {expected.num_rows} that sum to {expected_total}"
        raise AssertionError(message)
    return streamed, difference


def _stream_to_files(session: Session, expected: pa.Table) -> tuple[Streamed, float]:
    """Stream to files, read them back and compare each answer."""
    output = tempfile.mkdtemp(prefix="anabranch-answers-")
    try:
        streamed = run_stream(session, "three", output=output)
        return streamed, largest_difference(ds.dataset(output, format="parquet").to_table(), expected)
    finally:
        shutil.rmtree(output, ignore_errors=True)
