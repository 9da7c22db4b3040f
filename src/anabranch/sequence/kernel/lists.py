"""The events of each component by group and time: the order in which queues and searches read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import I64, Bools
from anabranch.compiled import compiled


class Lists(NamedTuple):
    """Items: an item is an event as one component.

    Attributes
    ----------
    events : the event of each item; the items of a component and group are contiguous, in order of time
    roles : the role that each item was made from
    start, stop : (components, groups) the index of the first item, and after the last item; the same for all groups if
        the component has no key, because its events belong to every group
    """

    events: I64
    roles: I64
    start: I64
    stop: I64


@compiled
def make_lists(component: I64, event: I64, group: I64, roles: I64, keyed: Bools, n_groups: int) -> Lists:
    """Sort roles, which are in order of time, by component and group with a stable counting sort."""
    n_components = len(keyed)
    start = np.zeros((n_components, n_groups), np.int64)
    for index in range(len(event)):
        start[component[index], group[index] if keyed[component[index]] else 0] += 1
    total = 0
    for c in range(n_components):
        for g in range(n_groups):
            count = start[c, g]
            start[c, g] = total
            total += count
    stop = start.copy()
    events = np.empty(len(event), np.int64)
    chosen = np.empty(len(event), np.int64)
    for index in range(len(event)):
        c = component[index]
        g = group[index] if keyed[c] else 0
        events[stop[c, g]] = event[index]
        chosen[stop[c, g]] = roles[index]
        stop[c, g] += 1
    for c in range(n_components):
        if not keyed[c]:
            start[c, :] = start[c, 0]
            stop[c, :] = stop[c, 0]
    return Lists(events, chosen, start, stop)
