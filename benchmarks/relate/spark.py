"""RELATE from files to counted answers: by Spark on two cores, and by one process with the same stages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.arrays import END
from anabranch.relate.deciding import decide
from anabranch.relate.job import RelateJob
from anabranch.relate.operator import RelateOperator
from anabranch.simulate import traffic
from anabranch.transport.watermark import Progress
from benchmarks.engines import (
    IN_PROCESS,
    SPARK,
    largest_difference,
    make_job,
    one_thread,
    open_session,
    read_packets,
    run_in_process,
    seconds_beside_spark,
    spark_session,
)
from benchmarks.harness import Options, Record, recorder
from benchmarks.relate.speed import SAME_NOISE


def spark_archive(options: Options) -> Iterator[Record]:
    """Roads of different lengths and losses: all pairs of their sectors."""
    short, long = (40, 160) if options.quick else (200, 2_000)
    losses = (0.0, SAME_NOISE) if options.quick else (0.0, SAME_NOISE, 0.4)
    roads = [traffic.Options(loss=loss, sectors=short) for loss in losses]
    with spark_session() as session, tempfile.TemporaryDirectory(prefix="anabranch-relate-") as folder:
        for road in (*roads, traffic.Options(loss=SAME_NOISE, sectors=long)):
            yield from _measure(
                "relate.spark", session, Path(folder), f"road of {road.sectors:,} sectors", road, options
            )


def numbered_pairs(options: Options) -> Iterator[Record]:
    """Poisson pairs, whose numbers WHERE equates."""
    size = traffic.Options(data="poisson", loss=SAME_NOISE, pairs=1_600 if options.quick else 20_000)
    with spark_session() as session, tempfile.TemporaryDirectory(prefix="anabranch-relate-") as folder:
        yield from _measure("relate.pairs", session, Path(folder), "Poisson pairs", size, options)


def _measure(
    part: str, spark: SparkSession, folder: Path, name: str, traffic_options: traffic.Options, options: Options
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
    record = recorder(part, f"{name}, {traffic_options.loss:.0%} lost: {size}", options)
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
    """Run the stages of Spark's workers on one thread: all entities are in one bucket, or in one block."""
    with one_thread():
        answers = run_in_process(job, path)
        return answers if job.finishing().pairing is None else decide(job.spec, _operands(answers))


def sizes(job: RelateJob, path: Path) -> tuple[int, int]:
    """Return how many pairs WHERE selects, and their point events; pairs that are apart in time are not compared."""
    at_end = Progress.of_all(END - 1, len(job.layouts))
    entities = RelateOperator(job.spec).step(read_packets(job, path).packets, at_end, ended=True).answers
    lengths = np.array([len(entity) // 16 for entity in entities["entity"].to_pylist()])
    if job.spec.analysis.equalities:
        return len(lengths) // 2, int(lengths.sum())
    return len(lengths) * (len(lengths) - 1) // 2, int(lengths.sum()) * (len(lengths) - 1)


def _operands(entities: pa.Table) -> pa.Table:
    """Return every entity as the first operand, and as the second."""
    sides = [pa.repeat(pa.scalar(side, pa.int32()), entities.num_rows) for side in (0, 1)]
    return pa.concat_tables([entities.append_column("side", side) for side in sides])
