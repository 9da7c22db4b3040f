"""The search for kept events that fit a new one: our lists, and trees that are built anew every so many events.

All look for the same. A *probe* is a new event as one variable, and another variable of its query: which kept events of
that one are near enough, and at a time that is allowed? What is kept at any moment is known from a run before. A tree
is built for a variable from all that is kept in the course of the next events, and asked by all of these at once, which
no engine could do that reports alerts as they come; what is too early, too late or expired is thrown away afterwards.
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
from benchmarks.constrain_workloads import InProcess, Measured, Query

EVERY = (300, 1_000, 3_000, 10_000, 30_000)
"""How many events come before a tree is built anew; the best for a tree counts."""

Pairs = tuple[np.ndarray, np.ndarray]
Near = Callable[["Kept", np.ndarray, np.ndarray, np.ndarray], Pairs]
"""Finds (place among those asked, place among those kept), for kept roles, roles that ask, and their straight ways."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Events after a run, which has told until when each is kept."""

    graph: Graph
    given: Events
    places: np.ndarray
    degrees: np.ndarray

    @staticmethod
    def of(measured: Measured, queries: list[Query]) -> Kept:
        """The events of a workload."""
        run = InProcess(measured.job(queries, TIGHT), measured.events)
        given = run.numbers(*run.roles())
        for _ in run.run(given).solutions():
            pass
        events = given.events[:-1]
        places = np.stack([events["x"], events["y"], events["z"]], axis=1)
        # All buoys are in the Pacific: from 0 to 360 none is near the seam.
        degrees = np.stack([measured.events["lon"].to_numpy() % 360, measured.events["lat"].to_numpy()], axis=1)
        return Kept(run.job.lowered.graph, given, places, degrees)

    def most(self) -> int:
        """The most roles that were kept at any time, all variables together."""
        begins = self.given.events["t"][self.given.roles["event"]]
        ends = self.given.roles["expires"]
        lasting = ends >= begins
        gone = np.searchsorted(np.sort(ends[lasting]), begins[lasting], side="left")
        return int((np.arange(1, len(gone) + 1) - gone).max(initial=0))


@dataclass(frozen=True, slots=True)
class Searched:
    """How many probes there were, what they found, the processor time of a probe, and how often a tree was built."""

    probes: int
    found: int
    microseconds: float
    every: int | None = None


# ------------------------------------------------------------ our lists


def by_lists(kept: Kept, indexed: bool) -> Searched:
    """Lists for each variable, with a grid or without."""
    graph, (events, columns, roles) = kept.graph, kept.given
    least = np.inf
    for _ in range(3):
        start = time.process_time()
        store = new_store(graph, kept.given, indexed)
        probes, found = _replay(
            graph.variables, graph.pairs, graph.checks, events, columns, roles, graph.scale, graph.radius,
            store.items, store.begin, store.end, store.base, store.cells,
        )  # fmt: skip
        least = min(least, time.process_time() - start)
    return Searched(probes, found, 1e6 * least / max(probes, 1))


@compiled
def _replay(
    variables, pairs, checks, events, columns, roles, scale, radius, items, begin, end, base, cells
):  # fmt: skip
    """Let the events come, and only look for those that fit."""
    probes, found, pool = 0, 0, np.empty(len(roles) + 1, np.int64)
    for x in range(len(events) - 1):
        for role in range(events[x].role, events[x + 1].role):
            v = roles[role].variable
            for u in range(variables[v].size):
                other = variables[v].first + u
                if other != v and pairs[variables[v].pair + u].earliest <= 0:
                    probes += 1
                    found += candidates(
                        items, begin, end, base, cells, variables, pairs, checks, events, columns, roles, role, other,
                        scale, radius, pool, 0,
                    )  # fmt: skip
        for role in range(events[x].role, events[x + 1].role):
            if roles[role].expires >= events[x].t:
                keep(items, end, events, roles, role)
    return probes, found


# ------------------------------------------------------------ trees


