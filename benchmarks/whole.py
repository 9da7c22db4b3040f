"""The five kinds of query, each from files to counted answers: Spark over Parquet and over CSV, and one process.

One workload a kind, of about a million rows; a quarter of that for MONITOR, where a row has many answers. The run in
one process reads the same Parquet file and calls the stages that Spark's workers run, so what Spark takes longer is the
price of reading, of the JVM and of the shuffle. A file of a thousand rows shows what a run costs whatever it reads.
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
from benchmarks import pattern, relate
from benchmarks.engines import consume, make_job, one_thread, open_session, run_in_process, run_stream, spark_session
from benchmarks.harness import Options, Record, interleaved
from benchmarks.profile import print_calls
from benchmarks.sequence_workloads import Load, QueryShape, write_csv
from benchmarks.workloads import Spec, make_relations, make_stream, written_once

FEW = 1_000
"""Rows of a small file."""

FILES = 8
"""Micro-batches of a stream; the first two are not timed."""

SOURCE = "FROM 'rows'"
"""Stands in a workbook for the file that is read."""

IN_PROCESS = "one process, Parquet"


@dataclass(frozen=True, slots=True)
class Workload:
    """A query, and the rows that it is asked about."""

    kind: str
    what: str
    name: str
    query: str
    workbook: str
    rows: Callable[[], pa.Table]
    relations: Callable[[], dict[str, pa.Table]] = dict
    in_process: Callable = run_in_process

    def reading(self, path: Path) -> str:
        """The workbook, with the rows in a file or folder."""
        return self.workbook.replace(SOURCE, f"FROM '{path}'").replace("FROM 'relations/", f"FROM '{self.folder()}/")

    def folder(self) -> Path:
        """The rows as rows.parquet and rows.csv, the first as few.*, and in order of time as stream/part-*.parquet."""
        return written_once(f"whole-{self.name}", self._write)

    def _write(self, folder: Path) -> None:
        rows = self.rows()
        _write_both(rows, folder / "rows")
        _write_both(rows.slice(0, FEW), folder / "few")
        for name, table in self.relations().items():
            pq.write_table(table, folder / f"{name}.parquet", store_schema=False)
        (folder / "stream").mkdir()
        in_time = rows.sort_by("t")
        share = -(-rows.num_rows // FILES)
        for number in range(FILES):
            path = folder / "stream" / f"part-{number}.parquet"
            pq.write_table(in_time.slice(number * share, share), path, store_schema=False)
            os.utime(path, (1_700_000_000 + 10 * number,) * 2)


def _write_both(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path.with_suffix(".parquet"), row_group_size=250_000, store_schema=False)
    plain = [column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in rows.columns]
    write_csv(pa.table(plain, names=rows.column_names), path.with_suffix(".csv"))


# ------------------------------------------------------------ the five


def _pattern(options: Options) -> Workload:
    spec = Spec("MARKOV", 40 if options.quick else 2_000, 52, seed=options.seed)
    workbook = pattern.workbook(Path("relations"), spec).replace("FROM 'relations/stream.parquet'", SOURCE)
    return Workload(
        "PATTERN", str(spec), spec.name, "three", workbook, partial(make_stream, spec), partial(make_relations, spec)
    )


def _sequence(options: Options) -> Workload:
    load = Load(events=10_000) if options.quick else Load()
    query = QueryShape(3, load.window(5))
    name = f"sequence-{load.events}-seed{options.seed}"
    rows = partial(load.table, options.seed)
    return Workload("SEQUENCE", f"{query}, {load}", name, "asked", query.workbook(f" {SOURCE}"), rows)


def _relate(options: Options) -> Workload:
    drawn = traffic.Options(data="poisson", loss=0.2, pairs=200 if options.quick else 15_000)
    return Workload(
        "RELATE",
        f"{drawn.pairs:,} pairs of {drawn.segments} segments, {drawn.loss:.0%} of the events lost",
        f"relate-{drawn.pairs}-seed{options.seed}",
        "shared",
        relate.typed(traffic.simulate(drawn, options.seed).workbook).replace("FROM 'congestion.parquet'", SOURCE),
        lambda: traffic.simulate(drawn, options.seed).congestion,
        in_process=relate.answers_in_process,
    )


def _monitor(options: Options) -> Workload:
    drawn = vehicles.Options(objects=200 if options.quick else 20_000, duration=150.0, density=1.0)
    stated = vehicles.WORKBOOK.format(error=drawn.error, period=drawn.period, near=vehicles.NEAR)
    return Workload(
        "MONITOR",
        f"{drawn.objects:,} vehicles, {drawn.density:g} a km2, {drawn.duration:g} s",
        f"monitor-{drawn.objects}-{drawn.duration:g}-seed{options.seed}",
        "near",
        stated.replace("(car) VALUE (x, y) TIME t", "(car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE").replace(
            "FROM 'cars.parquet'", SOURCE
        ),
        lambda: vehicles.simulate(drawn, options.seed).cars,
    )


def _constrain(options: Options) -> Workload:
    drawn = buoys.Options(buoys=250, days=10.0 if options.quick else 1_000.0)
    types = "(buoy INTEGER) VALUE (sst DOUBLE, airt DOUBLE, pressure DOUBLE, humidity DOUBLE, wind DOUBLE, dir INTEGER)"
    stated = buoys.WORKBOOK.replace(
        "(buoy) VALUE (sst, airt, pressure, humidity, wind, dir) TIME t", f"{types} TIME t TIMESTAMP"
    )
    return Workload(
        "CONSTRAIN",
        f"three buoys that report low pressure; {drawn.buoys:,} buoys, {drawn.days:g} days",
        f"constrain-{drawn.buoys}-{drawn.days:g}-seed{options.seed}",
        "low",
        stated.replace("FROM 'readings.parquet'", SOURCE),
        lambda: buoys.simulate(drawn, options.seed).readings,
    )


FIVE = {
    "pattern": _pattern,
    "sequence": _sequence,
    "relate": _relate,
    "monitor": _monitor,
    "constrain": _constrain,
}


# ------------------------------------------------------------ an archive


def from_files(make: Callable[[Options], Workload], options: Options) -> Iterator[Record]:
    """Rows a second from Parquet and from CSV by Spark on two cores, held against one process; and a small file."""
    with spark_session() as spark:
        yield from measured(spark, make(options), options)


def measured(spark: SparkSession, workload: Workload, options: Options) -> Iterator[Record]:
    """All ways to run a workload, after their answers were counted."""
    folder = workload.folder()
    job = make_job(workload.reading(folder / "rows.parquet"), workload.query, workload.relations())
    alone = partial(answers_alone, workload, job, folder / "rows.parquet")
    expected = alone().num_rows
    contestants: dict[str, Callable[[], object]] = {IN_PROCESS: alone}
    for name in ("rows.parquet", "rows.csv", "few.parquet", "few.csv"):
        session = open_session(spark, workload.reading(folder / name))
        if name.startswith("rows"):
            _check(session, workload, expected)
        contestants[name] = partial(_run, session, workload.query)
    interleaved(contestants, 1)
    charged: dict[str, list[float]] = {name: [] for name in contestants}
    timed = {name: partial(_charge, run, charged[name]) for name, run in contestants.items()}
    seconds = interleaved(timed, options.rounds)
    rows = pq.read_metadata(folder / "rows.parquet").num_rows
    record = partial(Record, f"whole.{workload.kind.lower()}", f"{workload.what}; {rows:,} rows", seed=options.seed)
    yield record(IN_PROCESS, rows / seconds[IN_PROCESS], "rows/s")
    for name, what in (("rows.parquet", "Spark, 2 cores, Parquet"), ("rows.csv", "Spark, 2 cores, CSV")):
        yield record(what, rows / seconds[name], "rows/s", IN_PROCESS, seconds[IN_PROCESS] / seconds[name])
    for name, what in (("few.parquet", "Parquet"), ("few.csv", "CSV")):
        yield record(f"Spark, 2 cores, {FEW:,} rows of {what}", seconds[name], "s")
    for name, spent in charged.items():
        yield record(f"{name}: processor time", median(spent), "s")
    yield record("answers, the same for all", expected, "answers")
    yield record("load of the machine", os.getloadavg()[0], "processes")
    if options.profile:
        print_calls(f"{workload.kind}, one process", alone)


def answers_alone(workload: Workload, job: Job, path: Path) -> pa.Table:
    """The answers by one process, on one thread."""
    with one_thread():
        return workload.in_process(job, path)


def _charge(run: Callable[[], object], charged: list[float]) -> None:
    """Run, and note the processor time of this process and of those that it has started."""
    start = processor_time()
    run()
    charged.append(processor_time() - start)


def processor_time() -> float:
    """Seconds of processor time of this process, Java and the workers of Spark: what others do counts less in it."""
    stats = [_stat_of(path) for path in Path("/proc").glob("[0-9]*/stat")]
    parents = {int(stat[0]): int(stat[1]) for stat in stats if stat}
    own = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in own} - own:
        own |= more
    ticks = sum(sum(map(int, stat[2:])) for stat in stats if stat and int(stat[0]) in own)
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat_of(path: Path) -> tuple[str, ...]:
    """A process: its number, its parent's, and its ticks with those of its children that have ended; else nothing."""
    try:
        number, rest = path.read_text().split(" (", 1)
    except OSError:
        return ()
    fields = rest.rsplit(") ", 1)[1].split()
    return number, fields[1], *fields[11:15]


