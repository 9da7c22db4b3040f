"""The plan of a query: its class, the reasons, and how it will be run. `explain` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anabranch import markup
from anabranch.errors import Finding, Span
from anabranch.language.nodes import NOWHERE


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a plan; `id` is stable, and is also used in logs and errors."""

    id: str
    does: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A constraint between two variables; `stated` is True if the user wrote it, False if it is implied."""

    one: str
    other: str
    label: str
    stated: bool


@dataclass(frozen=True, slots=True)
class ConstraintGraph:
    """Variables, each with its own conditions, and the constraints between them."""

    nodes: tuple[tuple[str, str], ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the number of answers follows from a sample of the rows (`explain --data`).

    Attributes
    ----------
    columns : tuple of tuple of str, or None
        For each stream, the columns whose values are sampled; None if blocks of time are sampled.
    power : int
        How many independently sampled values an answer depends on.
    window : float or None
        How long before an answer its first row can be, for blocks of time; None if there is no bound.
    """

    columns: tuple[tuple[str, ...], ...] | None = None
    power: int = 1
    window: float | None = None


def sampled_columns(streams: Sequence[str], columns: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...] | None:
    """For each stream its column, from pairs of a stream and a column; None if a stream has none, or several."""
    by_stream = {stream: {column for of, column in set(columns) if of == stream} for stream in streams}
    if any(len(names) != 1 for names in by_stream.values()):
        return None
    return tuple(tuple(names) for names in by_stream.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query will be answered.

    Attributes
    ----------
    query : str
        Its name.
    kind : str
        PATTERN, SEQUENCE, ...
    classification : str
        The class of the query.
    why : tuple of str
        The reasons for the class.
    method : str
        'exact' or 'sampling'.
    routing : str
        How rows are assigned to buckets, and so how far the work can be distributed.
    cost : str
        How time and memory grow.
    steps : tuple of Step
        From source to answer.
    streams : str
        'yes', or why it cannot run on a live stream.
    refused : Finding or None
        Why it cannot run at all.
    graph : ConstraintGraph or None
        The variables and the constraints between them; None for kinds without variables.
    """

    query: str
    kind: str
    classification: str
    why: tuple[str, ...]
    method: str = "exact"
    routing: str = ""
    cost: str = ""
    steps: tuple[Step, ...] = ()
    streams: str = "yes"
    refused: Finding | None = None
    graph: ConstraintGraph | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("class", self.classification), *(("why", reason) for reason in self.why)]
        if self.refused is not None:
            return [*facts, ("refused", self.refused.message), ("fix", self.refused.hint)]
        return [
            *facts,
            ("method", self.method),
            ("routing", self.routing),
            ("cost", self.cost),
            ("streaming", self.streams),
            *((step.id, step.does) for step in self.steps),
        ]

    def __str__(self) -> str:
        lines = [f"{self.query}: {self.kind}"]
        previous = ""
        for name, text in self._facts():
            lines.append(f"  {'' if name == previous else name:<10} {text}")
            previous = name
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return markup.output(self.query, markup.facts(self._facts()), note=self.kind)
