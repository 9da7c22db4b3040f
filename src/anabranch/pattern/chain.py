"""One chain of any query, carried from instant to instant: exactly while that is little work, else in sampled worlds.

The exact state (`joint.py`) and the sampled worlds (`sampling.py`) take the same rows. When the exact state becomes too
large, worlds are drawn from it, and carried from then on. When that is depends on the rows of the chain alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from anabranch.arrays import I64, U64
from anabranch.columns.times import TimeKind, later
from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.history import Outcomes, Past
from anabranch.pattern.joint import JointState
from anabranch.pattern.machine import Partial, SetMachine, Signature, Transitions
from anabranch.pattern.query import BoundPattern
from anabranch.pattern.sampling import Worlds, sample, words_for
from anabranch.splitmix import GOLDEN, mix

#: With METHOD EXACT, the limits are so many times higher.
EXACT_FACTOR = 100
_BITS = 2**64 - 1


@dataclass(frozen=True)
class Carrying:
    """What the chains of a bucket share; `times` is where the count of PER stops, 0 without PER."""

    query: BoundPattern
    machine: Transitions
    kind: TimeKind
    times: int = 0

    def recent(self, partials: Collection[Partial], t: int) -> Callable[[Partial], bool]:
        """With WITHIN, says which of some partial results may still end at t."""
        began = np.unique([t, *(partial.began for partial in partials)])
        withins = {within for partial in partials if (within := self.machine.within_of(partial.goal)) is not None}
        oldest = {within: int(began[later(began, within, self.kind) >= t][0]) for within in withins}

        def is_recent(partial: Partial) -> bool:
            within = self.machine.within_of(partial.goal)
            return within is None or partial.began >= oldest[within]

        return is_recent

    @cached_property
    def sets(self) -> SetMachine:
        """The steps of exact states."""
        return SetMachine(self.machine, sys.maxsize)

    @property
    def n_words(self) -> int:
        """How many words of worlds a sampled chain has."""
        return words_for(self.query.accuracy, self.query.confidence)

    def start(self, hashed: int) -> Chain:
        """A new chain; `hashed` is a hash of its variables."""
        if self.query.method == "SAMPLING":
            return Chain(self, hashed, Worlds(self.n_words))
        return Chain(self, hashed, JointState.start(self.times))

    def seed_of(self, hashed: int, t: int) -> int:
        """The seed of the worlds that are drawn from the exact state of a chain."""
        with np.errstate(over="ignore"):
            of_chain = mix(np.uint64(self.query.seed * int(GOLDEN) & _BITS) ^ np.uint64(hashed))
            return int(mix(np.uint64(of_chain) ^ np.uint64(mix(np.uint64(t & _BITS)))))


@dataclass(frozen=True, slots=True)
class Truth:
    """Whether the query is true for a chain at an instant.

    Attributes
    ----------
    possible : whether some event may end a match
    sets : the probability that it is true (1), if it is exact; for several queries, of each set of true ones
    worlds : the worlds in which it is true, if they are sampled; for several queries, one row for each
    drawn : the count of PER before the instant in each world, if the worlds were drawn at this instant
    """

    possible: bool
    sets: Mapping[int, float] = field(default_factory=dict)
    worlds: U64 | None = None
    drawn: I64 | None = None

    @property
    def p(self) -> float:
        """The probability that it is true, if it is exact."""
        return sum(self.sets.values())


@dataclass(slots=True)
class Chain:
    """The state of one chain between two instants."""

    carrying: Carrying
    hashed: int
    state: JointState | Worlds

    def copy(self) -> Chain:
        """A chain with the same state, which is moved on separately."""
        return replace(self, state=self.state.copy())

    def is_new(self, t: int) -> bool:
        """Whether it has no partial result at t or later, and no key: it is as a new chain."""
        partials = self.state.partials()
        if partials and self.carrying.machine.timed:
            partials = set(filter(self.carrying.recent(partials, t), partials))
        return not partials and not [*self.state.keys]

    def advance(self, t: int, keys: Sequence[Outcomes], past: Past) -> Truth:
        """Process one instant."""
        carrying, now = self.carrying, 0
        if carrying.machine.timed:
            now = t
            self.state.forget(carrying.recent(self.state.partials(), t))
        feeding, partials = [], list(self.state.partials())
        if not partials and not carrying.times and not [*self.state.keys]:
            # A stream may have forgotten such a chain. The work so far does not count any more.
            self.state = carrying.start(self.hashed).state
        for outcomes in keys:
            effective = {
                code: carrying.machine.effective(partials, signature) for code, signature in outcomes.signatures.items()
            }
            signatures = {code: signature for code, signature in effective.items() if any(signature)}
            if signatures or outcomes.key in self.state.keys:
                feeding.append(replace(outcomes, signatures=signatures))
            elif outcomes.model == kernel.MARKOV:
                past.advance(outcomes)
        if not feeding:
            return Truth(False)
        possible = any(self._may_end(signature) for part in feeding for signature in part.signatures.values())
        state, counts = self.state, None
        if isinstance(state, JointState):
            factor = EXACT_FACTOR if self.carrying.query.method == "EXACT" else 1
            try:
                return Truth(possible, state.advance(carrying.sets, feeding, past, factor, now))
            except TooLarge as error:
                self.state, counts = self._sampled(state, t, error)
                state = self.state
        return Truth(possible, worlds=state.advance(carrying.machine, feeding, past, now), drawn=counts)

    def _may_end(self, signature: Signature) -> bool:
        """Whether an event may end a match."""
        is_last = self.carrying.machine.is_last
        return any(is_last(number) and match.accepted for number, match in enumerate(signature) if match is not None)

    def _sampled(self, state: JointState, t: int, reason: TooLarge) -> tuple[Worlds, I64]:
        if self.carrying.query.method == "EXACT":
            raise TooLarge(f"{reason}, and METHOD EXACT excludes sampling; remove it, or GROUP BY") from reason
        return sample(state, self.carrying.n_words, self.carrying.seed_of(self.hashed, t))

    def draw_worlds(self, t: int) -> I64:
        """Go on in sampled worlds, if the state is exact; returns the count of PER in each."""
        if isinstance(self.state, Worlds):
            return np.zeros(64 * self.state.n_words, np.int64)
        seed = self.carrying.seed_of(self.hashed, t)
        self.state, counts = sample(self.state, self.carrying.n_words, seed)
        return counts
