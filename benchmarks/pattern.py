"""PATTERN: the kernels alone, a run in one process, Spark over an archive, Spark as a stream, and growth.

Two queries: *three goals* asks for one room after another; *coffee* has a Kleene plus, and conditions that ask
relations about key and value. A figure is only given once the answers behind it agree with those found in another way.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.pattern.automaton import Automaton
from anabranch.pattern.weights import Batch, Weights, weights_for
from anabranch.transport.job import Job
from benchmarks.engines import (
    TOLERANCE,
    LocalStream,
    Streamed,
    consume,
    largest_difference,
    make_job,
    one_thread,
    open_session,
    run_in_process,
    run_stream,
    spark_session,
)
from benchmarks.harness import Options, Record, interleaved
from benchmarks.profile import print_profile
from benchmarks.workloads import Spec, archive, make_relations, micro_batches, room

QUERIES = {"three": "three goals", "coffee": "coffee"}

#: Files of a stream that are not timed: workers start, kernels load, Java warms up.
WARM_UP_FILES = 2
TIMED_FILES = 5

IN_PROCESS = "in process, one thread"


def workbook(folder: Path, spec: Spec, source: str = "stream.parquet", goals: int = 3) -> str:
    """The two queries over a workload; the first with as many goals as one likes, evenly around the ring."""
    visited = [room(number * spec.values // (goals + 1)) for number in range(goals)]
    return f"""
        CREATE RELATION office (person STRING, room STRING) FROM '{folder}/office.parquet';
        CREATE RELATION hall (room STRING) FROM '{folder}/hall.parquet';
        CREATE RELATION coffee_room (room STRING) FROM '{folder}/coffee_room.parquet';
        CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER
          MODEL {spec.model} FROM '{folder}/{source}';
        CREATE QUERY three AS
          PATTERN {" THEN ".join(f"at(p, '{each}')" for each in visited)} GROUP BY p;
        CREATE QUERY coffee AS
          PATTERN at(p, l1) THEN at(p, l2)+<p | hall(l2)> THEN at(p, l3)
          WHERE office(p, l1) AND coffee_room(l3) GROUP BY p;
        """


def archive_specs(options: Options, instants: int = 51) -> list[Spec]:
    """An archive of each model; with 51 instants, 5 million rows and more where it is uncertain."""
    keys = 200 if options.quick else 10_000
    return [
        Spec("MARKOV", keys, instants + 1, seed=options.seed),
        Spec("INDEPENDENT", keys, 2 * instants, seed=options.seed),
        Spec("CERTAIN", keys, 2 * instants, seed=options.seed),
    ]


# ------------------------------------------------------------ the kernels alone


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an operator hands to its kernel, and what it takes to run that again."""

    job: Job
    batch: Batch
    automaton: Automaton

    def run(self) -> tuple[np.ndarray, ...]:
        """The kernel from the beginning; chain, instant and probability of each answer."""
        weights = _weights(self.job)
        weights.grow(len(self.batch.starts) - 1, len(self.automaton.states))
        return weights.step(self.batch, self.automaton)

    def in_order(self) -> Prepared:
        """The same rows laid out as the kernel visits them."""
        rows = self.batch.rows
        names = ("t", "key", "model", "prev", "value", "p", "letter")
        columns = {name: getattr(self.batch, name)[rows] for name in names}
        return replace(self, batch=replace(self.batch, rows=np.arange(len(rows)), **columns))


def _weights(job: Job) -> Weights:
    return weights_for(job.analysis.single, job.analysis.markov)


def prepare(spec: Spec, query: str = "three", goals: int = 3) -> Prepared:
    """Run a query over an archive, and keep what its kernel was given."""
    folder = archive(spec)
    job = make_job(workbook(folder, spec, goals=goals), query, make_relations(spec))
    kind = type(_weights(job))
    with patch.object(kind, "step", autospec=True, side_effect=kind.step) as step:
        run_in_process(job, folder / "stream.parquet")
    _, batch, automaton = step.call_args.args
    return Prepared(job, batch, automaton)


