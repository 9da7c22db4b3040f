"""WITHIN: how many earlier instants of a chain are not too long ago, at each of its instants.

Partial results have an age in instants of their chain. So a state of the automaton does not depend on the time, and
there are as many as ages. The *reach* of an instant is the age of the oldest results that can still end at it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, I64, Bools
from anabranch.columns.times import TimeKind, later
from anabranch.pattern.automaton import Automaton
from anabranch.pattern.weights import Batch


def reaches(chain: I64, t: I64, within: float, kind: TimeKind) -> I64:
    """For each instant of a chain, the number of earlier ones that are at most `within` before it.

    Parameters
    ----------
    chain, t : distinct instants, sorted by chain and time

    Examples
    --------
    >>> chain, t = np.array([0, 0, 0, 0, 1, 1]), np.array([1, 2, 4, 5, 5, 9])
    >>> reaches(chain, t, 2.0, TimeKind.INTEGER).tolist()
    [0, 1, 1, 1, 0, 0]
    """
    times = np.unique(t)
    place = chain * len(times) + np.searchsorted(times, t)
    last_within = chain * len(times) + np.searchsorted(times, later(t, within, kind), side="right") - 1
    return np.arange(len(t)) - np.searchsorted(last_within, place)


class Clock:
    """The recent instants of the chains of a bucket."""

    def __init__(self, within: float, kind: TimeKind) -> None:
        self._within = within
        self._kind = kind
        self._chain = np.zeros(0, np.int64)
        self._t = np.zeros(0, np.int64)

    def timed(self, batch: Batch, automaton: Automaton[Any], watermark: int = BEGINNING) -> Batch:
        """The batch with the ticks of an automaton, which is extended by them; no later row is before `watermark`."""
        reach, index = np.unique(self._read(batch, watermark), return_inverse=True)
        automaton.extend((), reaches=reach.tolist())
        return replace(batch, clock=automaton.tick_of(reach.tolist())[index.reshape(-1)])

    def _read(self, batch: Batch, watermark: int) -> I64:
        """The reach of the instant of each row, by row index."""
        chain = np.repeat(np.arange(len(batch.starts) - 1), np.diff(batch.starts))
        t = batch.t[batch.rows]
        pairs = np.stack([np.concatenate([self._chain, chain]), np.concatenate([self._t, t])])
        (chains, times), index = np.unique(pairs, axis=1, return_inverse=True)
        reach = np.zeros(len(batch.t), np.int64)
        reach[batch.rows] = reaches(chains, times, self._within, self._kind)[index.reshape(-1)[len(self._t) :]]
        recent = later(times, self._within, self._kind) >= watermark if watermark > BEGINNING else slice(None)
        self._chain, self._t = chains[recent], times[recent]
        return reach

    def recent(self, n_chains: int) -> Bools:
        """Which chains have instants that are not too long ago: the partial results of the others are over."""
        recent = np.zeros(n_chains, np.bool_)
        recent[self._chain] = True
        return recent

    def keep(self, chains: Bools) -> None:
        """Forget all other chains."""
        kept = chains[self._chain]
        self._chain, self._t = (np.cumsum(chains) - 1)[self._chain[kept]], self._t[kept]

    def save(self) -> dict[str, pa.Table]:
        """The instants as a table."""
        return {"clock": pa.table({"chain": self._chain, "t": self._t})}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._chain, self._t = (tables["clock"][name].to_numpy().copy() for name in ("chain", "t"))
