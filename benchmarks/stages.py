"""Where the time goes, for each kind: the stages of a run in one process, and what Spark adds to them.

In one process, the functions of each stage are timed by processor time. Answers are finished and written to a Parquet
file, as a sink does. RELATE decides pairs after its operators; that is part of its kernel here. For Spark, the
processor time of its processes is given, and what Spark's own task metrics say: the time of tasks that writes and reads
the shuffle, that loads tasks, and that collects garbage.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from anabranch.events.batch import Batch
from anabranch.files.parquet import ParquetReader
from anabranch.monitor.arrivals import Arrivals
from anabranch.relate import store
from anabranch.runtime import packets
from anabranch.transport import inbox, routing
from anabranch.transport.finishing import finish_table
from anabranch.transport.job import Job
from benchmarks import engines
from benchmarks.engines import consume, make_job, one_thread, open_session, spark_session
from benchmarks.harness import Options, Record, load_records, recorder
from benchmarks.processes import seconds_by_role
from benchmarks.profile import REST, Steps, timed
from benchmarks.relate import spark as relate
from benchmarks.whole import KINDS, Workload

READ, CHECK, PACK, DECODE, KERNEL, FINISH, WRITE = "read", "check", "pack", "decode", "kernel", "finish", "write"
STAGES = (READ, CHECK, PACK, DECODE, KERNEL, FINISH, WRITE, REST)
"""In the order of the data; the shuffle is between `pack` and `decode`."""

FUNCTIONS: Steps = {
    READ: ((ParquetReader, "tables"),),
    CHECK: ((routing, "check_rows"),),
    PACK: ((packets, "route"),),
    DECODE: ((Batch, "from_packet"), (Arrivals, "_decode"), (inbox.Inbox, "_decode"), (store.EntityStore, "_decode")),
    KERNEL: ((engines, "step_to_end"), (relate, "decide")),
}

#: Of Spark's task metrics: the name in a record, the name in Spark, and how many of its units are a second or a MB.
METRICS = {
    "shuffle written": ("shuffleWriteTime", 1e9, "s"),
    "shuffle awaited": ("shuffleFetchWaitTime", 1e3, "s"),
    "tasks loaded": ("executorDeserializeTime", 1e3, "s"),
    "results serialized": ("resultSerializationTime", 1e3, "s"),
    "garbage collected": ("jvmGcTime", 1e3, "s"),
    "shuffled": ("shuffleWriteBytes", 1e6, "MB"),
}


def stages(options: Options) -> Iterator[Record]:
    """The processor time of each stage, of each kind over about a million rows, and what Spark adds."""
    with spark_session() as spark:
        for make in KINDS.values():
            workload = make(options)
            path = workload.folder() / "rows.parquet"
            rows = pq.read_metadata(path).num_rows
            name = f"{workload.kind}: {workload.description}; {rows:,} rows"
            record = recorder("whole.stages", name, options)
            seconds = stage_seconds(workload, path, options.rounds)
            total = sum(seconds.values())
            for stage in STAGES:
                yield record(stage, seconds[stage], "s", "one process", seconds[stage] / total)
            yield record("one process", total, "s")
            for metric, (value, unit) in spark_metrics(spark, workload, path, options.rounds).items():
                yield record(f"Spark: {metric}", value, unit)
            yield from load_records(record)


# ------------------------------------------------------------ one process


def stage_seconds(workload: Workload, path: Path, rounds: int) -> dict[str, float]:
    """Return the median processor time of each stage, after a warm-up."""
    job = make_job(workload.reading(path), workload.query, workload.relations())
    with tempfile.TemporaryDirectory(prefix="anabranch-stages-") as folder, one_thread():
        run = partial(_run_once, workload, job, path, Path(folder) / "answers.parquet")
        run()
        runs = [run() for _ in range(rounds)]
    return {stage: median(seconds[stage] for seconds in runs) for stage in STAGES}


def _run_once(workload: Workload, job: Job, path: Path, target: Path) -> dict[str, float]:
    with timed(FUNCTIONS) as clock:
        answers = workload.in_process(job, path)
        with clock.on(FINISH):
            finished = _finished(job, answers)
        with clock.on(WRITE):
            pq.write_table(finished, target)
    return clock.seconds


def _finished(job: Job, answers: pa.Table) -> pa.Table:
    """Return the rows of the result; pairs have been decided already."""
    rules = job.finishing(0).of_answers()
    return answers if rules.pairing is not None else finish_table(rules, answers)


# ------------------------------------------------------------ Spark


def spark_metrics(spark: SparkSession, workload: Workload, path: Path, rounds: int) -> dict[str, tuple[float, str]]:
    """Return the medians of the processor time of Spark's processes and of its task metrics, after a warm-up."""
    session = open_session(spark, workload.reading(path))
    consume(session.run(workload.query))
    runs: list[dict[str, tuple[float, str]]] = []
    for _ in range(rounds):
        seen, before = set(_stages(spark)), seconds_by_role(os.getpid())
        consume(session.run(workload.query))
        after = seconds_by_role(os.getpid())
        runs.append({f"processor time of {role}": (after[role] - before[role], "s") for role in after})
        new = [stage for number, stage in _stages(spark).items() if number not in seen]
        runs[-1] |= {
            name: (sum(getattr(stage, metric)() for stage in new) / scale, unit)
            for name, (metric, scale, unit) in METRICS.items()
        }
    return {name: (median(run[name][0] for run in runs), unit) for name, (_, unit) in runs[0].items()}


def _stages(spark: SparkSession) -> dict[int, Any]:
    """Return the stages that Spark remembers, by number, with the sums of the metrics of their tasks."""
    gateway = spark.sparkContext._gateway
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    found = spark.sparkContext._jsc.sc().statusStore().stageList(
        gateway.jvm.java.util.ArrayList(), False, False, quantiles, gateway.jvm.java.util.ArrayList()
    )  # fmt: skip
    return {found.apply(number).stageId(): found.apply(number) for number in range(found.size())}


PARTS = {"stages": stages}
