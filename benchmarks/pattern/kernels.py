"""The PATTERN kernels alone, over prepared arrays: rows per second, and growth with the size of the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from anabranch.pattern.automaton import Automaton
from anabranch.pattern.weights import Batch, Weights, weights_for
from anabranch.transport.job import Job
from benchmarks.engines import largest_difference, make_job, run_in_process
from benchmarks.growth import curve
from benchmarks.harness import Options, Record, interleaved, recorder
from benchmarks.pattern.queries import QUERIES, archive_specs, workbook
from benchmarks.workloads import Spec, archive, make_relations


@dataclass(frozen=True, slots=True)
class Prepared:
    """The input of a kernel as an operator passes it, so that the kernel can be run again."""

    job: Job
    batch: Batch
    automaton: Automaton

    def run(self) -> tuple[np.ndarray, ...]:
        """Run the kernel from the start; return the chain, the instant and the probability of each answer."""
        weights = _weights(self.job)
        weights.grow(len(self.batch.starts) - 1, len(self.automaton.states))
        return weights.step(self.batch, self.automaton)

    def in_order(self) -> Prepared:
        """Return the same rows in the order in which the kernel visits them."""
        rows = self.batch.rows
        names = ("t", "key", "model", "prev", "value", "p", "letter")
        columns = {name: getattr(self.batch, name)[rows] for name in names}
        return replace(self, batch=replace(self.batch, rows=np.arange(len(rows)), **columns))


def _weights(job: Job) -> Weights:
    return weights_for(job.spec.analysis.single, job.spec.analysis.markov)


def prepare(spec: Spec, query: str = "three", goals: int = 3) -> Prepared:
    """Run a query over an archive and return the input of its kernel."""
    folder = archive(spec)
    job = make_job(workbook(folder, spec, goals=goals), query, make_relations(spec))
    kind = type(_weights(job))
    with patch.object(kind, "step", autospec=True, side_effect=kind.step) as step:
        run_in_process(job, folder / "stream.parquet")
    _, batch, automaton = step.call_args.args
    return Prepared(job, batch, automaton)


def kernel(options: Options) -> Iterator[Record]:
    """Table rows per second on one core: archived (MARKOV), real-time (INDEPENDENT), and deterministic (CERTAIN)."""
    for query, title in QUERIES.items():
        arrival = {spec: prepare(spec, query) for spec in archive_specs(options)}
        ordered = {spec: prepared.in_order() for spec, prepared in arrival.items()}
        for spec in arrival:
            _check_same(arrival[spec].run(), ordered[spec].run())
        seconds = interleaved({spec: prepared.run for spec, prepared in ordered.items()}, options.rounds)
        arrival_seconds = interleaved({spec: prepared.run for spec, prepared in arrival.items()}, options.rounds)
        certain = next(spec for spec in arrival if spec.model == "CERTAIN")
        instants = {spec: spec.keys * spec.instants / seconds[spec] for spec in arrival}
        rows = {spec: len(prepared.batch.rows) / seconds[spec] for spec, prepared in ordered.items()}
        for spec in arrival:
            record = recorder("pattern.kernel", f"{title}: {spec}", options)
            slowdown = seconds[spec] / arrival_seconds[spec]
            yield record("one core", rows[spec], "rows/s", "CERTAIN", rows[spec] / rows[certain])
            yield record("one core", instants[spec], "(key, t)/s", "CERTAIN", instants[spec] / instants[certain])
            yield record("one core, rows as they arrive", rows[spec] * slowdown, "rows/s", "rows in order", slowdown)


def _check_same(actual: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> None:
    """Raise AssertionError unless two runs of a kernel give the same answers."""
    largest_difference(*(pa.table([t, chain, p], names=["t", "chain", "p"]) for chain, t, p in (actual, expected)))


def growth(options: Options) -> Iterator[Record]:
    """The time of the kernel when one dimension grows and the others stay the same."""
    base = Spec("MARKOV", 50 if options.quick else 500, 50, seed=options.seed)
    sizes = {
        "keys": {base.keys * factor: replace(base, keys=base.keys * factor) for factor in (1, 2, 4, 8)},
        "instants": {base.instants * factor: replace(base, instants=base.instants * factor) for factor in (1, 2, 4, 8)},
        "values": {count: replace(base, values=count) for count in (20, 40, 80, 160)},
        "alternatives": {count: replace(base, alternatives=count) for count in (3, 5, 10, 15)},
    }
    record = recorder("pattern.growth", f"three goals: {base}", options)
    for dimension, specs in sizes.items():
        yield from curve(
            record, dimension, {size: prepare(spec).in_order().run for size, spec in specs.items()}, options.rounds
        )
    by_goals = {goals: prepare(base, goals=goals).in_order().run for goals in (2, 3, 4, 5, 6)}
    yield from curve(record, "goals", by_goals, options.rounds)
