"""How each row of a stream is made from a row of its source: JOIN, WHERE, AS, computed columns and written times."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.binding.typed import Typed
from anabranch.columns.local_times import WrittenTimes


@dataclass(frozen=True, slots=True)
class RelationJoin:
    """A relation (by lower-case name) that is joined by some of its columns, each equal to a value of the row."""

    relation: str
    keys: tuple[tuple[str, Typed], ...]
    left: bool


@dataclass(frozen=True, slots=True)
class Preparation:
    """How rows of a stream are made from those of its source.

    Attributes
    ----------
    sources : the columns that are read, as the source or the workbook spells them
    columns : the value of each column of the stream, by its name
    joins, where : applied to the rows of the source, in this order
    written : the columns of the source, in lower case, that are converted by `times`
    declaration : the clauses as text; part of the identity of a checkpoint
    """

    sources: tuple[str, ...]
    columns: tuple[tuple[str, Typed], ...]
    joins: tuple[RelationJoin, ...]
    where: Typed | None
    written: frozenset[str]
    times: WrittenTimes
    declaration: str
