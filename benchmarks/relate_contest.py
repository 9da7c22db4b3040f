"""The data of the RELATE benchmark with events lost, and those who are asked about them, ours and the paper's.

The query is always whether at least k segments of the first entity meet some segment of the second. As in the paper
the first and the last event of an entity are never lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from anabranch.columns.times import order_doubles
from anabranch.relate import kernel
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.pairs import Windows, class_tables, relate
from anabranch.relate.query import COMPOSITE, SIMPLE
from anabranch.simulate import traffic
from anabranch.simulate.segmented import Entities, lose
from benchmarks import relate_paper
from benchmarks.engines import make_job
from benchmarks.harness import Options

INTERSECTS = sum(1 << SIMPLE.index(relation) for relation in COMPOSITE["INTERSECTS"])
SOME = 1

OURS, TREE, SURE, IGNORE, STATIC = "ours", "tree", "sure tree", "BaselineIgnore", "BaselineStatic"
"""A tree that is *sure* also stops where the query holds whatever follows."""

DELTAS = (30, 60)
SASE = {delta: f"SASE+ ({delta})" for delta in DELTAS}

_QUESTION = """
    CREATE STREAM intervals KEY (id INTEGER) TIME t DOUBLE MODEL INTERVALS ORDER seq;
    CREATE QUERY q AS
      RELATE AT LEAST {k} a INTERSECTS SOME b FROM intervals AS a, intervals AS b WHERE a.id < b.id;
    """


@dataclass(frozen=True)
class Contest:
    """Pairs of entities, what of them was lost, and a query.

    Attributes
    ----------
    pairs : (n, 2) int64
        The numbers of the first and of the second entity.
    at_least : int
        How many segments of the first must meet one of the second.
    """

    name: str
    entities: Entities
    pairs: np.ndarray
    at_least: int

    @property
    def events(self) -> int:
        """The point events of all pairs, with the lost ones: what throughput is counted in."""
        return int(self.entities.counts[self.pairs].sum())

    def losing(self, noise: float, seed: int) -> Contest:
        """The same with some events lost; of one seed, more noise loses those of less noise, and others."""
        return replace(self, entities=lose(self.entities, noise, np.random.default_rng((seed, 1)), keep_ends=True))

    def asking(self, at_least: int) -> Contest:
        """The same with another k."""
        return replace(self, at_least=at_least)

    def only(self, chosen: np.ndarray | slice) -> Contest:
        """Some of the pairs, and the entities in them."""
        used, pairs = np.unique(self.pairs[chosen], return_inverse=True)
        whole = self.entities
        events = np.concatenate([np.arange(*whole.starts[entity : entity + 2]) for entity in used])
        entities = replace(
            whole,
            keys={name: values[used] for name, values in whole.keys.items()},
            starts=np.append(0, np.cumsum(whole.counts[used])),
            times=whole.times[events],
            lost=whole.lost[events],
        )
        return replace(self, entities=entities, pairs=pairs.reshape(-1, 2))

    @cached_property
    def truth(self) -> np.ndarray:
        """For each pair whether the query holds of what really happened."""
        whole = replace(self, entities=replace(self.entities, lost=np.zeros(len(self.entities.times), bool)))
        return relate_paper.baselines_of_pairs(whole.asked, False) > 0

    @cached_property
    def asked(self) -> relate_paper.ManyAsked:
        """What the paper's algorithms are given: a lost event lies between the recorded ones around it."""
        times, lost = self.entities.times, self.entities.lost
        here = np.arange(len(times))
        before = np.maximum.accumulate(np.where(lost, 0, here))
        after = np.minimum.accumulate(np.where(lost, len(times), here)[::-1])[::-1]
        known = np.where(lost, np.nan, times), times[before], times[after]
        return relate_paper.ManyAsked(self.pairs, self.entities.starts, *known, self.at_least, SOME, INTERSECTS)

    @cached_property
    def windows(self) -> Windows:
        """What `relate` is given."""
        asked = self.asked
        return Windows(asked.events, order_doubles(asked.lo), order_doubles(asked.hi))

    @cached_property
    def analysis(self) -> RelateAnalysis:
        """The query as the package has it."""
        return make_job(_QUESTION.format(k=self.at_least), "q", {}).analysis

    def bare_kernel(self) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """The kernel on everything that it needs, made ready; it decides all pairs."""
        marked = self.windows.marked()
        classes = class_tables(self.windows.lengths[self.pairs[:, 1]], self.analysis)
        return partial(kernel.relate_pairs, self.pairs, marked, marked, classes, self.analysis.hits_needed, True)