def by_trees(kept: Kept, near: Near, every: int) -> Searched:
    """A tree a variable, built anew after so many events."""
    t, first = kept.given.events["t"], kept.given.events["role"]
    roles = kept.given.roles
    lasting = roles["expires"] >= t[roles["event"]]
    alive = np.zeros(0, np.int64)
    probes, found = 0, 0
    start = time.process_time()
    for begin in range(0, len(kept.given), every):
        new = np.arange(first[begin], first[min(begin + every, len(kept.given))])
        alive = np.concatenate([alive[roles["expires"][alive] >= t[begin]], new[lasting[new]]])
        asked, hits = _search(kept, near, alive, new)
        probes, found = probes + asked, found + hits
    return Searched(probes, found, 1e6 * (time.process_time() - start) / max(probes, 1), every)


def _search(kept: Kept, near: Near, alive: np.ndarray, new: np.ndarray) -> tuple[int, int]:
    """Ask for all variables; how many probes there were, and what they found."""
    variables, pairs, roles = kept.graph.variables, kept.graph.pairs, kept.given.roles
    kept_as, new_as = roles["variable"][alive], roles["variable"][new]
    probes, found = 0, 0
    for u, variable in enumerate(variables):
        asking = new[(variables["first"][new_as] == variable["first"]) & (new_as != u)]
        own = roles["variable"][asking]
        pair = variables["pair"][own] + u - variable["first"]
        earlier = pairs["earliest"][pair] <= 0
        asking, pair = asking[earlier], pair[earlier]
        probes += len(asking)
        stored = alive[kept_as == u]
        if len(asking) and len(stored):
            ask, hit = near(kept, stored, asking, np.sqrt(pairs["near"][pair]))
            found += _fitting(kept, asking[ask], stored[hit], pair[ask])
    return probes, found


def _fitting(kept: Kept, asking: np.ndarray, stored: np.ndarray, pair: np.ndarray) -> int:
    """How many of those that a tree has found are near enough, kept, and at a time that is allowed."""
    roles, t, pairs = kept.given.roles, kept.given.events["t"], kept.graph.pairs
    one, other = roles["event"][asking], roles["event"][stored]
    apart = t[other] - t[one]
    good = (other < one) & (roles["expires"][stored] >= t[one])
    good &= (apart >= pairs["earliest"][pair]) & (apart <= pairs["latest"][pair])
    good &= ((kept.places[one] - kept.places[other]) ** 2).sum(axis=1) <= pairs["near"][pair]
    return int(good.sum())


def near_by_kd_tree(kept: Kept, stored: np.ndarray, asking: np.ndarray, ways: np.ndarray) -> Pairs:
    """Two trees of places on the sphere; the widest way is asked of all."""
    owner = kept.given.roles["event"]
    tree, probes = cKDTree(kept.places[owner[stored]]), cKDTree(kept.places[owner[asking]])
    found = probes.sparse_distance_matrix(tree, ways.max(), output_type="ndarray")
    return found["i"], found["j"]


def near_by_str_tree(kept: Kept, stored: np.ndarray, asking: np.ndarray, ways: np.ndarray) -> Pairs:
    """A tree of points in degrees, and a box around each that asks."""
    owner = kept.given.roles["event"]
    tree = shapely.STRtree(shapely.points(kept.degrees[owner[stored]]))
    lon, lat = kept.degrees[owner[asking]].T
    arc = 2 * np.arcsin(np.minimum(ways / 2, 1.0))
    up = np.degrees(arc) * (1 + 1e-9)
    side = np.degrees(np.arcsin(np.minimum(np.sin(arc) / np.cos(np.radians(lat)), 1.0))) * (1 + 1e-9)
    ask, hit = tree.query(shapely.box(lon - side, lat - up, lon + side, lat + up))
    return ask, hit


def contest(kept: Kept) -> Iterator[tuple[str, Searched]]:
    """Everybody by name; all must find the same."""
    ways: dict[str, Callable[[], Searched]] = {
        "lists with a grid": partial(by_lists, kept, True),
        "lists": partial(by_lists, kept, False),
    }
    for name, near in (("cKDTree", near_by_kd_tree), ("STRtree", near_by_str_tree)):
        ways[name] = partial(_best_tree, kept, near)
    by_lists(kept, True)  # compiles
    expected: Searched | None = None
    for name, search in ways.items():
        searched = search()
        expected = expected or searched
        if (searched.probes, searched.found) != (expected.probes, expected.found):
            raise AssertionError(f"{name} finds {searched}, and not {expected}")
        yield name, searched


def _best_tree(kept: Kept, near: Near) -> Searched:
    return min((by_trees(kept, near, every) for every in EVERY), key=lambda searched: searched.microseconds)
