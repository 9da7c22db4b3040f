"""Sets of events, for AT LEAST: the kernel searches groups of candidates, a part of them at a time.

Events of CERTAIN streams have maximal sets. Over INDEPENDENT streams, every set is maximal in a world in which all its
events happened, and none that can be added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I64, Bools
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
        sizes, earlier = self._sizes()
        for chosen, members, firsts, matrix in self._matrices(sizes, earlier, agreements):
            found, failed = maximal_sets(matrix, firsts, earlier[chosen], self.least, MOST_STEPS)
            if failed >= 0:
                raise self._too_many(int(sizes[chosen][failed]))
            for group, indices in _by_size(found):
                yield chosen[group], np.column_stack([self.anchor[chosen[group]], members[indices]])

    def possible_sets(self, agreements: Agreements, p: F64, begun: F64, floor: float) -> Iterator[tuple[I64, I64]]:
        """The same for all sets, maximal or not, of which all events happened with a probability above 0.

        Parameters
        ----------
        p : the probability of each event
        begun : for each group, the probability of what its sets are added to
        floor : less probable sets are left out
        """
        sizes, earlier = self._sizes()
        for chosen, members, firsts, matrix in self._matrices(sizes, earlier, agreements):
            block, found = 0, dict[int, list[tuple[int, list[int]]]]()
            for number, row in enumerate(chosen.tolist()):
                size = int(sizes[row])
                own = members[firsts[number] : firsts[number + 1]]
                square = matrix[block : block + size**2].reshape(size, size)
                block += size**2
                for indices in self._sets_of_group(square, int(earlier[row]), p[own], float(begun[row]), floor):
                    found.setdefault(len(indices), []).append((row, own[indices].tolist()))
            for _, sets in sorted(found.items()):
                rows = np.array([row for row, _ in sets], np.int64)
                events = np.array([events for _, events in sets], np.int64).reshape(len(sets), -1)
                yield rows, np.column_stack([self.anchor[rows], events])

    def _sets_of_group(self, agree: Bools, earlier: int, p: F64, begun: float, floor: float) -> Iterator[list[int]]:
        """The indices of the candidates of every set that begins with the first event of a group."""
        size, steps = len(p), 0
        #: The later candidates that agree with each one, as bits.
        after = [sum(1 << other for other in range(index + 1, size) if agree[index, other]) for index in range(size)]
        open_sets: list[tuple[list[int], int, float]] = [([], (1 << size) - (1 << earlier), begun)]
        while open_sets:
            indices, left, chance = open_sets.pop()
            steps += 1
            if steps > MOST_STEPS:
                raise self._too_many(size)
            if len(indices) + 1 >= self.least:
                yield indices
            while left:
                index = (left & -left).bit_length() - 1
                left &= left - 1
                more = chance * float(p[index])
                if more > 0 and more >= floor:
                    open_sets.append(([*indices, index], left & after[index], more))

    def _sizes(self) -> tuple[I64, I64]:
        """How many candidates each group has, and how many of them come before its first event."""
        sizes = np.diff(np.searchsorted(self.row, np.arange(len(self.anchor) + 1)))
        return sizes, np.bincount(self.row[self.event < self.anchor[self.row]], minlength=len(sizes))

    def _matrices(self, sizes: I64, earlier: I64, agreements: Agreements) -> Iterator[tuple[I64, I64, I64, Bools]]:
        """Some groups with enough candidates: their numbers, candidates, the first index of each, and the matrices."""
        possible = np.flatnonzero(sizes - earlier >= self.least - 1)
        if sizes[possible].max(initial=0) > MOST_CANDIDATES:
            raise self._too_large(f"{sizes[possible].max():,} events agree with one, of at most {MOST_CANDIDATES:,}")
        share = np.cumsum(sizes[possible] ** 2) // _ENTRIES
        for chosen in np.split(possible, np.flatnonzero(np.diff(share)) + 1):
            members = self.event[np.isin(self.row, chosen, kind="table")]
            firsts = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
            yield chosen, members, firsts, agreements(chosen, members, firsts)

    def _too_many(self, others: int) -> TooLarge:
        return self._too_large(f"an event with {others:,} others begins too many sets")

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