def _run(session: Session, query: str) -> None:
    consume(session.run(query))


def _check(session: Session, workload: Workload, expected: int) -> None:
    found = session.run(workload.query).count()
    if found != expected:
        raise AssertionError(f"Spark gives {found:,} answers to {workload.kind}, one process {expected:,}")


# ------------------------------------------------------------ a stream


def streaming(options: Options) -> Iterator[Record]:
    """The same rows in eight micro-batches, in order of time: rows a second by Spark's own clock."""
    with spark_session() as spark:
        for make in FIVE.values():
            workload = make(options)
            folder = workload.folder()
            rows = pq.read_metadata(folder / "rows.parquet").num_rows
            streamed = run_stream(
                open_session(spark, workload.reading(folder / "stream")), workload.query, foreach_batch=_count
            )
            taken = streamed.seconds[2:]
            what = f"{workload.kind}: {workload.what}; {rows // FILES:,} rows a micro-batch"
            record = partial(Record, "whole.streaming", what, seed=options.seed)
            yield record("Spark, 2 cores", rows / FILES / median(taken), "rows/s")
            yield record("longest micro-batch", max(taken), "s")
            yield record("state", streamed.state_bytes / 1e6, "MB")


def _count(answers: DataFrame, number: int) -> None:
    answers.count()


PARTS = {name: partial(from_files, make) for name, make in FIVE.items()} | {"streaming": streaming}
