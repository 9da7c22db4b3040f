"""The five kinds of query, each from files to counted answers: Spark over Parquet, CSV and JSON lines, and one process.

There is one workload per kind with about a million rows; MONITOR has a quarter of that, because a row has many answers.
The run in one process reads the same Parquet file and calls the stages that Spark's workers run, so the difference to
Spark is the cost of reading, of the JVM and of the shuffle. A file with a thousand rows shows the fixed cost of a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
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
from benchmarks.processes import family_of, seconds_by_role
from benchmarks.profile import print_calls
from benchmarks.relate import spark as relate
from benchmarks.sequence.workloads import QUERY, Load, QueryShape, write_csv
from benchmarks.workloads import Spec, make_relations, make_stream, write_parquet, write_part, written_once

FEW = 1_000
"""Rows of a small file."""

FILES = 8
"""Micro-batches of a stream; the first two are not timed."""

FILE = "rows.parquet"

ORDERS: dict[str, list[tuple[str, str]]] = {"rows": [], "by key": [("person", "ascending"), ("t", "ascending")]}
"""The orders of the rows of a file: the columns to sort by; as they are simulated, by time, without any."""

SOURCE = "FROM 'rows'"
"""The placeholder for the input file in a workbook."""

IN_PROCESS = "one process, Parquet"

FORMATS = {"parquet": "Parquet", "csv": "CSV", "json": "JSON lines"}
"""The extension of a file, and the name of its format."""


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

    def reading(self, path: Path, relations: Path | None = None) -> str:
        """Return the workbook with a file or folder as its source; relations are in a folder, its own by default."""
        folder = relations or self.folder()
        return self.workbook.replace(SOURCE, f"FROM '{path}'").replace("FROM 'relations/", f"FROM '{folder}/")

    def parquet_file(self, order: str = "rows") -> Path:
        """Return a Parquet file with the rows in one of ORDERS, with the relations beside it, and no other formats."""
        return (
            written_once(f"parquet-{self.name}-{order.replace(' ', '-')}", partial(self._write_parquet, order)) / FILE
        )

    def _write_parquet(self, order: str, folder: Path) -> None:
        rows = _without_dictionaries(self.rows())  # Arrow does not sort them.
        write_parquet(rows.sort_by(ORDERS[order]) if ORDERS[order] else rows, folder / FILE)
        self._write_relations(folder)

    def _write_relations(self, folder: Path) -> None:
        for name, table in self.relations().items():
            write_parquet(table, folder / f"{name}.parquet")

    def folder(self) -> Path:
        """Return a folder with rows.* and few.* in each format, and stream/part-*.parquet in order of time."""
        return written_once(f"whole-{self.name}", self._write)

    def _write(self, folder: Path) -> None:
        rows = self.rows()
        _write_formats(rows, folder / "rows")
        _write_formats(rows.slice(0, FEW), folder / "few")
        self._write_relations(folder)
        (folder / "stream").mkdir()
        by_time = rows.sort_by("t")
        rows_per_file = -(-rows.num_rows // FILES)
        for number in range(FILES):
            write_part(by_time.slice(number * rows_per_file, rows_per_file), folder / "stream", number)


def _write_formats(rows: pa.Table, path: Path) -> None:
    write_parquet(rows, path.with_suffix(".parquet"))
    plain = _without_dictionaries(rows)
    write_csv(plain, path.with_suffix(".csv"))
    _write_json(plain, path.with_suffix(".json"))


def _without_dictionaries(rows: pa.Table) -> pa.Table:
    columns = [column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in rows.columns]
    return pa.table(columns, names=rows.column_names)


def _write_json(rows: pa.Table, path: Path) -> None:
    """Write one object per line, with times as ISO 8601 writes them."""
    with path.open("w", encoding="utf-8") as file:
        for batch in rows.to_batches(max_chunksize=100_000):
            file.writelines(json.dumps(row, default=datetime.isoformat) + "\n" for row in batch.to_pylist())


# ------------------------------------------------------------ the workloads of the kinds


def _pattern(options: Options) -> Workload:
    return pattern_workload(Spec("MARKOV", 40 if options.quick else 2_000, 52, seed=options.seed))


def pattern_workload(spec: Spec) -> Workload:
    """Return three goals over a stream of the PATTERN benchmarks."""
    workbook = pattern_workbook(Path("relations"), spec).replace("FROM 'relations/stream.parquet'", SOURCE)
    return Workload(
        "PATTERN", str(spec), spec.name, "three", workbook, partial(make_stream, spec), partial(make_relations, spec)
    )


def _sequence(options: Options) -> Workload:
    return sequence_workload(Load(events=10_000) if options.quick else Load(), options.seed)


def sequence_workload(load: Load, seed: int) -> Workload:
    """Return A, B and C of one key, with five events of a key in a window."""
    query = QueryShape(3, load.window(5))
    keys = "" if load.keys == Load.keys else f"-{load.keys}"
    name = f"sequence-{load.events}{keys}-seed{seed}"
    rows = partial(load.table, seed)
    return Workload("SEQUENCE", f"{query}, {load}", name, QUERY, query.workbook(f" {SOURCE}"), rows)


def _relate(options: Options) -> Workload:
    size = traffic.Options(data="poisson", loss=0.2, pairs=200 if options.quick else 15_000)
    return relate_workload(size, options.seed)


def relate_workload(size: traffic.Options, seed: int) -> Workload:
    """Return pairs of intervals whose events follow a Poisson process."""
    segments = "" if size.segments == traffic.Options().segments else f"-{size.segments}"
    return Workload(
        "RELATE",
        f"{size.pairs:,} pairs of {size.segments} segments, {size.loss:.0%} of the events lost",
        f"relate-{size.pairs}{segments}-seed{seed}",
        "shared",
        relate.with_types(traffic.simulate(size, seed).workbook).replace("FROM 'congestion.parquet'", SOURCE),
        lambda: traffic.simulate(size, seed).congestion,
        in_process=relate.answers_in_process,
    )


def _monitor(options: Options) -> Workload:
    size = vehicles.Options(objects=200 if options.quick else 20_000, duration=150.0, density=1.0)
    return monitor_workload(size, options.seed)


def monitor_workload(size: vehicles.Options, seed: int) -> Workload:
    """Return pairs of vehicles that are near each other."""
    workbook = vehicles.WORKBOOK.format(error=size.error, period=size.period, near=vehicles.NEAR)
    return Workload(
        "MONITOR",
        f"{size.objects:,} vehicles, {size.density:g} per km2, {size.duration:g} s",
        f"monitor-{size.objects}-{size.duration:g}-seed{seed}",
        "near",
        workbook.replace("(car) VALUE (x, y) TIME t", "(car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE").replace(
            "FROM 'cars.parquet'", SOURCE
        ),
        lambda: vehicles.simulate(size, seed).cars,
    )


def _constrain(options: Options) -> Workload:
    return constrain_workload(buoys.Options(buoys=250, days=10.0 if options.quick else 1_000.0), options.seed)


def constrain_workload(size: buoys.Options, seed: int) -> Workload:
    """Return three buoys that report low pressure."""
    types = "(buoy INTEGER) VALUE (sst DOUBLE, airt DOUBLE, pressure DOUBLE, humidity DOUBLE, wind DOUBLE, dir INTEGER)"
    workbook = buoys.WORKBOOK.replace(
        "(buoy) VALUE (sst, airt, pressure, humidity, wind, dir) TIME t", f"{types} TIME t TIMESTAMP"
    )
    return Workload(
        "CONSTRAIN",
        f"three buoys that report low pressure; {size.buoys:,} buoys, {size.days:g} days",
        f"constrain-{size.buoys}-{size.days:g}-seed{seed}",
        "low",
        # The readings are of the coming decades.
        workbook.replace("FROM 'readings.parquet'", f"MAX AHEAD 50000 DAYS {SOURCE}"),
        lambda: buoys.simulate(size, seed).readings,
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
    """Rows per second from each format by Spark on two cores, and by one process from Parquet; and a small file."""
    with spark_session() as spark:
        yield from measure(spark, make(options), options)


def measure(spark: SparkSession, workload: Workload, options: Options) -> Iterator[Record]:
    """Yield the records of all ways to run a workload, after a comparison of the numbers of answers."""
    folder = workload.folder()
    job = make_job(workload.reading(folder / "rows.parquet"), workload.query, workload.relations())
    in_process = partial(answers_in_process, workload, job, folder / "rows.parquet")
    expected = in_process().num_rows
    contestants: dict[str, Callable[[], object]] = {IN_PROCESS: in_process}
    for name in (f"{size}.{extension}" for size in ("rows", "few") for extension in FORMATS):
        session = open_session(spark, workload.reading(folder / name))
        if name.startswith("rows"):
            _check_count(session, workload, expected)
        contestants[name] = partial(run_query, session, workload.query)
    interleaved(contestants, 1)
    processor_times: dict[str, list[float]] = {name: [] for name in contestants}
    timed = {name: partial(with_processor_time, run, processor_times[name]) for name, run in contestants.items()}
    seconds = interleaved(timed, options.rounds)
    rows = pq.read_metadata(folder / "rows.parquet").num_rows
    record = recorder(f"whole.{workload.kind.lower()}", f"{workload.description}; {rows:,} rows", options)
    yield record(IN_PROCESS, rows / seconds[IN_PROCESS], "rows/s")
    for extension, source in FORMATS.items():
        time = seconds[f"rows.{extension}"]
        yield record(f"{SPARK}, {source}", rows / time, "rows/s", IN_PROCESS, seconds[IN_PROCESS] / time)
    for extension, source in FORMATS.items():
        yield record(f"{SPARK}, {FEW:,} rows of {source}", seconds[f"few.{extension}"], "s")
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


def with_processor_time(run: Callable[[], object], times: list[float]) -> None:
    """Run, and append the processor time of this process and of its descendants."""
    start = processor_time()
    run()
    times.append(processor_time() - start)


def processor_time() -> float:
    """Return the seconds of processor time of this process, the JVM and the workers of Spark (only on Linux).

    Other processes on the machine affect it less than wall-clock time.
    """
    return sum(process.seconds for process in family_of(os.getpid()))


def run_query(session: Session, query: str) -> None:
    """Compute every answer of a query and discard it."""
    consume(session.run(query))


def _check_count(session: Session, workload: Workload, expected: int) -> None:
    count = session.run(workload.query).count()
    if count != expected:
        raise AssertionError(f"{workload.kind}: Spark gives {count:,} answers, one process gives {expected:,}")


# ------------------------------------------------------------ large and clustered files


def _large(options: Options) -> list[Workload]:
    """PATTERN, SEQUENCE and CONSTRAIN over about 20 million rows; quick, over as many as those of the kinds."""
    if options.quick:
        return [make(options) for make in (_pattern, _sequence, _constrain)]
    size = buoys.Options(buoys=250, days=20_000.0)
    return [
        pattern_workload(Spec("MARKOV", 10_000, 202, seed=options.seed)),
        sequence_workload(Load(events=20_000_000), options.seed),
        constrain_workload(size, options.seed),
    ]


def large(options: Options) -> Iterator[Record]:
    """Twenty million rows of Parquet, by Spark and by one process."""
    with spark_session() as spark:
        for workload in _large(options):
            yield from _beside_one_process(spark, "whole.large", workload, ["rows"], options)


def clustered(options: Options) -> Iterator[Record]:
    """The same rows of PATTERN in order of time, and in order of the key, which statistics of the file show."""
    with spark_session() as spark:
        yield from measure_clustered(spark, _large(options)[0], options)


def measure_clustered(spark: SparkSession, workload: Workload, options: Options) -> Iterator[Record]:
    """Yield the records of both orders of the rows of a PATTERN workload."""
    yield from _beside_one_process(spark, "whole.clustered", workload, list(ORDERS), options)


def _beside_one_process(
    spark: SparkSession, part: str, workload: Workload, orders: Sequence[str], options: Options
) -> Iterator[Record]:
    """Yield the rows per second of one process over the rows in the first order, and of Spark in each."""
    files = {order: workload.parquet_file(order) for order in orders}
    first = files[orders[0]]
    job = make_job(workload.reading(first, first.parent), workload.query, workload.relations())
    contestants: dict[str, Callable[[], object]] = {IN_PROCESS: partial(answers_in_process, workload, job, first)}
    expected = answers_in_process(workload, job, first).num_rows
    for order, path in files.items():
        session = open_session(spark, workload.reading(path, path.parent))
        _check_count(session, workload, expected)
        contestants[order] = partial(run_query, session, workload.query)
    spent: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    timed = {name: partial(_with_processor_times, run, spent[name]) for name, run in contestants.items()}
    seconds = interleaved(timed, options.rounds)
    n_rows = pq.read_metadata(first).num_rows
    record = recorder(part, f"{workload.kind}: {workload.description}; {n_rows:,} rows", options)
    yield record(IN_PROCESS, n_rows / seconds[IN_PROCESS], "rows/s")
    for order in orders:
        ratio = seconds[IN_PROCESS] / seconds[order]
        yield record(f"{SPARK}, {order}", n_rows / seconds[order], "rows/s", IN_PROCESS, ratio)
    for name, rounds in spent.items():
        for role in rounds[0]:
            yield record(f"{name}: processor time, {role}", median(times[role] for times in rounds), "s")
    yield from load_records(record)


def _with_processor_times(run: Callable[[], object], spent: list[dict[str, float]]) -> None:
    """Run, and append the processor time of each role."""
    before = seconds_by_role(os.getpid())
    run()
    spent.append({role: seconds - before[role] for role, seconds in seconds_by_role(os.getpid()).items()})


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
PARTS |= {"large": large, "clustered": clustered, "streaming": streaming, "idle": idle, "written": written}
