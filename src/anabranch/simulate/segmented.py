"""Segmented intervals: the events of an INTERVALS stream, before and after some are lost.

A segmented interval is a sequence of point events of one entity: the 1st, 3rd, ... event opens a segment, the 2nd,
4th, ... closes it. The events of all entities are concatenated in flat arrays, as kernels need them; `table` makes the
rows of a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.arrays import F64, I64, Bools


@dataclass(frozen=True, slots=True)
class Entities:
    """The point events of entities, sorted by entity and time.

    Attributes
    ----------
    keys : dict of arrays
        The key columns by name, with one item per entity.
    starts : (n_entities + 1,) int64
        The events of entity i are those from `starts[i]` up to, but not including, `starts[i + 1]`: an even number, at
        least two.
    times : (n_events,) float64
        The time of each event, recorded or not.
    lost : (n_events,) bool
        Whether the time is unknown.
    horizon : (float, float)
        All events happened between these times.
    """

    keys: Mapping[str, NDArray]
    starts: I64
    times: F64
    lost: Bools
    horizon: tuple[float, float]

    @property
    def counts(self) -> I64:
        """The number of point events of each entity, twice the number of its segments."""
        return np.diff(self.starts)


def lose(entities: Entities, rate: float, rng: np.random.Generator, keep_ends: bool = False) -> Entities:
    """Lose each event with the same probability, independently of the others.

    Parameters
    ----------
    entities : Entities
        Its own `lost` is ignored.
    rate : float
        The probability, from 0 to 1.
    rng : np.random.Generator
        One number is drawn per event, so the losses at a higher rate contain those at a lower one.
    keep_ends : bool
        Whether the first and the last event of each entity are kept, as in the experiments of the paper.

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


def table(entities: Entities, as_times: Callable[[F64], pa.Array]) -> pa.Table:
    """Return the rows of an INTERVALS stream: key columns, seq, t, n and role.

    Every second lost event has no row; the others have a row whose time is NULL. So one of two consecutive lost events
    has a row, and an entity that lost all events still has rows.

    Parameters
    ----------
    entities : Entities
    as_times : callable
        Converts times to a column.
    """
    counts = np.repeat(entities.counts, entities.counts)
    seq = 1 + np.arange(len(entities.times)) - np.repeat(entities.starts[:-1], entities.counts)
    has_row = ~entities.lost | (np.cumsum(entities.lost) % 2 == 1)
    keys = {name: np.repeat(values, entities.counts)[has_row] for name, values in entities.keys.items()}
    known = pa.array(~entities.lost[has_row])
    return pa.table(
        {
            **{name: pa.array(values) for name, values in keys.items()},
            "seq": pa.array(seq[has_row], pa.int32()),
            "t": pc.if_else(known, as_times(entities.times[has_row]), None),
            "n": pa.array(counts[has_row], pa.int32()),
            "role": pa.array(_roles(seq, counts)[has_row], pa.string()),
        }
    )


def _roles(seq: I64, counts: I64) -> NDArray[np.str_]:
    """Return the effect of each event on its interval."""
    inner = np.where(seq % 2 == 1, "resume", "suspend")
    return np.where(seq == 1, "start", np.where(seq == counts, "end", inner))
