"""Maximal sets of events, for AT LEAST: the kernel searches groups of candidates, a part of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import I64, Bools
from anabranch.constrain.kernel.sets import maximal_sets
from anabranch.errors import TooLarge

#: The most candidates of a group: a matrix has a byte for every two of them.
MOST_CANDIDATES = 20_000

#: The most steps of the search in a group. The number of sets can grow exponentially with that of the candidates.
MOST_STEPS = 1_000_000

#: Groups are searched together while their matrices have at most this many entries.
_ENTRIES = 1 << 22

#: The matrices of groups: whether every two candidates agree. The arguments are the numbers of the groups, the
#: candidates, and the index of the first candidate of each group, with the number of all at the end.
Agreements = Callable[[I64, I64, I64], Bools]


@dataclass(frozen=True, slots=True)
class Groups:
    """The first events of sets, and the candidates that can be added to each.

    Attributes
    ----------
    anchor : the first event of each group
    row, event : the group and the event of each candidate, in ascending order
    least : the least number of events of a set
    label : the variable, for messages
    """

    anchor: I64
    row: I64
    event: I64
    least: int
    label: str

    def maximal_sets(self, agreements: Agreements) -> Iterator[tuple[I64, I64]]:
        """The groups and the events (n, size) of all maximal sets; those of one size, in some groups, together."""
        starts = np.searchsorted(self.row, np.arange(len(self.anchor) + 1))
        sizes = np.diff(starts)
        earlier = np.bincount(self.row[self.event < self.anchor[self.row]], minlength=len(sizes))
        possible = np.flatnonzero(sizes - earlier >= self.least - 1)
        if sizes[possible].max(initial=0) > MOST_CANDIDATES:
            raise self._too_large(f"{sizes[possible].max():,} events agree with one, of at most {MOST_CANDIDATES:,}")
        share = np.cumsum(sizes[possible] ** 2) // _ENTRIES
        for chosen in np.split(possible, np.flatnonzero(np.diff(share)) + 1):
            members = self.event[np.isin(self.row, chosen, kind="table")]
            firsts = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
            matrix = agreements(chosen, members, firsts)
            found, failed = maximal_sets(matrix, firsts, earlier[chosen], self.least, MOST_STEPS)
            if failed >= 0:
                raise self._too_large(f"an event with {sizes[chosen][failed]:,} others begins too many sets")
            for group, indices in _by_size(found):
                yield chosen[group], np.column_stack([self.anchor[chosen[group]], members[indices]])

    def _too_large(self, reason: str) -> TooLarge:
        return TooLarge(f"{self.label}: {reason}; tighten its bounds, or write v*{self.least} for sets of one size")


def _by_size(found: I64) -> Iterator[tuple[I64, I64]]:
    """The sets of the kernel: the group and the candidates (n, size) of all sets of each size."""
    at, by_size = 0, dict[int, list[int]]()
    while at < len(found):
        by_size.setdefault(int(found[at + 1]), []).append(at)
        at += int(found[at + 1]) + 2
    for size, starts in sorted(by_size.items()):
        first = np.array(starts)
        yield found[first], np.sort(found[first[:, None] + 2 + np.arange(size)], axis=1)
