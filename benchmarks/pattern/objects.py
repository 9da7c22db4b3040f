"""PATTERN by the number of objects, as in figures 12, 13 and 14a of the Lahar paper.

Objects walk through rooms for 60 instants. *Q1* is a selection, *Q2* a sequence; both are asked for each object. In
real time an instant has a distribution of its own (INDEPENDENT), and the most likely world has the most probable room
of each instant. Over an archive, distributions depend on the instant before (MARKOV), and the most likely world has the
most probable path of each object (Viterbi). Making that world is not timed. As in the paper, sampling has an accuracy
of 0.1 with confidence 0.9. Its answers must be near the exact ones before anything is timed.

An (object, t) is an instant of an object, which has several rows: the *effective objects* of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.pattern.sampling import words_for
from anabranch.transport.job import Job
from benchmarks.engines import make_job
from benchmarks.harness import Options, Record, Recorder, processor_seconds, recorder
from benchmarks.pattern.classes import SAFE, run_archive
from benchmarks.workloads import Spec, make_stream, room

OBJECTS = (1, 10, 25, 50, 100)
INSTANTS = 60

ACCURACY, CONFIDENCE = 0.1, 0.9

EXACT, MOST_LIKELY, SAMPLED, SAFE_PLAN = "exact", "most likely world", "sampling", "safe plan"

STREAM = "CREATE STREAM at KEY (person STRING) VALUE (room STRING) TIME t INTEGER MODEL {model};"
QUERIES = {
    "Q1": f"PATTERN at(p, '{room(0)}') GROUP BY p",
    "Q2": f"PATTERN at(p, '{room(0)}') THEN at(p, '{room(3)}') GROUP BY p",
}
SAMPLING = f"METHOD SAMPLING ACCURACY {ACCURACY} CONFIDENCE {CONFIDENCE}"

Run = Callable[[], pa.Table]
Key = tuple[object, ...]


def real_time(options: Options) -> Iterator[Record]:
    """Exact answers, those of the most probable room of each instant, and sampling (figure 12)."""
    yield from _by_objects("objects.realtime", "INDEPENDENT", most_likely_rooms, options)


def archived(options: Options) -> Iterator[Record]:
    """Exact answers, those of the most probable path, and sampling (figure 13)."""
    yield from _by_objects("objects.archived", "MARKOV", most_likely_paths, options)


def safe_plans(options: Options) -> Iterator[Record]:
    """A safe plan and sampling for a query that is not extended regular (figure 14a)."""
    for model in ("INDEPENDENT", "MARKOV"):
        workbook = partial(SAFE.format, model=model, first=room(0), second=room(3))
        record = recorder("objects.safe", f"{model}, {_instants(options)} instants, 2 doors", options)
        for count in _objects(options):
            spec = Spec(model, count, _instants(options), seed=options.seed)
            doors = Spec("INDEPENDENT", 2, spec.instants, seed=options.seed + 1)
            tables = [make_stream(spec), make_stream(doors)]
            clauses = {SAFE_PLAN: "", SAMPLED: SAMPLING}
            jobs = {name: make_job(workbook(clauses=text), "q") for name, text in clauses.items()}
            runs = {name: partial(run_archive, job, tables) for name, job in jobs.items()}
            n_rows = dict.fromkeys(runs, sum(table.num_rows for table in tables))
            yield from _compared(record, spec, runs, n_rows, options)


def _by_objects(
    benchmark: str, model: str, most_likely: Callable[[Spec, pa.Table], pa.Table], options: Options
) -> Iterator[Record]:
    for name, query in QUERIES.items():
        record = recorder(benchmark, f"{name}, {model}, {_instants(options)} instants", options)
        for count in _objects(options):
            spec = Spec(model, count, _instants(options), seed=options.seed)
            rows = make_stream(spec)
            tables = {EXACT: rows, MOST_LIKELY: most_likely(spec, rows), SAMPLED: rows}
            jobs = {
                EXACT: job_of(model, query),
                MOST_LIKELY: job_of("CERTAIN", query),
                SAMPLED: job_of(model, f"{query} {SAMPLING}"),
            }
            runs = {name: partial(run_archive, job, [tables[name]]) for name, job in jobs.items()}
            n_rows = {name: table.num_rows for name, table in tables.items()}
            yield from _compared(record, spec, runs, n_rows, options)


def _objects(options: Options) -> tuple[int, ...]:
    return (1, 5) if options.quick else OBJECTS


def _instants(options: Options) -> int:
    return 20 if options.quick else INSTANTS


def job_of(model: str, query: str) -> Job:
    """Return the job of a query over a stream of this model."""
    return make_job(f"{STREAM.format(model=model)} CREATE QUERY q AS {query};", "q")


def _compared(
    record: Recorder, spec: Spec, runs: Mapping[str, Run], n_rows: Mapping[str, int], options: Options
) -> Iterator[Record]:
    """Yield the rates of each way to answer, and their ratios to the first, which is exact."""
    exact, *_ = runs
    answers = {name: run() for name, run in runs.items()}
    difference = largest_difference(answers[exact], answers[SAMPLED])
    if difference > tolerance():
        raise AssertionError(f"sampled probabilities differ from exact ones by {difference}")
    seconds = processor_seconds(runs, options.rounds)
    for unit, counts in (("(object, t)/s", dict.fromkeys(runs, spec.keys * spec.instants)), ("rows/s", n_rows)):
        rates = {name: counts[name] / run_seconds for name, run_seconds in seconds.items()}
        for name, rate in rates.items():
            baseline = (None, None) if name == exact else (exact, rate / rates[exact])
            yield record(f"{spec.keys} objects: {name}", rate, unit, *baseline)
    yield record(f"{spec.keys} objects: largest error of {SAMPLED}", difference, "probability")


# ------------------------------------------------------------ answers


def largest_difference(one: pa.Table, other: pa.Table) -> float:
    """Return the largest difference between two probabilities of the same answer; an answer that is missing has 0."""
    probabilities = [_by_answer(answers) for answers in (one, other)]
    both = probabilities[0].keys() | probabilities[1].keys()
    return max((abs(probabilities[0].get(key, 0.0) - probabilities[1].get(key, 0.0)) for key in both), default=0.0)


def _by_answer(answers: pa.Table) -> dict[Key, float]:
    names = [name for name in answers.column_names if name in ("t", "p")]
    keys = zip(*(answers[name].to_pylist() for name in names), strict=True)
    return dict(zip(keys, answers["probability"].to_pylist(), strict=True))


def tolerance() -> float:
    """Return five standard deviations of a sampled probability of one half."""
    return float(5 * np.sqrt(0.25 / (64 * words_for(ACCURACY, CONFIDENCE))))


# ------------------------------------------------------------ most likely worlds


def most_likely_rooms(spec: Spec, table: pa.Table) -> pa.Table:
    """Return the most probable room of each object at each instant."""
    p = table["p"].to_numpy().reshape(-1, spec.alternatives)
    chosen = p.argmax(axis=1) + np.arange(len(p)) * spec.alternatives
    return table.take(pa.array(chosen)).select(["person", "t", "room"])


def most_likely_paths(spec: Spec, table: pa.Table) -> pa.Table:
    """Return the most probable path of each object (Viterbi)."""
    rows: dict[str, list[dict]] = {}
    for row in table.to_pylist():
        rows.setdefault(row["person"], []).append(row)
    steps = [
        {"person": person, "t": t, "room": place} for person in rows for t, place in enumerate(best_path(rows[person]))
    ]
    order = sorted(steps, key=lambda step: (step["t"], step["person"]))
    return pa.Table.from_pylist(order, table.select(["person", "t", "room"]).schema)


def best_path(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the most probable path of one object, given its transition rows in order of time."""
    best: dict[str | None, float] = {None: 0.0}
    origins: list[dict[str, str | None]] = []
    for _, instant in groupby(rows, key=lambda row: row["t"]):
        reached: dict[str | None, float] = {}
        origin: dict[str, str | None] = {}
        for row in instant:
            before, place = row["prev_room"], row["room"]
            weight = best.get(before, -np.inf) + np.log(max(row["p"], 1e-300))
            if weight > reached.get(place, -np.inf):
                reached[place], origin[place] = weight, before
        origins.append(origin)
        best = reached
    place = max(best, key=best.__getitem__)
    path = []
    for origin in reversed(origins):
        path.append(str(place))
        place = origin[str(place)]
    return path[::-1]


PARTS = {"realtime": real_time, "archived": archived, "safe": safe_plans}
