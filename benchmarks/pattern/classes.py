"""PATTERN queries that cannot stream: safe plans as the archive grows, and the speed of the sampler.

The baseline of the sampler follows the definition: it draws one world, key by key, and finds the results of the query
in it (`tests/oracles`). Both estimate the same probabilities, which are compared before anything is timed.
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
from anabranch.pattern.sampling import words_for
from anabranch.transport.job import Job
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock
from benchmarks.engines import make_job, step_to_end
from benchmarks.harness import Options, Record, interleaved, recorder
from benchmarks.workloads import Spec, make_stream, room

#: Some person goes from one room to another; then a door opens.
SAFE = """
    CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL {model};
    CREATE STREAM door KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL INDEPENDENT;
    CREATE QUERY q AS PATTERN at(p, '{first}') THEN at(p, '{second}') THEN door(_, '{second}') {clauses};
    """

#: Somebody enters a room that another person has been in before.
UNSAFE = """
    CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL {model};
    CREATE QUERY q AS PATTERN at(p, l) THEN at(q, l) THEN at(p, '{first}') WHERE p <> q ACCURACY 0.01;
    """


def packets_and_watermark(job: Job, tables: Sequence[pa.Table]) -> tuple[list[tuple[int, bytes]], int]:
    """Return the packets of all streams, all for one bucket, and the watermark after them."""
    routed = [route(table, stream, job, 1) for stream, table in enumerate(tables)]
    packets = [(stream, packet) for stream, result in enumerate(routed) for _, packet in result.packets]
    return packets, Clock(job.layouts).advance([result.newest for result in routed], ended=True)


def run_archive(job: Job, tables: Sequence[pa.Table]) -> pa.Table:
    """Return the answers over an archive, in this process."""
    return step_to_end(job, *packets_and_watermark(job, tables)).answers


# ------------------------------------------------------------ safe plans


def safe(options: Options) -> Iterator[Record]:
    """A safe plan over archives with 2, 4 and 8 times the instants: quadratic where its leaves dominate."""
    instants = (20, 40) if options.quick else (125, 250, 500, 1000)
    for model in ("INDEPENDENT", "MARKOV"):
        runs = {}
        for count in instants:
            spec = Spec(model, 20, count, seed=options.seed)
            doors = Spec("INDEPENDENT", 2, count, seed=options.seed + 1)
            job = make_job(SAFE.format(model=model, first=room(0), second=room(1), clauses=""), "q")
            runs[count] = partial(run_archive, job, [make_stream(spec), make_stream(doors)])
            if set(runs[count]()["method"].to_pylist()) != {"exact"}:
                raise AssertionError("a safe plan must give exact answers")
        seconds = interleaved(runs, max(1, options.rounds // 2))
        record = recorder("classes.safe", f"{model}, 20 keys, 2 doors", options)
        for before, count in zip((None, *instants), instants, strict=False):
            ratio = seconds[count] / seconds[before] if before else None
            yield record(f"{count:,} instants", seconds[count], "s", before and f"{before:,} instants", ratio)


# ------------------------------------------------------------ sampling


def sampling(options: Options) -> Iterator[Record]:
    """Worlds per second, 64 per machine word and one at a time, for a query that is too large for an exact answer."""
    for model in ("INDEPENDENT", "MARKOV"):
        spec = Spec(model, 8 if options.quick else 20, 10 if options.quick else 50, seed=options.seed)
        workbook = UNSAFE.format(model=model, first=room(0))
        job = make_job(workbook, "q")
        table = make_stream(spec)
        answers, worlds = _answers_and_worlds(job, table)
        seconds = interleaved({"words": partial(run_archive, job, [table])}, max(1, options.rounds // 2))["words"]
        baseline = OneWorldSampler(workbook, table, options.seed)
        baseline_worlds = 20 if options.quick else 50
        start = time.perf_counter()
        estimates = baseline.estimate(baseline_worlds)
        baseline_rate = baseline_worlds / (time.perf_counter() - start)
        difference = max(abs(row["probability"] - estimates.get(row["t"], 0.0)) for row in answers.to_pylist())
        if difference > 5 * np.sqrt(0.25 / baseline_worlds):
            raise AssertionError(f"the samplers differ by {difference}")
        record = recorder("classes.sampling", f"{spec}, {table.num_rows:,} rows", options)
        rate = worlds / seconds
        yield record("worlds drawn", worlds, "worlds")
        yield record("one world at a time", baseline_rate, "worlds/s")
        yield record("64 worlds per word", rate, "worlds/s", "one world at a time", rate / baseline_rate)
        yield record("table rows in worlds", rate * table.num_rows, "rows/s")


def _answers_and_worlds(job: Job, table: pa.Table) -> tuple[pa.Table, int]:
    """Return the answers of a run, and how many worlds were drawn for them."""
    operator = job.operator()
    if not isinstance(operator, ArchiveOperator):
        raise TypeError("an automaton answers the query, so it is not sampled")
    answers = operator.step(*packets_and_watermark(job, [table]), ended=True).answers
    query = job.spec.analysis.query
    is_sampled = "sampling" in answers["method"].to_pylist()
    return answers, 64 * words_for(query.accuracy, query.confidence) if is_sampled else 0


class OneWorldSampler:
    """A sampler by the definition: it draws one world at a time and evaluates the query in it."""

    def __init__(self, workbook: str, table: pa.Table, seed: int) -> None:
        self._query = bind_query(workbook, "q")
        (self._stream,) = self._query.streams
        self._rng = np.random.default_rng(seed)
        self._keys: dict[object, dict[int, list[dict]]] = {}
        for row in table.to_pylist():
            self._keys.setdefault(row["person"], {}).setdefault(row["t"], []).append(row)

    def estimate(self, worlds: int) -> dict[int, float]:
        """Return the share of worlds in which the query is true, by time."""
        hits: dict[int, int] = {}
        for _ in range(worlds):
            for t in {result.t for result in results(self._query, self._world(), Matcher({}))}:
                hits[t] = hits.get(t, 0) + 1
        return {t: count / worlds for t, count in hits.items()}

    def _world(self) -> list[WorldEvent]:
        events = []
        for key, instants in self._keys.items():
            value = None
            for t, rows in instants.items():
                values, masses = zip(*alternatives(self._stream, rows, value), strict=True)
                value = values[self._rng.choice(len(values), p=np.array(masses) / sum(masses))]
                if value is not None:
                    events.append(WorldEvent("at", (key, *value), t))
        return events


PARTS = {"safe": safe, "sampling": sampling}
