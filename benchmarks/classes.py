"""PATTERN queries that cannot stream: safe plans as the archive grows, and sampled worlds against worlds one at a time.

The plain sampler is what a definition gives: draw a world key by key, then find the query's results in it
(`tests/oracles`). Both give estimates of the same probabilities, which are compared before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from tests.oracles.pattern import Event as WorldEvent
from tests.oracles.pattern import Matcher, alternatives, bind_query, results

from anabranch.pattern.archive import ArchiveOperator
from anabranch.transport.job import Job
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock
from benchmarks.engines import make_job
from benchmarks.harness import Options, Record, interleaved
from benchmarks.workloads import Spec, make_stream, room

#: Some person goes from a room to another; then a door opens.
SAFE = """
    CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL {model};
    CREATE STREAM door KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL INDEPENDENT;
    CREATE QUERY q AS PATTERN at(p, '{first}') THEN at(p, '{second}') THEN door(_, '{second}');
    """

#: Somebody enters a room that another has been in before.
UNSAFE = """
    CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL {model};
    CREATE QUERY q AS PATTERN at(p, l) THEN at(q, l) THEN at(p, '{first}') WHERE p <> q ACCURACY 0.01;
    """


def packets_of(job: Job, tables: Sequence[pa.Table]) -> tuple[list[tuple[int, bytes]], int]:
    """The packets of all streams, all to one bucket, and the watermark behind them."""
    routed = [route(table, stream, job, 1) for stream, table in enumerate(tables)]
    packets = [(stream, blob) for stream, each in enumerate(routed) for _, blob in each.packets]
    return packets, Clock(job.layouts).advance([each.newest for each in routed], ended=True)


def run_archive(job: Job, tables: Sequence[pa.Table]) -> pa.Table:
    """The answers over an archive, in this process."""
    return job.operator().step(*packets_of(job, tables), ended=True).answers


# ------------------------------------------------------------ safe plans


def safe(options: Options) -> Iterator[Record]:
    """A safe plan over archives of twice, four and eight times the instants: quadratic where its leaves dominate."""
    instants = (20, 40) if options.quick else (125, 250, 500, 1000)
    for model in ("INDEPENDENT", "MARKOV"):
        runs = {}
        for count in instants:
            spec = Spec(model, 20, count, seed=options.seed)
            doors = Spec("INDEPENDENT", 2, count, seed=options.seed + 1)
            job = make_job(SAFE.format(model=model, first=room(0), second=room(1)), "q", {})
            runs[count] = partial(run_archive, job, [make_stream(spec), make_stream(doors)])
            if set(runs[count]()["method"].to_pylist()) != {"exact"}:
                raise AssertionError("a safe plan gives exact answers")
        seconds = interleaved(runs, max(1, options.rounds // 2))
        record = partial(Record, "classes.safe", f"{model}, 20 keys, 2 doors", seed=options.seed)
        for before, count in zip((None, *instants), instants, strict=False):
            ratio = seconds[count] / seconds[before] if before else None
            yield record(f"{count:,} instants", seconds[count], "s", before and f"{before:,} instants", ratio)


# ------------------------------------------------------------ sampling


def sampling(options: Options) -> Iterator[Record]:
    """Worlds a second, 64 to a word and one at a time, for a query that is too large to be exact."""
    for model in ("INDEPENDENT", "MARKOV"):
        spec = Spec(model, 8 if options.quick else 20, 10 if options.quick else 50, seed=options.seed)
        workbook = UNSAFE.format(model=model, first=room(0))
        job = make_job(workbook, "q", {})
        table = make_stream(spec)
        answers, worlds = _counted(job, table)
        seconds = interleaved({"words": partial(run_archive, job, [table])}, max(1, options.rounds // 2))["words"]
        plain = PlainSampler(workbook, table, options.seed)
        few = 20 if options.quick else 50
        start = time.perf_counter()
        shares = plain.estimate(few)
        plain_rate = few / (time.perf_counter() - start)
        apart = max(abs(row["probability"] - shares.get(row["t"], 0.0)) for row in answers.to_pylist())
        if apart > 5 * np.sqrt(0.25 / few):
            raise AssertionError(f"the samplers differ by {apart}")
        record = partial(Record, "classes.sampling", f"{spec}, {table.num_rows:,} rows", seed=spec.seed)
        yield record("worlds drawn", worlds, "worlds")
        yield record("one world at a time", plain_rate, "worlds/s")
        yield record(
            "64 worlds to a word", worlds / seconds, "worlds/s", "one world at a time", worlds / seconds / plain_rate
        )
        yield record("table rows in worlds", worlds * table.num_rows / seconds, "rows/s")


def _counted(job: Job, table: pa.Table) -> tuple[pa.Table, int]:
    """The answers of a run, and how many worlds were drawn for them."""
    operator = job.operator()
    if not isinstance(operator, ArchiveOperator):
        raise TypeError("the query can stream")
    answers = operator.step(*packets_of(job, [table]), ended=True).answers
    return answers, operator.worlds_drawn


class PlainSampler:
    """One world after the other, as the definitions have it."""

    def __init__(self, workbook: str, table: pa.Table, seed: int) -> None:
        self._query = bind_query(workbook, "q")
        (self._stream,) = self._query.streams
        self._draw = np.random.default_rng(seed)
        self._keys: dict[object, dict[int, list[dict]]] = {}
        for row in table.to_pylist():
            self._keys.setdefault(row["person"], {}).setdefault(row["t"], []).append(row)

    def estimate(self, worlds: int) -> dict[int, float]:
        """The share of worlds in which the query is true, by time."""
        hits: dict[int, int] = {}
        for _ in range(worlds):
            for t in {result.t for result in results(self._query.goals, self._world(), Matcher({}))}:
                hits[t] = hits.get(t, 0) + 1
        return {t: count / worlds for t, count in hits.items()}

    def _world(self) -> list[WorldEvent]:
        events = []
        for key, instants in self._keys.items():
            value = None
            for t, rows in instants.items():
                values, masses = zip(*alternatives(self._stream, rows, value), strict=True)
                value = values[self._draw.choice(len(values), p=np.array(masses) / sum(masses))]
                if value is not None:
                    events.append(WorldEvent("at", (key, *value), t))
        return events


PARTS = {"safe": safe, "sampling": sampling}
