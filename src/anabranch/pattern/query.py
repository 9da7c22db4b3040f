"""Bound PATTERN queries: names are resolved to catalog entries, and conditions are typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from anabranch.binding.answers import INTERVAL, PROBABILITY, AnswerColumns, common_time
from anabranch.binding.bound import BoundQuery, Wanted
from anabranch.binding.lineage import Origin
from anabranch.binding.typed import Typed
from anabranch.catalog import Column, Model, Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.nodes import NOWHERE
from anabranch.language.types import Type
from anabranch.pattern.syntax import Term


@dataclass(frozen=True, slots=True)
class BoundGoal:
    """One goal of a PATTERN, with all conditions on its events.

    Attributes
    ----------
    stream : Stream
    terms : tuple of Variable, Literal or Wildcard
        One per KEY column, then one per VALUE column. Variable names are in lower case. The literal of a TIMESTAMP
        column is in microseconds since 1970 UTC, that of a DATE column in days since 1970-01-01.
    filter : Typed or None
        The `[cond]`, which an event must satisfy to match the goal.
    kleene : bool
        Whether the goal has a `+`.
    shared : tuple of str
        The variables V of `+<V | cond>`; they are bound by the goal and exported.
    step_condition : Typed or None
        The cond of `+<V | cond>`, tested for each successor after it was chosen.
    selections : tuple of Typed
        The WHERE conjuncts that apply to the prefix ending with this goal, the first that binds all their variables.
    absent : bool
        Whether it is the goal of a NOT: an event that matches it ends the results that wait for the next goal.
    others : tuple of BoundGoal
        The further alternatives of `(g1 OR g2)`: streams, terms and filters for the same variables.
    span : Span
    """

    stream: Stream
    terms: tuple[Term, ...]
    filter: Typed | None = None
    kleene: bool = False
    shared: tuple[str, ...] = ()
    step_condition: Typed | None = None
    selections: tuple[Typed, ...] = ()
    absent: bool = False
    others: tuple[BoundGoal, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def alternatives(self) -> tuple[BoundGoal, ...]:
        """The alternatives of the goal: itself, and those after OR."""
        return (self, *self.others)

    @property
    def key_terms(self) -> tuple[Term, ...]:
        """The terms in key positions."""
        return self.terms[: len(self.stream.keys)]

    @property
    def variables(self) -> set[str]:
        """Every variable of the goal."""
        return {term.name for term in self.terms if isinstance(term, nodes.Variable)}

    @property
    def exported(self) -> set[str]:
        """The variables that later goals and WHERE can use."""
        if self.absent:
            return set()
        return set(self.shared) if self.kleene else self.variables


@dataclass(frozen=True, slots=True)
class BoundPattern(BoundQuery):
    """A PATTERN query.

    `group_by` holds (name as written, lower-case variable); `method` is an option of METHOD. `within` is the longest
    time from the first event to the last, in seconds for a TIMESTAMP, else in the unit of the time column.
    """

    kind: ClassVar[str] = "PATTERN"

    name: str
    goals: tuple[BoundGoal, ...]
    group_by: tuple[tuple[str, str], ...] = ()
    threshold: float = 0.0
    accuracy: float = 0.01
    confidence: float = 0.99
    seed: int = 0
    method: str | None = None
    within: float | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    early: bool = False

    @property
    def alternatives(self) -> tuple[BoundGoal, ...]:
        """The alternatives of all goals, in order."""
        return tuple(alternative for goal in self.goals for alternative in goal.alternatives)

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""
        return tuple(
            condition
            for goal in self.alternatives
            for condition in (goal.filter, goal.step_condition, *goal.selections)
            if condition is not None
        )

    @property
    def answers(self) -> AnswerColumns:
        """The columns of its answers, without PER."""
        keys = tuple(Column(written, self._type_of(variable)) for written, variable in self.group_by)
        status = (Column("status", Type.STRING),) if self.early else ()
        return AnswerColumns(keys, Column("t", common_time(self.streams)), (PROBABILITY, *INTERVAL, *status))

    def _type_of(self, variable: str) -> Type:
        """The type of a variable: DOUBLE if it is used for columns of different numeric types."""
        types = [
            column.type
            for goal in self.alternatives
            if variable in goal.exported
            for term, column in zip(goal.terms, (*goal.stream.keys, *goal.stream.values), strict=True)
            if isinstance(term, nodes.Variable) and term.name == variable
        ]
        return Type.DOUBLE if Type.DOUBLE in types else types[0]

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on, in terms of its columns."""
        return tuple(self._origin(stream) for stream in self.streams if stream.model is not Model.CERTAIN)

    def _origin(self, stream: Stream) -> Origin:
        """The rows of the group until the instant; of one instant for a single goal, and not longer ago than WITHIN."""
        written = {variable: name.lower() for name, variable in self.group_by}
        goals = [goal for goal in self.alternatives if goal.stream.name.lower() == stream.name.lower()]
        terms = [
            {term.name if isinstance(term, nodes.Variable) else None for term in position}
            for position in zip(*(goal.key_terms for goal in goals), strict=True)
        ]
        keys = tuple(written.get(next(iter(names)) or "") if len(names) == 1 else None for names in terms)
        within = 0.0 if len(self.goals) == 1 and not self.goals[0].kleene else self.within
        if within is None or stream.model is Model.MARKOV or self.per is not None:
            return Origin(stream.name.lower(), keys, None, "t" if self.per is None else "t_to")
        return Origin(stream.name.lower(), keys, "t", "t", within)

    @property
    def combines_rows(self) -> bool:
        """Whether an answer can depend on several rows: not if it has one event, whose whole key is grouped by."""
        (goal, *others), grouped = self.alternatives, {variable for _, variable in self.group_by}
        keys = {term.name if isinstance(term, nodes.Variable) else None for term in goal.key_terms}
        return bool(others or goal.kleene or not keys <= grouped)

    @property
    def wanted_values(self) -> tuple[Wanted, ...]:
        """The constants in the goals."""
        return tuple(
            Wanted(goal.stream, column.name, term.value)
            for goal in self.alternatives
            for column, term in zip((*goal.stream.keys, *goal.stream.values), goal.terms, strict=False)
            if isinstance(term, nodes.Literal) and term.value is not None
        )

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""
        return tuple({goal.stream.name.lower(): goal.stream for goal in self.alternatives}.values())


