"""What the explanations of all kinds share: an answer, its pieces of evidence, and the probability without some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.errors import AnabranchError
from anabranch.explanation.case import Case, Row
from anabranch.explanation.explanation import History
from anabranch.explanation.identity import find
from anabranch.explanation.pieces import Piece, without_rows
from anabranch.planning.prepared import Analysis
from anabranch.planning.selection import Selection
from anabranch.text import safe, short, value_text
from anabranch.transport.layout import Layout

#: The columns of answers that say how probable they are, or follow from it.
MEASURES = frozenset({
    "probability", "lower", "upper", "method", "expected", "distribution", "complement", "calibrated", "status",
    "count",
})  # fmt: skip


class Explainer(ABC):
    """Explains one answer of one kind of query.

    Parameters
    ----------
    case : the query with the rows that the answer depends on
    answer : its columns, as they are in a file or a DataFrame
    """

    #: Columns of answers that do not identify them, besides the measures.
    derived: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, case: Case, answer: Mapping[str, Any]) -> None:
        self.case = case
        self.answer = self._found(case.answers(), self.identity_of(answer))
        if self.answer is None:
            raise AnabranchError(
                f"{case.query.name} has no such answer over its inputs: {described(self.identity_of(answer))}"
            )

    answer: Row | None

    @classmethod
    @abstractmethod
    def selections(cls, analysis: Any, layouts: Sequence[Layout], answer: Mapping[str, Any]) -> list[Selection]:
        """For each stream, the rows that an answer can depend on."""

    @property
    def row(self) -> Row:
        """The answer as this query gives it."""
        assert self.answer is not None
        return self.answer

    @property
    def probability(self) -> float:
        """The probability of the answer."""
        return float(self.row["probability"])

    @abstractmethod
    def pieces(self) -> list[Piece]:
        """The pieces of evidence, by time."""

    @abstractmethod
    def histories(self) -> list[History]:
        """The most likely history in which the answer is true, and the most likely one in which it is not."""

    def notes(self) -> list[str]:
        """What a reader must know besides."""
        return []

    # ------------------------------------------------------------ without pieces

    def without(self, pieces: Sequence[Piece]) -> float:
        """The probability of the answer without some pieces of evidence; 0 if it is no answer."""
        found = self._found(self.without_pieces(pieces).answers(), self.identity_without(pieces))
        return 0.0 if found is None else float(found["probability"])

    def without_pieces(self, pieces: Sequence[Piece]) -> Case:
        """The case without some pieces of evidence."""
        case, tables = self.case, list(self.case.tables)
        for stream, rows in _rows_by((piece.stream, piece.rows) for piece in pieces):
            tables[stream] = self.without_evidence(stream, rows)
        removed = {name: rows for name, rows in _rows_by((piece.relation, piece.rows) for piece in pieces)}
        changes = [piece.change for piece in pieces if piece.change is not None]
        case = case.with_tables(tuple(tables))
        if removed:
            relations = case.context.relations
            case = case.with_relations({name: without_rows(relations[name], rows) for name, rows in removed.items()})
        for change in changes:
            case = change(case)
        return case

    def without_evidence(self, stream: int, rows: Sequence[int]) -> pa.Table:
        """The rows of a stream if these were not there."""
        return without_rows(self.case.tables[stream], rows)

    # ------------------------------------------------------------ identity

    def identity_of(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that identify an answer."""
        return {name: value for name, value in answer.items() if name not in MEASURES | self.derived}

    def identity_without(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """What identifies the answer if some pieces are left out."""
        return self.identity_of(self.row)

    def _found(self, answers: Iterable[Row], identity: Mapping[str, Any]) -> Row | None:
        found = find(answers, identity)
        return dict(max(found, key=lambda row: row["probability"])) if found else None


def _rows_by(parts: Iterable[tuple[Any, Sequence[int]]]) -> Iterator[tuple[Any, list[int]]]:
    """The rows of each stream or relation."""
    rows: dict[Any, list[int]] = {}
    for name, numbers in parts:
        if name is not None:
            rows.setdefault(name, []).extend(numbers)
    yield from rows.items()


def described(values: Mapping[str, Any]) -> str:
    """Columns and their values in one line."""
    return ", ".join(f"{name} = {literal(value)}" for name, value in values.items())


def literal(value: Any) -> str:
    """A value as text that is safe to display."""
    if isinstance(value, str):
        return f"'{short(safe(value))}'"
    return short(value_text(pa.scalar(value))) if value is not None else "NULL"


def relation_pieces(case: Case, analysis: Analysis) -> list[Piece]:
    """Each row of the relations that the conditions of a query look up."""
    return [
        Piece("table row", f"{relation.name}({', '.join(map(literal, row.values()))})", None, None, name, (number,))
        for relation in {entry.name.lower(): entry for entry in analysis.query.declared_relations}.values()
        for name in [relation.name.lower()]
        for number, row in enumerate(case.context.relations[name].to_pylist())
    ]
