"""Pieces of evidence, and which of them are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.explanation.case import Case


@dataclass(frozen=True)
class Piece:
    """Something that the probability of an answer may depend on.

    Attributes
    ----------
    what : such as 'reading', 'event' or 'table row'
    text : what it says, in one line
    t : its time; None if it has none
    stream, relation, rows : the rows of a stream (by number) or of a relation (by lower-case name) that it consists of
    change : for anything else, makes the case without it
    column : the column of the answer that has it (SEQUENCE)
    """

    what: str
    text: str
    t: Any = None
    stream: int | None = None
    relation: str | None = None
    rows: tuple[int, ...] = ()
    change: Callable[[Case], Case] | None = field(default=None, repr=False)
    column: str | None = None


def without_rows(table: pa.Table, rows: Iterable[int]) -> pa.Table:
    """The table without some rows."""
    kept = np.ones(table.num_rows, np.bool_)
    kept[list(rows)] = False
    return table.filter(pa.array(kept))