@dataclass(frozen=True, slots=True)
class Connective:
    """`AND`, `OR` or `NOT` of parts; a part that is a number is the operand with this index."""

    op: str
    parts: tuple[Truth, ...]


Truth = int | Connective

#: Whether something is true, in one world or in many: anything with `&`, `|` and `~`.
Mask = Any


@dataclass(frozen=True, slots=True)
class BoundCombination(BoundPattern):
    """A combination of PATTERN queries with the same grouping; `goals` has those of all operands, in order.

    Attributes
    ----------
    operands : the distinct queries that it combines; their THRESHOLD is not used
    formula, given : what is asked for, and what it is conditional on (None without GIVEN)
    definitions : the operands as text
    """

    operands: tuple[BoundPattern, ...] = ()
    formula: Truth = 0
    given: Truth | None = None
    definitions: tuple[str, ...] = ()

    def truth(self, true: Sequence[Mask], everywhere: Mask) -> tuple[Mask, Mask]:
        """Where the formula is true together with what it is conditional on, and where the latter is.

        `true` has a mask for each operand, `everywhere` is the mask that is always true.
        """
        given = everywhere if self.given is None else _evaluated(self.given, true, everywhere)
        return _evaluated(self.formula, true, everywhere) & given, given

    def truth_of_set(self, operands: int) -> tuple[bool, bool]:
        """`truth` if exactly the operands whose bits are set are true."""
        asked, given = self.truth([operands >> number & 1 for number in range(len(self.operands))], 1)
        return bool(asked), bool(given)

    @property
    def true_by_default(self) -> bool:
        """Whether it is true if no operand is, so that instants without events matter."""
        return self.truth_of_set(0)[0]

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on: those of all operands."""
        return tuple(dict.fromkeys(origin for operand in self.operands for origin in operand.origins))

    @property
    def combined_definitions(self) -> tuple[str, ...]:
        """The operands as text: they are part of what the query is."""
        return self.definitions


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCascade(BoundCombination):
    """A PATTERN over answers of PATTERN queries, which are its `operands`.

    Attributes
    ----------
    outer : the query over the answers
    reads : for each stream of the outer query, by lower-case name, the number of the operand whose answers it has
    """

    outer: BoundPattern
    reads: tuple[tuple[str, int], ...]

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on: those of its group until its instant."""
        written = {variable: name.lower() for name, variable in self.group_by}
        names = {name.lower(): written.get(variable) for name, variable in self.operands[0].group_by}
        parts = (origin for operand in self.operands for origin in operand.origins)
        return tuple(dict.fromkeys(replace(origin.renamed(names), until="t") for origin in parts))

    def operand_of(self, stream: Stream) -> int:
        """The number of the operand whose answers a stream of the outer query has."""
        return dict(self.reads)[stream.name.lower()]


def _evaluated(formula: Truth, true: Sequence[Mask], everywhere: Mask) -> Mask:
    if isinstance(formula, int):
        return true[formula]
    first, *others = (_evaluated(part, true, everywhere) for part in formula.parts)
    if formula.op == "NOT":
        return everywhere & ~first
    for other in others:
        first = first & other if formula.op == "AND" else first | other
    return first
