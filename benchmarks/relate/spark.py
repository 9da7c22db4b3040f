"""RELATE from files to counted answers: by Spark on two cores, and by one process with the same stages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.relate.deciding import decide
from anabranch.relate.job import RelateJob
from anabranch.simulate import traffic
from benchmarks.engines import (
    IN_PROCESS,
    SPARK,
    largest_difference,
    make_job,
    one_thread,
    open_session,
    run_in_process,
    seconds_beside_spark,
    spark_session,
)
from benchmarks.harness import Options, Record, recorder
from benchmarks.relate.speed import SAME_NOISE


def spark_archive(options: Options) -> Iterator[Record]:
    """Roads of different lengths and losses, and Poisson pairs."""
    sectors, pairs = (40, 100) if options.quick else (200, 500)
    factor = 4 if options.quick else 10
    with spark_session() as session, tempfile.TemporaryDirectory(prefix="anabranch-relate-") as folder:
        for loss in (0.0, 0.2) if options.quick else (0.0, 0.2, 0.4):
            traffic_options = traffic.Options(loss=loss, sectors=sectors)
            yield from _measure(session, Path(folder), f"road of {sectors:,} sectors", traffic_options, options)
        for name, traffic_options in {
            f"road of {factor * sectors:,} sectors": traffic.Options(loss=SAME_NOISE, sectors=factor * sectors),
            "Poisson pairs": traffic.Options(data="poisson", loss=SAME_NOISE, pairs=4 * factor * pairs),
        }.items():
            yield from _measure(session, Path(folder), name, traffic_options, options)


def _measure(
    spark: SparkSession, folder: Path, name: str, traffic_options: traffic.Options, options: Options
) -> Iterator[Record]:
    """Simulate, and run the query of the simulator both ways."""
    simulated = traffic.simulate(traffic_options, options.seed)
    traffic.write(simulated, folder)
    path = folder / "congestion.parquet"
    query = "shared" if traffic_options.data == "poisson" else "jam"
    workbook = with_types(simulated.workbook).replace("FROM '", f"FROM '{folder}/")
    session = open_session(spark, workbook)
    job = make_job(workbook, query)
    in_process = partial(answers_in_process, job, path)
    expected = in_process()
    difference = largest_difference(session.run(query).toArrow().flatten(), expected.flatten())
    seconds = seconds_beside_spark(in_process, session, query, options.rounds)
    pairs, events = sizes(job, path)
    size = f"{pairs:,} pairs, {events:,} events, {expected.num_rows:,} answers"
    record = recorder("relate.spark", f"{name}, {traffic_options.loss:.0%} lost: {size}", options)
    for count, unit in ((pairs, "pairs/s"), (events, "events/s")):
        local, by_spark = count / seconds[IN_PROCESS], count / seconds[SPARK]
        yield record(IN_PROCESS, local, unit)
        yield record(SPARK, by_spark, unit, IN_PROCESS, by_spark / local)
    yield record(SPARK, seconds[SPARK], "s")
    yield record("largest difference of the answers", difference, "probability")


def with_types(workbook: str) -> str:
    """Return the workbook of `anabranch simulate traffic` with the types that Spark would infer from its files."""
    for old, new in (
        ("KEY (sector) TIME t", "KEY (sector INTEGER) TIME t TIMESTAMP"),
        ("KEY (pair, side) TIME t", "KEY (pair INTEGER, side STRING) TIME t DOUBLE"),
    ):
        workbook = workbook.replace(old, new)
    return workbook


def answers_in_process(job: RelateJob, path: Path) -> pa.Table:
    """Run the stages of Spark's workers on one thread: entities are assembled, and all of them are one block."""
    with one_thread():
        return decide(job.spec, _operands(job, path))


def sizes(job: RelateJob, path: Path) -> tuple[int, int]:
    """Return how many pairs WHERE selects, and their point events; pairs that are apart in time are not compared."""
    lengths = np.array([len(entity) // 16 for entity in run_in_process(job, path)["entity"].to_pylist()])
    if job.spec.analysis.equalities:
        return len(lengths) // 2, int(lengths.sum())
    return len(lengths) * (len(lengths) - 1) // 2, int(lengths.sum()) * (len(lengths) - 1)


def _operands(job: RelateJob, path: Path) -> pa.Table:
    """Return every entity as the first operand, and as the second."""
    entities = run_in_process(job, path)
    sides = [pa.repeat(pa.scalar(side, pa.int32()), entities.num_rows) for side in (0, 1)]
    return pa.concat_tables([entities.append_column("side", side) for side in sides])
