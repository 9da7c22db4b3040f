"""Streams that are made from the rows of another: the protocol between operators and inference.

Rows of the source are routed, packed and kept until the watermark like any others; what they are made into never
leaves the worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from anabranch.arrays import Bools

if TYPE_CHECKING:
    from anabranch.columns.dictionary import Dictionary
    from anabranch.transport.inbox import Rows
    from anabranch.transport.packing import Layout


class Derivation(Protocol):
    """Says how the rows of a stream are made from those of its source, step by step of time."""

    @property
    def step(self) -> float:
        """The length of a step; see `times.steps_of`."""

    def open(self, layout: Layout) -> Deriver:
        """What does it for the keys of one bucket."""


class Deriver(Protocol):
    """Makes the rows of a stream from those of its source; keeps what it must remember of each key."""

    @property
    def values(self) -> Dictionary:
        """The values of the rows that are made; value 0 is nothing."""

    def advance(self, rows: Rows, keys: Dictionary, readings: Dictionary, watermark: int) -> Derived:
        """Take the source's rows of all steps before the watermark, and make those steps' rows."""

    def save(self) -> pa.Table:
        """What is remembered."""

    def load(self, saved: pa.Table) -> None:
        """Take over what `save` gave."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What was made of a source's rows.

    Attributes
    ----------
    rows : the rows of the stream; their `key` counts as in the source, their `value` and `prev` in `Deriver.values`
    rejected : which of the source's rows could not be used, with the reason for each kind
    duplicate : how many of the source's rows were given twice
    """

    rows: Rows
    rejected: dict[str, Bools]
    duplicate: int
