"""The search for kept events that match a new one: the lists of Anabranch, and trees that are rebuilt regularly.

All of them find the same events. A *probe* is a new event as one variable, and another variable of its query: which
kept events of that variable are near enough, at an allowed time? Which events are kept at any time is known from an
earlier run. A tree is built per variable from all events that are kept during the next interval, and all events of the
interval query it at once; an engine that reports alerts as they come could not do that. Events that are too early, too
late or expired are filtered out afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import shapely
from scipy.spatial import cKDTree

from anabranch.compiled import compiled
from anabranch.constrain.analysis import TIGHT
from anabranch.constrain.kernel.store import candidates, keep, new_store
from anabranch.constrain.kernel.tables import Events, Graph
from anabranch.transport.limits import MAX_ANSWERS
from benchmarks.constrain.data import Measurements
from benchmarks.constrain.queries import Query
from benchmarks.constrain.run import InProcess

GRID = "lists with a grid"

INTERVALS = (300, 1_000, 3_000, 10_000, 30_000)
"""How many events come before a tree is rebuilt; the best interval of each tree counts."""

Pairs = tuple[np.ndarray, np.ndarray]
NearSearch = Callable[["KeptEvents", np.ndarray, np.ndarray, np.ndarray], Pairs]
"""Finds pairs (index of a probing role, index of a stored role) from stored roles, probing roles and distances."""


@dataclass(frozen=True, slots=True)
class KeptEvents:
    """The events of a run, with the times at which their roles expire.

    Attributes
    ----------
    positions : coordinates on the unit sphere
    degrees : longitude and latitude
    """

    graph: Graph
    events: Events
    positions: np.ndarray
    degrees: np.ndarray

    @staticmethod
    def of(measurements: Measurements, queries: list[Query]) -> KeptEvents:
        """Run the queries and return their events."""
        run = InProcess(measurements, queries, TIGHT)
        events = run.kernel_events(*run.roles())
        for _ in run.run(events).solutions(MAX_ANSWERS):
            pass
        points, rows = events.events[:-1], measurements.events
        positions = np.stack([points["x"], points["y"], points["z"]], axis=1)
        # All buoys are in the Pacific, so with longitudes from 0 to 360 none is near the wrap-around.
        degrees = np.stack([rows["lon"].to_numpy() % 360, rows["lat"].to_numpy()], axis=1)
        return KeptEvents(run.graph, events, positions, degrees)

    def most(self) -> int:
        """Return the maximum number of roles that were kept at any time, of all variables together."""
        begins = self.events.events["t"][self.events.roles["event"]]
        ends = self.events.roles["expires"]
        is_kept = ends >= begins
        expired = np.searchsorted(np.sort(ends[is_kept]), begins[is_kept], side="left")
        return int((np.arange(1, len(expired) + 1) - expired).max(initial=0))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The number of probes and of their hits, the processor time per probe, and the interval between two trees."""

    probes: int
    hits: int
    microseconds: float
    interval: int | None = None


# ------------------------------------------------------------ the lists of Anabranch


def search_lists(kept: KeptEvents, indexed: bool) -> SearchResult:
    """Search lists per variable, with a grid or without."""
    graph, (events, columns, roles) = kept.graph, kept.events
    least = np.inf
    for _ in range(3):
        start = time.process_time()
        store = new_store(graph, kept.events, indexed)
        probes, hits = _replay(
            graph.variables, graph.pairs, graph.checks, events, columns, roles, graph.scale, graph.radius,
            store.items, store.begin, store.end, store.base, store.cells, store.low, store.density,
        )  # fmt: skip
        least = min(least, time.process_time() - start)
    return SearchResult(probes, hits, 1e6 * least / max(probes, 1))


@compiled
def _replay(
    variables, pairs, checks, events, columns, roles, scale, radius, items, begin, end, base, cells, low, density
):  # fmt: skip
    """Replay the events, and only search for matching ones."""
    probes, hits, pool = 0, 0, np.empty(len(roles) + 1, np.int64)
    for x in range(len(events) - 1):
        for role in range(events[x].role, events[x + 1].role):
            v = roles[role].variable
            for u in range(variables[v].size):
                other = variables[v].first + u
                if other != v and pairs[variables[v].pair + u].earliest <= 0:
                    probes += 1
                    hits += candidates(
                        items, begin, end, base, cells, low, density, variables, pairs, checks, events, columns,
                        roles, role, other, scale, radius, pool, 0,
                    )  # fmt: skip
        for role in range(events[x].role, events[x + 1].role):
            if roles[role].expires >= events[x].t:
                keep(items, end, events, roles, role)
    return probes, hits


# ------------------------------------------------------------ trees