def kernel(options: Options) -> Iterator[Record]:
    """Table rows a second on one core: archived (MARKOV), real-time (INDEPENDENT), and deterministic (CERTAIN)."""
    for query, title in QUERIES.items():
        arrival = {spec: prepare(spec, query) for spec in archive_specs(options)}
        ordered = {spec: each.in_order() for spec, each in arrival.items()}
        for spec in arrival:
            _check_same(arrival[spec].run(), ordered[spec].run())
        seconds = interleaved({spec: each.run for spec, each in ordered.items()}, options.rounds)
        scattered = interleaved({spec: each.run for spec, each in arrival.items()}, options.rounds)
        certain = next(spec for spec in arrival if spec.model == "CERTAIN")
        instants = {spec: spec.keys * spec.instants / seconds[spec] for spec in arrival}
        rows = {spec: len(each.batch.rows) / seconds[spec] for spec, each in ordered.items()}
        for spec in arrival:
            record = partial(Record, "pattern.kernel", f"{title}: {spec}", seed=spec.seed)
            late = seconds[spec] / scattered[spec]
            yield record("one core", rows[spec], "rows/s", "CERTAIN", rows[spec] / rows[certain])
            yield record("one core", instants[spec], "(key, t)/s", "CERTAIN", instants[spec] / instants[certain])
            yield record("one core, rows as they arrive", rows[spec] * late, "rows/s", "rows in order", late)


