"""The answers of one group of a combination whose chains are carried (`chain.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, U64
from anabranch.pattern.chain import Chain, Truth
from anabranch.pattern.history import Earlier, History, Past
from anabranch.pattern.kernel.words import count_bits
from anabranch.pattern.product import TrueSets, united
from anabranch.pattern.query import BoundCombination
from anabranch.pattern.sampling import as_words, draw
from anabranch.pattern.tally import by_instant


class CombinedAnswer(NamedTuple):
    """Whether a combination is true for a group at an instant, together with its GIVEN, and whether GIVEN is.

    Both are probabilities, or numbers of worlds if some chain is `sampled`.
    """

    t: int
    asked: float
    given: float
    sampled: bool


@dataclass(frozen=True, slots=True)
class CarriedGroup:
    """The chains of a group, which are independent. An operand is true for the group if it is so for any chain.

    If some chain is sampled at an instant, the sets of true operands of the exact ones are drawn for each world.

    Attributes
    ----------
    chains : by number
    query : the combination
    truths : (sets, 2): for each set of operands, whether the combination is true, and whether its GIVEN is
    """

    chains: Mapping[int, Chain]
    query: BoundCombination
    truths: F64

    def advance(self, histories: Mapping[int, History], earlier: Earlier | None = None) -> Iterator[CombinedAnswer]:
        """Process the instants of the chains, in order of time; those at which some operand may be true."""
        pasts = {number: Past(earlier) for number in histories}
        for t, instant in by_instant(histories):
            now = {number: self.chains[number].advance(t, keys, pasts[number]) for number, keys in instant}
            possible = {number: truth for number, truth in now.items() if truth.possible}
            if any(truth.worlds is not None for truth in possible.values()):
                yield self._sampled(t, possible)
            elif possible:
                p = np.stack([self._distribution(truth) for truth in possible.values()])
                asked, given = united(np.zeros(len(p), np.int64), p)[0] @ self.truths
                yield CombinedAnswer(t, float(asked), float(given), sampled=False)

    def _distribution(self, truth: Truth) -> F64:
        """The probability of each set of true operands of an exact chain."""
        p = np.zeros((1, len(self.truths)))
        p[0, list(truth.sets)] = list(truth.sets.values())
        one = np.zeros(1, np.int64)
        return TrueSets.of(one, one, p).p[0]

    def _sampled(self, t: int, possible: Mapping[int, Truth]) -> CombinedAnswer:
        masks = [self._worlds(number, t, truth) for number, truth in possible.items()]
        true = np.bitwise_or.reduce(masks)
        everywhere = np.full(true.shape[1], np.uint64(0xFFFFFFFFFFFFFFFF))
        asked, given = (int(count_bits(mask)) for mask in self.query.truth(list(true), everywhere))
        return CombinedAnswer(t, asked, given, sampled=True)

    def _worlds(self, number: int, t: int, truth: Truth) -> U64:
        """The worlds in which each operand is true for a chain."""
        if truth.worlds is not None:
            return truth.worlds
        chain = self.chains[number]
        seed = chain.carrying.seed_of(chain.hashed, t)
        sets = draw(self._distribution(truth), chain.carrying.n_words, seed)
        return np.stack([as_words(sets >> operand & 1 == 1) for operand in range(len(self.query.operands))])
