"""The columns of answers, without data: what a stream of answers (FROM QUERY) can name, and what it has by default."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.catalog import Column, Stream
from anabranch.language.types import Type

if TYPE_CHECKING:
    from anabranch.binding.bound import BoundOperand, BoundQuery

PROBABILITY = Column("probability", Type.DOUBLE)

#: The interval of a probability, and how it was computed.
INTERVAL = (Column("lower", Type.DOUBLE), Column("upper", Type.DOUBLE), Column("method", Type.STRING))


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The columns of the answers of a query; the field `car` of a struct `a` is the column `a.car`.

    Attributes
    ----------
    keys : those that a stream of the answers has by default as keys
    time : that it has by default as time; None if answers have no time
    others : all others with plain values
    """

    keys: tuple[Column, ...]
    time: Column | None
    others: tuple[Column, ...]

    @property
    def all(self) -> tuple[Column, ...]:
        """All columns that a stream of the answers can name."""
        return (*self.keys, *(() if self.time is None else (self.time,)), *self.others)

    def named(self, name: str) -> Column | None:
        """The column of a name, ignoring case."""
        return next((column for column in self.all if column.name.lower() == name.lower()), None)


def result_columns(bound: BoundQuery) -> AnswerColumns:
    """The columns of the rows of a query: those of its answers, or with PER, of its rows of several answers."""
    answers, per = bound.answers, bound.per
    if per is None:
        return answers
    begin, end = (replace(answers.time or Column("t"), name=name) for name in ("t_from", "t_to"))
    interval = INTERVAL if isinstance(per, PerWindow) or bound.kind == "PATTERN" else ()
    counts = () if isinstance(per, PerWindow) else (Column("count", Type.INTEGER),)
    numbers = (*counts, PROBABILITY, Column("expected", Type.DOUBLE))
    if isinstance(per, PerKeys):
        interval = ()
        if bound.kind == "RELATE":
            fields = (column for column in answers.others if "." in column.name)  # the end of the other operand
            return AnswerColumns(answers.keys, answers.time, (*fields, *numbers))
    return AnswerColumns(answers.keys, end, (begin, *numbers, *interval))


def gives_bounds(bound: BoundQuery) -> bool:
    """Whether the probabilities of the rows of a query are lower bounds, and not the probabilities of events."""
    if bound.bounded is not None:
        return True
    return bound.kind != "PATTERN" and isinstance(bound.per, PerWindow | PerEpisode | PerKeys)


def common_time(streams: Iterable[Stream]) -> Type:
    """The type of the times of answers over these streams."""
    types = {stream.time.type for stream in streams}
    if types == {Type.INTEGER, Type.DOUBLE}:
        return Type.DOUBLE
    return types.pop() if len(types) == 1 else Type.UNKNOWN


def field_columns(operand: BoundOperand, columns: Iterable[Column]) -> tuple[Column, ...]:
    """Columns of an operand's event as fields of its struct."""
    return tuple(Column(f"{operand.label}.{column.name}", column.type) for column in columns)


def event_columns(operand: BoundOperand, time: Type) -> tuple[Column, ...]:
    """All columns of an operand's event except its keys, as fields of its struct; `time` is the type of its times."""
    keys = {column.name for column in operand.stream.keys}
    times = operand.stream.time_names
    others = (column for column in operand.stream.columns if column.name not in keys)
    typed = (replace(column, type=time) if column.name.lower() in times else column for column in others)
    return field_columns(operand, typed)
