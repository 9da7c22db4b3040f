"""The events of each component, by groups of equal keys and in order of time: what queues and searches walk along."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import I64, Bools
from anabranch.compiled import compiled


class Lists(NamedTuple):
    """Items, an event in the role of a component each.

    Attributes
    ----------
    events : the event of each item; items of a component and group lie together, in order of time
    roles : the role that each item was made from
    start, stop : (components, groups) where those items begin and end; the same for all groups, where a component has
        no key: its events meet everybody
    """

    events: I64
    roles: I64
    start: I64
    stop: I64


@compiled
def make_lists(component: I64, event: I64, group: I64, roles: I64, keyed: Bools, n_groups: int) -> Lists:
    """Lists of roles that come in order of time (a counting sort, which keeps that order)."""
    n_components = len(keyed)
    start = np.zeros((n_components, n_groups), np.int64)
    for place in range(len(event)):
        start[component[place], group[place] if keyed[component[place]] else 0] += 1
    total = 0
    for c in range(n_components):
        for g in range(n_groups):
            count = start[c, g]
            start[c, g] = total
            total += count
    stop = start.copy()
    events = np.empty(len(event), np.int64)
    chosen = np.empty(len(event), np.int64)
    for place in range(len(event)):
        c = component[place]
        g = group[place] if keyed[c] else 0
        events[stop[c, g]] = event[place]
        chosen[stop[c, g]] = roles[place]
        stop[c, g] += 1
    for c in range(n_components):
        if not keyed[c]:
            start[c, :] = start[c, 0]
            stop[c, :] = stop[c, 0]
    return Lists(events, chosen, start, stop)