def _check_same(found: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> None:
    """Both ways to run a kernel must give the same answers."""
    largest_difference(*(pa.table([t, chain, p], names=["t", "chain", "p"]) for chain, t, p in (found, expected)))


# ------------------------------------------------------------ an archive


def batch(options: Options) -> Iterator[Record]:
    """An archive in one process, and by Spark on two cores from the same file."""
    with spark_session() as spark:
        # 20 million rows: half a second that a job of Spark costs whatever its size should not be what is measured.
        for spec in archive_specs(options, instants=204):
            folder = archive(spec)
            text = workbook(folder, spec)
            session = open_session(spark, text)
            for query, title in QUERIES.items():
                job = make_job(text, query, make_relations(spec))
                in_process = partial(_on_one_thread, job, folder / "stream.parquet")
                expected = in_process()
                apart = largest_difference(session.run(query).toArrow(), expected)
                contestants = {"in process": in_process, "Spark": lambda: consume(session.run(query))}  # noqa: B023
                interleaved(contestants, 1)
                seconds = interleaved(contestants, options.rounds)
                rows = session.report(query).read
                record = partial(Record, "pattern.batch", f"{title}: {spec}, {rows:,} rows", seed=spec.seed)
                ratio = seconds["in process"] / seconds["Spark"]
                yield record(IN_PROCESS, rows / seconds["in process"], "rows/s")
                yield record("Spark, 2 cores", rows / seconds["Spark"], "rows/s", IN_PROCESS, ratio)
                yield record("largest difference of answers", apart, "probability")
                if options.profile:
                    print_profile(f"{title}: {spec}", in_process)


def _on_one_thread(job: Job, path: Path) -> pa.Table:
    with one_thread():
        return run_in_process(job, path)


# ------------------------------------------------------------ a stream


def streaming(options: Options) -> Iterator[Record]:
    """Micro-batches of one file, a million rows each: rows a second by Spark's own clock, and in one process."""
    files = WARM_UP_FILES + TIMED_FILES
    rows_a_file = 20_000 if options.quick else 1_000_000
    with spark_session() as spark:
        for model in ("INDEPENDENT", "MARKOV"):
            for keys in (100, 1_000) if options.quick else (100, 10_000, 100_000):
                spec = Spec(model, keys, 1, seed=options.seed)
                spec = replace(spec, instants=files * max(1, rows_a_file // spec.rows_an_instant))
                yield from _stream(spark, spec, files)


def _stream(spark, spec: Spec, files: int) -> Iterator[Record]:
    folder = micro_batches(spec, files)
    text = workbook(folder, spec, source="stream")
    paths = sorted((folder / "stream").iterdir())
    rows = spec.rows_an_instant * (spec.instants // files)
    local = LocalStream(make_job(text, "three", make_relations(spec)))
    alone = _timed_steps(local, paths)
    expected = pa.concat_tables(local.answers)
    session = open_session(spark, text)
    record = partial(Record, "pattern.streaming", f"three goals: {spec}, {rows:,} rows a micro-batch", seed=spec.seed)
    speed = rows / alone
    yield record(f"{IN_PROCESS}", speed, "rows/s")
    yield record("state, all buckets", len(local.state) / 1e6, "MB")
    for sink, run in (("counted", _stream_counted), ("to files", _stream_to_files)):
        streamed, apart = run(session, expected)
        seconds = median(streamed.seconds[WARM_UP_FILES:])
        yield record(f"Spark, 2 cores, answers {sink}", rows / seconds, "rows/s", IN_PROCESS, alone / seconds)
        yield record(f"a micro-batch, answers {sink}: longest", max(streamed.seconds[WARM_UP_FILES:]), "s")
        yield record(f"difference of answers {sink}", apart, "probability")


def _timed_steps(local: LocalStream, paths: list[Path]) -> float:
    """The median seconds of a micro-batch in this process, after the first ones."""
    with one_thread():
        for path in paths[:WARM_UP_FILES]:
            local.step(path)
        seconds = [interleaved({"": partial(local.step, path)}, 1)[""] for path in paths[WARM_UP_FILES:]]
    return median(seconds)


def _stream_counted(session, expected: pa.Table) -> tuple[Streamed, float]:
    """A sink that only counts the answers and adds up their probabilities; the difference of the sums, relative."""
    seen: list[tuple[int, float]] = []

    def count(answers: DataFrame, number: int) -> None:
        row = answers.agg(F.count("*"), F.sum("probability")).first()
        seen.append((row[0], row[1] or 0.0))

    streamed = run_stream(session, "three", foreach_batch=count)
    found, total = (sum(column) for column in zip(*seen, strict=True))
    reference = float(expected["probability"].to_numpy().sum())
    apart = abs(total - reference) / reference
    if found != expected.num_rows or apart > TOLERANCE:
        message = f"{found} answers sum to {total}; expected were {expected.num_rows} that sum to {reference}"
        raise AssertionError(message)
    return streamed, apart


def _stream_to_files(session, expected: pa.Table) -> tuple[Streamed, float]:
    """Files of answers, read back and compared one by one."""
    output = tempfile.mkdtemp(prefix="anabranch-answers-")
    try:
        streamed = run_stream(session, "three", output=output)
        return streamed, largest_difference(ds.dataset(output, format="parquet").to_table(), expected)
    finally:
        shutil.rmtree(output, ignore_errors=True)


# ------------------------------------------------------------ growth


def growth(options: Options) -> Iterator[Record]:
    """The kernel's time when one dimension doubles and the others stay."""
    base = Spec("MARKOV", 200 if options.quick else 2_000, 51, seed=options.seed)
    variants = {
        "": (base, 3),
        "keys": (replace(base, keys=2 * base.keys), 3),
        "instants": (replace(base, instants=2 * base.instants - 1), 3),
        "values": (replace(base, values=2 * base.values), 3),
        "alternatives": (replace(base, alternatives=2 * base.alternatives), 3),
        "goals": (base, 6),
    }
    prepared = {name: prepare(spec, goals=goals).in_order() for name, (spec, goals) in variants.items()}
    for each in prepared.values():
        each.run()
    seconds = interleaved({name: each.run for name, each in prepared.items()}, 3 * options.rounds)
    start = len(prepared[""].batch.rows)
    for name, each in prepared.items():
        record = partial(Record, "pattern.growth", str(base), seed=base.seed)
        states = f"{len(each.automaton.states)} states"
        if not name:
            yield record(f"three goals, {states}", seconds[name], "s")
            continue
        what = f"twice the {name}: {len(each.batch.rows) / start:.2f} times the rows, {states}"
        yield record(what, seconds[name], "s", "the first line", seconds[name] / seconds[""])


PARTS = {"kernel": kernel, "batch": batch, "streaming": streaming, "growth": growth}
