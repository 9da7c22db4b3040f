"""Bloom filters of keys: which keys are certainly not in pages, so that no page is read for new keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import U8, U64, Bools
from anabranch.splitmix import mix_all

#: With 8 bits for a key and 4 of them set, 1 of 40 other keys is taken for one of a full filter.
_BITS_PER_KEY = 8
_BITS_SET = 4

#: Makes the bits independent of the pages, which are chosen by the same hashes.
_SALT = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class KeyFilter:
    """A set of keys by their hashes, of which a few others are thought to be in it; none can be removed.

    Attributes
    ----------
    bits : eight of the filter per number
    added : how many keys were added
    """

    bits: U8
    added: int = 0

    @classmethod
    def for_keys(cls, n_keys: int) -> KeyFilter:
        """An empty filter with room for some keys."""
        return cls(np.zeros(n_keys * _BITS_PER_KEY // 8, np.uint8))

    @property
    def room(self) -> int:
        """How many keys can be added before too many others are thought to be in it."""
        return len(self.bits) * 8 // _BITS_PER_KEY - self.added

    def add(self, hashes: U64) -> None:
        """Add keys."""
        for bit in self._bits_of(hashes):
            np.bitwise_or.at(self.bits, bit >> np.uint64(3), _mask(bit))
        self.added += len(hashes)

    def may_have(self, hashes: U64) -> Bools:
        """Which of some keys may have been added; the others have not."""
        found = np.ones(len(hashes), np.bool_)
        for bit in self._bits_of(hashes):
            found &= (self.bits[bit >> np.uint64(3)] & _mask(bit)) > 0
        return found

    def _bits_of(self, hashes: U64) -> list[U64]:
        """The bits of each key."""
        mixed = mix_all(hashes ^ _SALT)
        first, step = mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32) | np.uint64(1)
        n_bits = np.uint64(8 * len(self.bits))
        return [(first + np.uint64(number) * step) % n_bits for number in range(_BITS_SET)]

    def save(self) -> pa.Table:
        """The filter as a table."""
        return pa.table({"bits": self.bits})

    @classmethod
    def load(cls, table: pa.Table, added: int) -> KeyFilter:
        """The filter of a table, to which `added` keys were added."""
        return cls(table["bits"].to_numpy().copy(), added)


def _mask(bits: U64) -> U8:
    """The bit within its number."""
    return np.left_shift(1, (bits & np.uint64(7)).astype(np.uint8), dtype=np.uint8)