def search_trees(kept: KeptEvents, search_near: NearSearch, interval: int) -> SearchResult:
    """Search one tree per variable, which is rebuilt after an interval of events."""
    t, first = kept.events.events["t"], kept.events.events["role"]
    roles = kept.events.roles
    is_kept = roles["expires"] >= t[roles["event"]]
    alive = np.zeros(0, np.int64)
    probes, hits = 0, 0
    start = time.process_time()
    for begin in range(0, len(kept.events), interval):
        new = np.arange(first[begin], first[min(begin + interval, len(kept.events))])
        alive = np.concatenate([alive[roles["expires"][alive] >= t[begin]], new[is_kept[new]]])
        new_probes, new_hits = _search_interval(kept, search_near, alive, new)
        probes, hits = probes + new_probes, hits + new_hits
    return SearchResult(probes, hits, 1e6 * (time.process_time() - start) / max(probes, 1), interval)


def _search_interval(kept: KeptEvents, search_near: NearSearch, alive: np.ndarray, new: np.ndarray) -> tuple[int, int]:
    """Probe the trees of all variables; return the numbers of probes and of hits."""
    variables, pairs, roles = kept.graph.variables, kept.graph.pairs, kept.events.roles
    alive_variable, new_variable = roles["variable"][alive], roles["variable"][new]
    probes, hits = 0, 0
    for u, variable in enumerate(variables):
        probing = new[(variables["first"][new_variable] == variable["first"]) & (new_variable != u)]
        pair = variables["pair"][roles["variable"][probing]] + u - variable["first"]
        is_earlier = pairs["earliest"][pair] <= 0
        probing, pair = probing[is_earlier], pair[is_earlier]
        probes += len(probing)
        stored = alive[alive_variable == u]
        if len(probing) and len(stored):
            probe, hit = search_near(kept, stored, probing, np.sqrt(pairs["near"][pair]))
            hits += _count_matching(kept, probing[probe], stored[hit], pair[probe])
    return probes, hits


def _count_matching(kept: KeptEvents, probing: np.ndarray, stored: np.ndarray, pair: np.ndarray) -> int:
    """Return how many results of a tree are near enough, not expired, and at an allowed time."""
    roles, t, pairs = kept.events.roles, kept.events.events["t"], kept.graph.pairs
    one, other = roles["event"][probing], roles["event"][stored]
    difference = t[other] - t[one]
    matching = (other < one) & (roles["expires"][stored] >= t[one])
    matching &= (difference >= pairs["earliest"][pair]) & (difference <= pairs["latest"][pair])
    matching &= ((kept.positions[one] - kept.positions[other]) ** 2).sum(axis=1) <= pairs["near"][pair]
    return int(matching.sum())


def near_by_kd_tree(kept: KeptEvents, stored: np.ndarray, probing: np.ndarray, distances: np.ndarray) -> Pairs:
    """Search two trees of points on the sphere, with the largest of the distances."""
    event = kept.events.roles["event"]
    tree, probes = cKDTree(kept.positions[event[stored]]), cKDTree(kept.positions[event[probing]])
    pairs = probes.sparse_distance_matrix(tree, distances.max(), output_type="ndarray")
    return pairs["i"], pairs["j"]


def near_by_str_tree(kept: KeptEvents, stored: np.ndarray, probing: np.ndarray, distances: np.ndarray) -> Pairs:
    """Search a tree of points in degrees, with a box around each probing event."""
    event = kept.events.roles["event"]
    tree = shapely.STRtree(shapely.points(kept.degrees[event[stored]]))
    lon, lat = kept.degrees[event[probing]].T
    arc = 2 * np.arcsin(np.minimum(distances / 2, 1.0))
    height = np.degrees(arc) * (1 + 1e-9)
    width = np.degrees(np.arcsin(np.minimum(np.sin(arc) / np.cos(np.radians(lat)), 1.0))) * (1 + 1e-9)
    probe, hit = tree.query(shapely.box(lon - width, lat - height, lon + width, lat + height))
    return probe, hit


def search_all(kept: KeptEvents) -> Iterator[tuple[str, SearchResult]]:
    """Yield the result of each search by name; all must have the same hits."""
    searches: dict[str, Callable[[], SearchResult]] = {
        GRID: partial(search_lists, kept, True),
        "lists": partial(search_lists, kept, False),
    }
    for name, search_near in (("cKDTree", near_by_kd_tree), ("STRtree", near_by_str_tree)):
        searches[name] = partial(_best_tree, kept, search_near)
    search_lists(kept, True)  # compiles
    expected: SearchResult | None = None
    for name, search in searches.items():
        result = search()
        expected = expected or result
        if (result.probes, result.hits) != (expected.probes, expected.hits):
            raise AssertionError(f"{name} has {result} instead of the expected {expected}")
        yield name, result


def _best_tree(kept: KeptEvents, search_near: NearSearch) -> SearchResult:
    results = (search_trees(kept, search_near, interval) for interval in INTERVALS)
    return min(results, key=lambda result: result.microseconds)
