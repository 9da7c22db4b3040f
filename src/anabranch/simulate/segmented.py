"""Segmented intervals, many at once: what an INTERVALS stream holds, before and after events are lost.

A segmented interval is a sequence of point events of one entity: odd ones open a segment, even ones close it. All of
them lie behind each other in flat arrays, as a kernel wants them; `table` makes the rows of a stream of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Entities:
    """The point events of some entities, entity by entity and in the order of time.

    Attributes
    ----------
    keys : dict of arrays
        The key columns by name, with one item an entity.
    starts : (n_entities + 1,) int64
        The events of entity i are those from `starts[i]` up to, not including, `starts[i + 1]`: an even number, two
        at least.
    times : (n_events,) float64
        When they happened, whether or not that was recorded.
    lost : (n_events,) bool
        Whether the time is not known.
    horizon : (float, float)
        Between these times everything happened.
    """

    keys: Mapping[str, NDArray]
    starts: Integers
    times: Floats
    lost: Mask
    horizon: tuple[float, float]

    @property
    def counts(self) -> Integers:
        """The number of point events of each entity: twice that of its segments."""
        return np.diff(self.starts)


def lose(entities: Entities, rate: float, rng: np.random.Generator, keep_ends: bool = False) -> Entities:
    """Lose each event with the same chance, whatever becomes of the others.

    Parameters
    ----------
    entities : Entities
        With any losses of its own forgotten.
    rate : float
        The chance, from 0 to 1.
    rng : np.random.Generator
        One number is drawn an event, so the losses at a higher rate contain those at a lower one.
    keep_ends : bool
        Whether the first and the last event of each entity are spared, as in the experiments of the paper.

    Examples
    --------
    >>> whole = Entities({}, np.array([0, 4]), np.arange(4.0), np.zeros(4, dtype=bool), (0.0, 4.0))
    >>> lose(whole, 1.0, np.random.default_rng(0), keep_ends=True).lost
    array([False,  True,  True, False])
    """
    lost = rng.random(len(entities.times)) < rate
    if keep_ends:
        lost[entities.starts[:-1]] = lost[entities.starts[1:] - 1] = False
    return replace(entities, lost=lost)


def table(entities: Entities, as_times: Callable[[Floats], pa.Array]) -> pa.Table:
    """The rows of an INTERVALS stream: key columns, seq, t, n and role.

    Of the lost events every second one has no row at all, and the others have NULL for a time. So of two lost events
    in a row one has a row, and an entity that lost everything is still known.

    Parameters
    ----------
    entities : Entities
        Whose rows.
    as_times : callable
        Makes a column of times.
    """
    counts = np.repeat(entities.counts, entities.counts)
    seq = 1 + np.arange(len(entities.times)) - np.repeat(entities.starts[:-1], entities.counts)
    there = ~entities.lost | (np.cumsum(entities.lost) % 2 == 1)
    keys = {name: np.repeat(values, entities.counts)[there] for name, values in entities.keys.items()}
    known = pa.array(~entities.lost[there])
    return pa.table(
        {
            **{name: pa.array(values) for name, values in keys.items()},
            "seq": pa.array(seq[there], pa.int32()),
            "t": pc.if_else(known, as_times(entities.times[there]), None),
            "n": pa.array(counts[there], pa.int32()),
            "role": pa.array(_roles(seq, counts)[there], pa.string()),
        }
    )


def _roles(seq: Integers, counts: Integers) -> NDArray[np.str_]:
    """What an event does to its interval."""
    inner = np.where(seq % 2 == 1, "resume", "suspend")
    return np.where(seq == 1, "start", np.where(seq == counts, "end", inner))
