"""The data of the RELATE benchmark with lost events.

The query is always whether at least k segments of the first entity intersect some segment of the second. As in the
paper, the first and the last event of an entity are never lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from reproductions import simpmatch

from anabranch.columns.times import order_doubles
from anabranch.relate import kernel
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.pairs import Pairing
from anabranch.relate.windows import Windows
from anabranch.simulate import traffic
from anabranch.simulate.segmented import Entities, lose
from benchmarks.engines import make_job
from benchmarks.harness import Options

SOME = 1

GAP = 5.0
"""The mean time between two events of a journey."""

_WORKBOOK = """
    CREATE STREAM intervals KEY (id INTEGER) TIME t DOUBLE MODEL INTERVALS ORDER seq;
    CREATE QUERY q AS
      RELATE AT LEAST {k} a INTERSECTS SOME b FROM intervals AS a, intervals AS b WHERE a.id < b.id;
    """


@dataclass(frozen=True)
class Workload:
    """Pairs of entities, their lost events, and a query.

    Attributes
    ----------
    pairs : (n, 2) int64
        The numbers of the first and of the second entity.
    at_least : int
        How many segments of the first entity must intersect one of the second.
    """

    name: str
    entities: Entities
    pairs: np.ndarray
    at_least: int

    def __str__(self) -> str:
        return f"{self.name}: {len(self.pairs):,} pairs, {self.events:,} events"

    @property
    def events(self) -> int:
        """The point events of all pairs, including lost ones: the unit of throughput."""
        return int(self.entities.counts[self.pairs].sum())

    def with_losses(self, noise: float, seed: int) -> Workload:
        """Return the workload with some events lost; for one seed, more noise loses a superset of the events."""
        return replace(self, entities=lose(self.entities, noise, np.random.default_rng((seed, 1)), keep_ends=True))

    def with_k(self, at_least: int) -> Workload:
        """Return the workload with another k."""
        return replace(self, at_least=at_least)

    def subset(self, chosen: np.ndarray | slice) -> Workload:
        """Return the workload with some of the pairs, and only their entities."""
        used, pairs = np.unique(self.pairs[chosen], return_inverse=True)
        every = self.entities
        events = np.concatenate([np.arange(*every.starts[entity : entity + 2]) for entity in used])
        entities = replace(
            every,
            keys={name: values[used] for name, values in every.keys.items()},
            starts=np.append(0, np.cumsum(every.counts[used])),
            times=every.times[events],
            lost=every.lost[events],
        )
        return replace(self, entities=entities, pairs=pairs.reshape(-1, 2))

    @cached_property
    def truth(self) -> np.ndarray:
        """Whether the query holds for each pair if no event is lost."""
        lossless = replace(self, entities=replace(self.entities, lost=np.zeros(len(self.entities.times), bool)))
        return simpmatch.baselines_of_pairs(lossless.paper_input, False) > 0

    @cached_property
    def paper_input(self) -> simpmatch.PairsInput:
        """The input of the paper's algorithms: a lost event is between the recorded events around it."""
        times, lost = self.entities.times, self.entities.lost
        index = np.arange(len(times))
        before = np.maximum.accumulate(np.where(lost, 0, index))
        after = np.minimum.accumulate(np.where(lost, len(times), index)[::-1])[::-1]
        arrays = np.where(lost, np.nan, times), times[before], times[after]
        query = self.at_least, SOME, simpmatch.INTERSECTS
        return simpmatch.PairsInput(self.pairs, self.entities.starts, *arrays, *query)

    @cached_property
    def windows(self) -> Windows:
        """The input of Anabranch."""
        pairs = self.paper_input
        return Windows(pairs.starts, order_doubles(pairs.lo), order_doubles(pairs.hi))

    @cached_property
    def analysis(self) -> RelateAnalysis:
        """The query, planned by Anabranch."""
        return make_job(_WORKBOOK.format(k=self.at_least), "q").spec.analysis

    def bare_kernel(self) -> Callable[[], np.ndarray]:
        """Return a function that runs the kernel over its prepared input, for all pairs."""
        marked = self.windows.marked()
        classes = Pairing(self.analysis, True, self.windows, self.windows).classes(self.pairs)
        return partial(kernel.relate_pairs, self.pairs, marked, marked, classes, self.at_least - 1, self.at_least, True)


# ------------------------------------------------------------ the data of the paper


def poisson(options: Options, segments: int, at_least: int, seed: int) -> Workload:
    """Return the synthetic data of the paper: pairs whose events follow a Poisson process, on average 5 apart."""
    pairs = 20 if options.quick else 500
    traffic_options = traffic.Options(data="poisson", pairs=pairs, segments=segments)
    entities = traffic.simulate_poisson(traffic_options, np.random.default_rng(seed))
    return Workload(f"{segments} segments, k = {at_least}", entities, np.arange(2 * pairs).reshape(-1, 2), at_least)


def road(options: Options, threshold: float, seed: int) -> Workload:
    """Return all pairs of congested sectors of a motorway; the query is whether they were congested together."""
    traffic_options = traffic.Options(threshold=threshold, sectors=80 if options.quick else 200)
    entities, _ = traffic.simulate_road(traffic_options, np.random.default_rng(seed))
    pairs = np.stack(np.triu_indices(len(entities.counts), 1), axis=1)
    return Workload(f"road, {threshold:g} km/h", entities, pairs, SOME)


def journeys(options: Options, lost: int, seed: int) -> Workload:
    """Return pairs of journeys of which only the ends of a time window are known, as those of buses in the paper.

    All stops in the window are lost, two events each: `lost` events of both journeys together, at least two of each. A
    journey of one stop has two segments. The second journey begins while the first one is under way.
    """
    pairs = 20 if options.quick else 500
    stops = lost // 2
    sizes = np.tile([2 * (stops // 2) + 2, 2 * (stops - stops // 2) + 2], pairs)
    rng = np.random.default_rng((seed, lost))
    starts = np.append(0, np.cumsum(sizes))
    entity = np.repeat(np.arange(2 * pairs), sizes)
    waits = rng.exponential(GAP, len(entity))
    times = np.cumsum(waits)
    times -= times[starts[:-1]][entity]
    lengths = times[starts[1:] - 1]
    begins = np.zeros(2 * pairs)
    begins[1::2] = rng.uniform(0.0, lengths[::2])
    is_end = np.isin(np.arange(len(entity)), [*starts[:-1], *(starts[1:] - 1)])
    times += begins[entity]
    entities = Entities({"id": np.arange(2 * pairs)}, starts, times, ~is_end, (0.0, float(times.max())))
    return Workload(f"{lost} lost events", entities, np.arange(2 * pairs).reshape(-1, 2), 2)


def all_workloads(options: Options, seed: int | None = None) -> list[Workload]:
    """Return the two synthetic workloads, the shorter one, and the two of the road."""
    seed = options.seed if seed is None else seed
    return [
        poisson(options, 20, 14, seed),
        poisson(options, 20, 7, seed),
        poisson(options, 10, 7, seed),
        road(options, 15.0, seed),
        road(options, 20.0, seed),
    ]