# ------------------------------------------------------------ the data


def poisson(options: Options, segments: int, at_least: int, seed: int) -> Contest:
    """The paper's synthetic data: pairs whose events are 5 apart on average, as in a Poisson process."""
    pairs = 20 if options.quick else 500
    drawn = traffic.Options(data="poisson", pairs=pairs, segments=segments)
    entities = traffic.simulate_poisson(drawn, np.random.default_rng(seed))
    return Contest(f"{segments} segments, k = {at_least}", entities, np.arange(2 * pairs).reshape(-1, 2), at_least)


def road(options: Options, threshold: float, seed: int) -> Contest:
    """Every two sectors of a motorway that were congested, and whether they ever were so together."""
    drawn = traffic.Options(threshold=threshold, sectors=80 if options.quick else 200)
    entities, _ = traffic.simulate_road(drawn, np.random.default_rng(seed))
    pairs = np.stack(np.triu_indices(len(entities.counts), 1), axis=1)
    return Contest(f"road, {threshold:g} km/h", entities, pairs, SOME)


def contests(options: Options, seed: int | None = None) -> list[Contest]:
    """The two synthetic queries, the short one, and the two of the road."""
    seed = options.seed if seed is None else seed
    return [
        poisson(options, 20, 14, seed),
        poisson(options, 20, 7, seed),
        poisson(options, 10, 7, seed),
        road(options, 15.0, seed),
        road(options, 20.0, seed),
    ]


# ------------------------------------------------------------ who is asked


@dataclass(frozen=True, slots=True)
class Found:
    """The probability of each pair, NaN where the tree got too large, and the nodes that were made of it."""

    probability: np.ndarray
    nodes: np.ndarray | None = None

    @property
    def finished(self) -> np.ndarray:
        """Which pairs have an answer."""
        return ~np.isnan(self.probability)


def contestants(limit: int) -> dict[str, Callable[[Contest], Found]]:
    """Everybody by name; trees give up a pair at so many nodes."""
    return {
        OURS: ours,
        TREE: partial(tree, limit=limit),
        SURE: partial(tree, limit=limit, sure=True),
        **{name: partial(discrete, delta=delta, limit=limit) for delta, name in SASE.items()},
        IGNORE: partial(baseline, static=False),
        STATIC: partial(baseline, static=True),
    }


def ours(contest: Contest) -> Found:
    """What the package answers, from windows on."""
    windows = contest.windows
    return Found(relate(contest.analysis, True, windows, windows, contest.pairs)[0])


def tree(contest: Contest, limit: int, sure: bool = False) -> Found:
    """The paper's tree."""
    return Found(*relate_paper.possible_worlds_of_pairs(contest.asked, limit, sure))


def discrete(contest: Contest, delta: int, limit: int) -> Found:
    """The tree with SASE+'s timestamps."""
    return Found(*relate_paper.sase_of_pairs(contest.asked, delta, limit))


def baseline(contest: Contest, static: bool) -> Found:
    """One of the two that know no probabilities."""
    return Found(relate_paper.baselines_of_pairs(contest.asked, static))


def nodes(contest: Contest, name: str) -> np.ndarray:
    """The nodes of each pair's tree, were it built to its end."""
    return relate_paper.nodes_of_pairs(contest.asked, name == SURE)


def is_tree(name: str) -> bool:
    """Whether a contestant may not come to an end."""
    return name in (TREE, SURE, *SASE.values())
