"""Queries over answers: what two levels cost compared with their parts, and how bounds grow with overlapping lineages.

The parts of a query over answers are the query that is read, alone, and the other query over the same rows from a file.
Both are run over files, by Spark and in this process. Processor time is measured, because other processes affect it
less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from anabranch.language.parser import parse
from anabranch.planning.in_process import answers_in_process
from anabranch.planning.layouts import layouts_for
from anabranch.planning.planner import Planner
from anabranch.planning.prepared import with_job
from anabranch.session import Session
from anabranch.transport.job import Job, JobContext
from benchmarks.engines import IN_PROCESS, SPARK, consume, one_thread, spark_session
from benchmarks.harness import Options, Record, interleaved, load_records, recorder
from benchmarks.whole import processor_time
from benchmarks.workloads import write_parquet, written_once

TARGET = 1.3
"""A query over answers should cost at most this many times the sum of its parts."""

STREAMS = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM reads KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER;
CREATE STREAM cars KEY (k INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 5 PERIOD 10;
CREATE STREAM jams KEY (k INTEGER, road INTEGER) TIME t INTEGER MODEL INTERVALS ORDER n HORIZON [0, 1000000];
"""

TWICE = "PATTERN r(x, 'a') THEN r(x, 'b') GROUP BY x"
AGAIN = "PATTERN events(x) THEN events(x) GROUP BY x"
NEAR = "MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 8 AND a.k < b.k SEMANTICS MAY"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two queries: `q` reads the stream `events` of the answers of `inner`.

    Attributes
    ----------
    columns : the clauses of the stream of answers
    streams : declarations of further streams
    """

    name: str
    inner: str
    outer: str
    columns: str = ""
    streams: str = ""

    def workbook(self) -> str:
        """Return the workbook; all types follow from it."""
        return (
            f"{STREAMS}CREATE QUERY inner AS {self.inner};\nCREATE STREAM events {self.columns} FROM QUERY inner;\n"
            f"{self.streams}CREATE QUERY q AS {self.outer};\n"
        )


PAIRS = (
    Pair("PATTERN, PATTERN; independent", "PATTERN r(x, 'a') GROUP BY x", AGAIN),
    Pair("PATTERN, PATTERN; one automaton", TWICE, AGAIN),
    Pair("PATTERN, PATTERN; bounds", f"{TWICE} THRESHOLD 0.2", AGAIN),
    Pair(
        "PATTERN, SEQUENCE; bounds", f"{TWICE} THRESHOLD 0.4",
        "SEQUENCE (u, v) FROM events AS u, events AS v WHERE u.x = v.x WITHIN 3",
    ),
    Pair(
        "PATTERN, CONSTRAIN; bounds", f"{TWICE} THRESHOLD 0.4",
        "CONSTRAIN u, v FROM events WHERE u.x = v.x AND v.t - u.t IN [1, 3]",
    ),
    Pair(
        "SEQUENCE, PATTERN",
        "SEQUENCE (x, y, z) FROM reads WHERE x.v = 'a' AND y.v = 'b' AND z.v = 'c' AND x.k = y.k AND y.k = z.k "
        "MISS y 0.2 DELAY y UNIFORM(0, 10) WITHIN 10 EMIT BEST",
        AGAIN, "KEY (x.k) TIME t",
    ),
    Pair(
        "CONSTRAIN, SEQUENCE",
        "CONSTRAIN u, v FROM reads WHERE u.v = 'a' AND v.v = 'b' AND u.k = v.k AND v.t - u.t IN [1, 5]",
        "SEQUENCE (e, !z) FROM events AS e, reads AS z WHERE e.`u.k` = z.k AND z.v = 'c' WITHIN 10 ENDING OPEN",
        "KEY (u.k) TIME t",
    ),
    Pair(
        "RELATE, SEQUENCE",
        "RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b WHERE a.road = b.road AND a.k < b.k",
        "SEQUENCE (e, f) FROM events AS e, events AS f WHERE e.`a.k` = f.`b.k` WITHIN 100",
        "KEY (a.k, b.k) VALUE (b.end) TIME a.end",
    ),
    Pair(
        "MONITOR, RELATE", NEAR,
        "RELATE SOME m PRECEDES SOME n FROM meetings AS m, meetings AS n WHERE m.`a.k` = n.`a.k`",
        "KEY (a.k, b.k) VALUE (probability) TIME valid_from MODEL CERTAIN",
        "CREATE STREAM meetings KEY (`a.k`, `b.k`) TIME valid_from INTERVALS FROM events WHILE probability >= 0.5 "
        "SILENCE 15 HORIZON [0, 1000000];\n",
    ),
)  # fmt: skip


# ------------------------------------------------------------ rows


def _keys(options: Options) -> int:
    return 50 if options.quick else 2_000


def tables(options: Options) -> dict[str, pa.Table]:
    """Return the rows of each stream."""
    rng, keys, instants = np.random.default_rng(options.seed), _keys(options), 40
    key, t = (part.reshape(-1) for part in np.meshgrid(np.arange(keys), np.arange(instants), indexing="ij"))
    share = rng.uniform(0.1, 0.9, len(key))
    values = pa.DictionaryArray.from_arrays(rng.integers(0, 4, len(key)).astype(np.int32), list("abcd")).cast(
        pa.string()
    )
    both = {"k": np.repeat(key, 2), "t": np.repeat(t, 2), "v": np.tile(["a", "b"], len(key))}
    opened = np.sort(rng.integers(0, 1_000, (keys, 10)), axis=1)
    return {
        "r": pa.table(both | {"p": np.stack([share, 1 - share], axis=1).reshape(-1)}),
        "reads": pa.table({"k": key, "t": t, "v": values}),
        "cars": pa.table({"k": key, "t": 10.0 * t, "x": 10.0 * key + rng.normal(0, 4, len(key)), "x_rate": 0.0 * t}),
        "jams": pa.table(
            {
                "k": np.repeat(np.arange(keys), 10),
                "road": np.repeat(np.arange(keys) // 5, 10),
                "n": np.tile(np.arange(1, 11), keys),
                "t": pa.array(opened.reshape(-1), mask=rng.random(10 * keys) < 0.2),
            }
        ),
    }


def folder_of(options: Options) -> Path:
    """Return a folder with a Parquet file for each stream."""

    def write(folder: Path) -> None:
        for name, table in tables(options).items():
            write_parquet(table, folder / f"{name}.parquet")

    return written_once(f"composed-{_keys(options)}-seed{options.seed}", write)


# ------------------------------------------------------------ two levels and their parts


@dataclass(frozen=True, slots=True)
class Runs:
    """Three runs of a pair: both levels, and each level alone."""

    composed: Callable[[], object]
    inner: Callable[[], object]
    outer: Callable[[], object]

    def records(
        self, record: Callable[..., Record], engine: str, options: Options, clock: Callable[[], float]
    ) -> Iterator[Record]:
        """Yield the processor time of each run, and that of both levels relative to the sum of the parts."""
        runs = {"composed": self.composed, "inner": self.inner, "outer": self.outer}
        seconds = interleaved(runs, options.rounds, clock, warm_up=True)
        parts = seconds["inner"] + seconds["outer"]
        yield record(f"{engine}: the query that is read", seconds["inner"], "CPU s")
        yield record(f"{engine}: the other query, over a file of its answers", seconds["outer"], "CPU s")
        name = f"{engine}: sum of the parts"
        yield record(name, parts, "CPU s")
        yield record(f"{engine}: both levels", seconds["composed"], "CPU s", name, seconds["composed"] / parts)


def on_spark(spark: SparkSession, pair: Pair, folder: Path, answers: Path) -> Runs:
    """Return the runs of a pair by Spark; writes the rows of the stream of answers to `answers`."""
    session, alone = (_session(spark, pair, folder) for _ in range(2))
    session.rows("events").write.mode("overwrite").parquet(str(answers))
    alone.bind("events", answers)
    return Runs(*(partial(_consume, each, name) for each, name in ((session, "q"), (session, "inner"), (alone, "q"))))


def _session(spark: SparkSession, pair: Pair, folder: Path) -> Session:
    session = Session(spark)
    session.execute(pair.workbook())
    for name in ("r", "reads", "cars", "jams"):
        session.bind(name, folder / f"{name}.parquet")
    return session


def _consume(session: Session, name: str) -> None:
    consume(session.run(name))


def in_process(pair: Pair, folder: Path) -> Runs:
    """Return the runs of a pair in this process, without Spark."""
    planner, alone = Planner(), Planner()
    for each in (planner, alone):
        findings = each.declare(parse(pair.workbook()))
        if findings:
            raise ValueError(str(findings))
    alone.take_input(alone.catalog.require_stream("events"))
    inner, outer, outer_alone = _job(planner, "inner"), _job(planner, "q"), _job(alone, "q")
    read = {layout.name: pq.read_table(folder / f"{layout.name}.parquet") for layout in _read(inner, outer)}

    def ask(job: Job, rows: Mapping[str, pa.Table]) -> pa.Table:
        given = [rows[layout.name].select(layout.source_columns) for layout in job.layouts]
        with one_thread():
            return answers_in_process(job, given)[0]

    rows = ask(inner, read).flatten()
    if outer.layouts[0].name != "events":  # One automaton reads what the inner query reads.
        return Runs(partial(ask, outer, read), partial(ask, inner, read), partial(ask, outer_alone, {"events": rows}))
    return Runs(
        lambda: ask(outer, read | {"events": ask(inner, read).flatten()}),
        partial(ask, inner, read),
        partial(ask, outer_alone, read | {"events": rows}),
    )


def _job(planner: Planner, name: str) -> Job:
    prepared = planner.prepare(planner.catalog.require_query(name))
    context = JobContext(layouts_for(prepared.bound.streams), {}, "00" * 32, folders=(".",), ends=name == "inner")
    return with_job([prepared], context)[1]


def _read(*jobs: Job) -> Iterator:
    return (layout for job in jobs for layout in job.layouts if layout.name != "events")


def two_levels(options: Options) -> Iterator[Record]:
    """Yield what each pair of queries costs, compared with its parts."""
    folder = folder_of(options)
    with spark_session() as spark:
        for pair in PAIRS:
            yield from measure(spark, pair, folder, options)


def measure(spark: SparkSession, pair: Pair, folder: Path, options: Options) -> Iterator[Record]:
    """Yield the records of one pair."""
    record = recorder("composed.two_levels", pair.name, options)
    answers = folder / f"answers-{PAIRS.index(pair)}.parquet"
    runs = on_spark(spark, pair, folder, answers)
    yield record("rows of the stream of answers", pq.read_table(answers).num_rows, "rows")
    yield from runs.records(record, SPARK, options, processor_time)
    if not pair.streams:  # Segments are made before the operators of RELATE.
        yield from in_process(pair, folder).records(record, IN_PROCESS, options, time.process_time)
    yield from load_records(record)


# ------------------------------------------------------------ growth


def growth(options: Options) -> Iterator[Record]:
    """Yield the processor time of bounds in this process: by instants, overlapping answers and goals."""
    instants = (250, 500, 1_000) if options.quick else (5_000, 10_000, 20_000)
    for kind, (query_of, parts) in GROWING.items():
        record = recorder("composed.growth", kind, options)
        by_instants = {f"{n:,}": (n, query_of(2)) for n in instants}
        yield from _growing(record, "instants", by_instants, options)
        yield from _growing(record, parts, {f"{n}": (instants[0], query_of(n)) for n in (2, 3, 4)}, options)


def _pattern(goals: int) -> str:
    return f"PATTERN {' THEN '.join(['events(x)'] * goals)} GROUP BY x"


def _constrain(events: int) -> str:
    names = [f"u{number}" for number in range(events)]
    near = " AND ".join(f"{b}.t - {a}.t IN [1, 2]" for a, b in zip(names, names[1:], strict=False))
    return f"CONSTRAIN {', '.join(names)} FROM events WHERE {near}"


GROWING: dict[str, tuple[Callable[[int], str], str]] = {
    "PATTERN with bounds": (_pattern, "goals"),
    "CONSTRAIN with bounds": (_constrain, "events"),
}


def _growing(
    record: Callable[..., Record], what: str, sizes: Mapping[str, tuple[int, str]], options: Options
) -> Iterator[Record]:
    """Yield the time of each size, and its ratio to that of the first."""
    runs = {f"{size} {what}": _bounded_run(n, query) for size, (n, query) in sizes.items()}
    seconds = interleaved(runs, options.rounds, time.process_time, warm_up=True)
    first, *others = seconds
    yield record(first, seconds[first], "CPU s")
    for name in others:
        yield record(name, seconds[name], "CPU s", first, seconds[name] / seconds[first])


def _bounded_run(instants: int, outer: str) -> Callable[[], object]:
    """Return a run over the answers of one key, of which any two overlap: each depends on all earlier rows."""
    pair = Pair("", f"{TWICE} THRESHOLD 0.01", outer)
    planner = Planner()
    planner.declare(parse(pair.workbook()))
    job = _job(planner, "q")
    t = np.arange(instants)
    rows = pa.table({"x": np.zeros(instants, np.int64), "t": t, "probability": 0.3 + 0.4 * (t % 2)})
    given = [rows.select(layout.source_columns) for layout in job.layouts]
    return lambda: answers_in_process(job, given)


PARTS = {"two_levels": two_levels, "growth": growth}
