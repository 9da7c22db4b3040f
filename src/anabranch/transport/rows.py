"""Rows as numbers: what operators of PATTERN hold, with keys and values as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools, Numbers


@dataclass(slots=True)
class Rows:
    """Arrays with one entry per row; `key` and `value` are codes of the dictionaries of `stream`."""

    stream: I32
    key: I32
    value: I32
    prev: I32
    t: I64
    p: F64

    def __len__(self) -> int:
        return len(self.t)

    @property
    def event_time(self) -> I64:
        """The code of the event time of each row."""
        return self.t

    def arrays(self) -> dict[str, Numbers]:
        """The columns by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def where(self, chosen: Bools) -> Rows:
        """The rows for which `chosen` holds."""
        return Rows(**{name: column[chosen] for name, column in self.arrays().items()})

    def take(self, indexes: I64) -> Rows:
        """The rows with these indexes."""
        return Rows(**{name: column[indexes] for name, column in self.arrays().items()})

    @staticmethod
    def empty() -> Rows:
        """No rows."""
        narrow = np.zeros(0, np.int32)
        return Rows(narrow, narrow, narrow, narrow, np.zeros(0, np.int64), np.zeros(0))

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, in order."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else Rows.empty()
        return Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__slots__})
