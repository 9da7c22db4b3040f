"""The five kinds of query, each from files to counted answers: Spark over Parquet and over CSV, and one process.

There is one workload per kind with about a million rows; MONITOR has a quarter of that, because a row has many answers.
The run in one process reads the same Parquet file and calls the stages that Spark's workers run, so the difference to
Spark is the cost of reading, of the JVM and of the shuffle. A file with a thousand rows shows the fixed cost of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from anabranch.session import Session
from anabranch.simulate import buoys, traffic, vehicles
from anabranch.transport.job import Job
from benchmarks.engines import (
    SPARK,
    consume,
    make_job,
    one_thread,
    open_session,
    run_in_process,
    run_stream,
    spark_session,
)
from benchmarks.harness import Options, Record, interleaved, load_records, recorder
from benchmarks.idle import idle, written_bytes
from benchmarks.pattern.queries import workbook as pattern_workbook
from benchmarks.profile import print_calls
from benchmarks.relate import spark as relate
from benchmarks.sequence.workloads import QUERY, Load, QueryShape, write_csv
from benchmarks.workloads import Spec, make_relations, make_stream, write_parquet, write_part, written_once

FEW = 1_000
"""Rows of a small file."""

FILES = 8
"""Micro-batches of a stream; the first two are not timed."""

SOURCE = "FROM 'rows'"
"""The placeholder for the input file in a workbook."""

IN_PROCESS = "one process, Parquet"


@dataclass(frozen=True, slots=True)
class Workload:
    """A query, and the rows of its stream."""

    kind: str
    description: str
    name: str
    query: str
    workbook: str
    rows: Callable[[], pa.Table]
    relations: Callable[[], dict[str, pa.Table]] = dict
    in_process: Callable = run_in_process

    def reading(self, path: Path) -> str:
        """Return the workbook with a file or folder as its source."""
        return self.workbook.replace(SOURCE, f"FROM '{path}'").replace("FROM 'relations/", f"FROM '{self.folder()}/")

    def folder(self) -> Path:
        """Return a folder with rows.* and few.* as Parquet and CSV, and stream/part-*.parquet in order of time."""
        return written_once(f"whole-{self.name}", self._write)

    def _write(self, folder: Path) -> None:
        rows = self.rows()
        _write_both(rows, folder / "rows")
        _write_both(rows.slice(0, FEW), folder / "few")
        for name, table in self.relations().items():
            write_parquet(table, folder / f"{name}.parquet")
        (folder / "stream").mkdir()
        by_time = rows.sort_by("t")
        rows_per_file = -(-rows.num_rows // FILES)
        for number in range(FILES):
            write_part(by_time.slice(number * rows_per_file, rows_per_file), folder / "stream", number)


def _write_both(rows: pa.Table, path: Path) -> None:
    write_parquet(rows, path.with_suffix(".parquet"))
    plain = [column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in rows.columns]
    write_csv(pa.table(plain, names=rows.column_names), path.with_suffix(".csv"))


# ------------------------------------------------------------ the workloads of the kinds


def _pattern(options: Options) -> Workload:
    spec = Spec("MARKOV", 40 if options.quick else 2_000, 52, seed=options.seed)
    workbook = pattern_workbook(Path("relations"), spec).replace("FROM 'relations/stream.parquet'", SOURCE)
    return Workload(
        "PATTERN", str(spec), spec.name, "three", workbook, partial(make_stream, spec), partial(make_relations, spec)
    )


def _sequence(options: Options) -> Workload:
    load = Load(events=10_000) if options.quick else Load()
    query = QueryShape(3, load.window(5))
    name = f"sequence-{load.events}-seed{options.seed}"
    rows = partial(load.table, options.seed)
    return Workload("SEQUENCE", f"{query}, {load}", name, QUERY, query.workbook(f" {SOURCE}"), rows)


def _relate(options: Options) -> Workload:
    size = traffic.Options(data="poisson", loss=0.2, pairs=200 if options.quick else 15_000)
    return Workload(
        "RELATE",
        f"{size.pairs:,} pairs of {size.segments} segments, {size.loss:.0%} of the events lost",
        f"relate-{size.pairs}-seed{options.seed}",
        "shared",
        relate.with_types(traffic.simulate(size, options.seed).workbook).replace("FROM 'congestion.parquet'", SOURCE),
        lambda: traffic.simulate(size, options.seed).congestion,
        in_process=relate.answers_in_process,
    )


def _monitor(options: Options) -> Workload:
    size = vehicles.Options(objects=200 if options.quick else 20_000, duration=150.0, density=1.0)
    workbook = vehicles.WORKBOOK.format(error=size.error, period=size.period, near=vehicles.NEAR)
    return Workload(
        "MONITOR",
        f"{size.objects:,} vehicles, {size.density:g} per km2, {size.duration:g} s",
        f"monitor-{size.objects}-{size.duration:g}-seed{options.seed}",
        "near",
        workbook.replace("(car) VALUE (x, y) TIME t", "(car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE").replace(
            "FROM 'cars.parquet'", SOURCE
        ),
        lambda: vehicles.simulate(size, options.seed).cars,
    )


def _constrain(options: Options) -> Workload:
    size = buoys.Options(buoys=250, days=10.0 if options.quick else 1_000.0)
    types = "(buoy INTEGER) VALUE (sst DOUBLE, airt DOUBLE, pressure DOUBLE, humidity DOUBLE, wind DOUBLE, dir INTEGER)"
    workbook = buoys.WORKBOOK.replace(
        "(buoy) VALUE (sst, airt, pressure, humidity, wind, dir) TIME t", f"{types} TIME t TIMESTAMP"
    )
    return Workload(
        "CONSTRAIN",
        f"three buoys that report low pressure; {size.buoys:,} buoys, {size.days:g} days",
        f"constrain-{size.buoys}-{size.days:g}-seed{options.seed}",
        "low",
        # The readings are of the coming years.
        workbook.replace("FROM 'readings.parquet'", f"MAX AHEAD 5000 DAYS {SOURCE}"),
        lambda: buoys.simulate(size, options.seed).readings,
    )


KINDS = {
    "pattern": _pattern,
    "sequence": _sequence,
    "relate": _relate,
    "monitor": _monitor,
    "constrain": _constrain,
}


# ------------------------------------------------------------ an archive


def from_files(make: Callable[[Options], Workload], options: Options) -> Iterator[Record]:
    """Rows per second from Parquet and from CSV by Spark on two cores, and by one process; and a small file."""
    with spark_session() as spark:
        yield from measure(spark, make(options), options)


def measure(spark: SparkSession, workload: Workload, options: Options) -> Iterator[Record]:
    """Yield the records of all ways to run a workload, after a comparison of the numbers of answers."""
    folder = workload.folder()
    job = make_job(workload.reading(folder / "rows.parquet"), workload.query, workload.relations())
    in_process = partial(answers_in_process, workload, job, folder / "rows.parquet")
    expected = in_process().num_rows
    contestants: dict[str, Callable[[], object]] = {IN_PROCESS: in_process}
    for name in ("rows.parquet", "rows.csv", "few.parquet", "few.csv"):
        session = open_session(spark, workload.reading(folder / name))
        if name.startswith("rows"):
            _check_count(session, workload, expected)
        contestants[name] = partial(_run, session, workload.query)
    interleaved(contestants, 1)
    processor_times: dict[str, list[float]] = {name: [] for name in contestants}
    timed = {name: partial(_with_processor_time, run, processor_times[name]) for name, run in contestants.items()}
    seconds = interleaved(timed, options.rounds)
    rows = pq.read_metadata(folder / "rows.parquet").num_rows
    record = recorder(f"whole.{workload.kind.lower()}", f"{workload.description}; {rows:,} rows", options)
    yield record(IN_PROCESS, rows / seconds[IN_PROCESS], "rows/s")
    for name, source in (("rows.parquet", "Parquet"), ("rows.csv", "CSV")):
        ratio = seconds[IN_PROCESS] / seconds[name]
        yield record(f"{SPARK}, {source}", rows / seconds[name], "rows/s", IN_PROCESS, ratio)
    for name, source in (("few.parquet", "Parquet"), ("few.csv", "CSV")):
        yield record(f"{SPARK}, {FEW:,} rows of {source}", seconds[name], "s")
    for name, times in processor_times.items():
        yield record(f"{name}: processor time", median(times), "s")
    yield record("answers, the same for all", expected, "answers")
    yield from load_records(record)
    if options.profile:
        print_calls(f"{workload.kind}, one process", in_process)


def answers_in_process(workload: Workload, job: Job, path: Path) -> pa.Table:
    """Return the answers of one process on one thread."""
    with one_thread():
        return workload.in_process(job, path)


def _with_processor_time(run: Callable[[], object], times: list[float]) -> None:
    """Run, and append the processor time of this process and of its descendants."""
    start = processor_time()
    run()
    times.append(processor_time() - start)


def processor_time() -> float:
    """Return the seconds of processor time of this process, the JVM and the workers of Spark (only on Linux).

    Other processes on the machine affect it less than wall-clock time.
    """
    stats = [_process_stat(path) for path in Path("/proc").glob("[0-9]*/stat")]
    parents = {int(stat[0]): int(stat[1]) for stat in stats if stat}
    family = {os.getpid()}
    while children := {process for process, parent in parents.items() if parent in family} - family:
        family |= children
    ticks = sum(sum(map(int, stat[2:])) for stat in stats if stat and int(stat[0]) in family)
    return ticks / os.sysconf("SC_CLK_TCK")


def _process_stat(path: Path) -> tuple[str, ...]:
    """Return the id of a process, its parent, and its ticks with those of ended children; empty if it has ended."""
    try:
        number, rest = path.read_text().split(" (", 1)
    except OSError:
        return ()
    fields = rest.rsplit(") ", 1)[1].split()
    return number, fields[1], *fields[11:15]


def _run(session: Session, query: str) -> None:
    consume(session.run(query))


def _check_count(session: Session, workload: Workload, expected: int) -> None:
    count = session.run(workload.query).count()
    if count != expected:
        raise AssertionError(f"{workload.kind}: Spark gives {count:,} answers, one process gives {expected:,}")


# ------------------------------------------------------------ a stream


def streaming(options: Options) -> Iterator[Record]:
    """The same rows in eight micro-batches, in order of time: rows per second by Spark's own metric."""
    with spark_session() as spark:
        for make in KINDS.values():
            workload = make(options)
            folder = workload.folder()
            rows = pq.read_metadata(folder / "rows.parquet").num_rows
            session = open_session(spark, workload.reading(folder / "stream"))
            streamed = run_stream(session, workload.query, foreach_batch=_count)
            timed = streamed.seconds[2:]
            description = f"{workload.kind}: {workload.description}; {rows // FILES:,} rows per micro-batch"
            record = recorder("whole.streaming", description, options)
            yield record(SPARK, rows / FILES / median(timed), "rows/s")
            yield record("longest micro-batch", max(timed), "s")
            yield record("state", streamed.state_bytes / 1e6, "MB")


def _count(answers: DataFrame, number: int) -> None:
    answers.count()


def written(options: Options) -> Iterator[Record]:
    """The bytes that a stream of RELATE writes to its state, and those that arrive, in one process."""
    workload = _relate(options)
    folder = workload.folder() / "stream"
    arrived, to_state = written_bytes(workload.reading(folder), workload.query, folder)
    record = recorder("whole.written", f"RELATE: {workload.description}; {FILES} micro-batches", options)
    yield record("arrived", arrived / 1e6, "MB")
    yield record("written", to_state / 1e6, "MB", "arrived", to_state / arrived)


PARTS = {name: partial(from_files, make) for name, make in KINDS.items()}
PARTS |= {"streaming": streaming, "idle": idle, "written": written}
