"""Questions after binding: names resolved to catalogue entries, conditions typed.

This is all that the families' analyses see of the language.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from anabranch.catalog import Relation, Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.nodes import NOWHERE
from anabranch.language.typed import Reference, Typed


@dataclass(frozen=True, slots=True)
class BoundGoal:
    """One goal of a PATTERN, with everything that is asked of its events.

    Attributes
    ----------
    stream : Stream
    terms : tuple of Variable, Literal or Wildcard
        One per KEY column, then one per VALUE column. Variable names are lower case. A literal beside a TIMESTAMP
        column is an integer, microseconds since 1970 UTC; beside a DATE column the days since 1970.
    filter : Typed or None
        The `[cond]`: part of what the goal can match.
    kleene : bool
        Whether the goal carries a `+`.
    shared : tuple of str
        The variables V of `+<V | cond>`; they are bound by the goal and exported.
    step_condition : Typed or None
        The cond of `+<V | cond>`, asked of each unfolding after it was chosen.
    selections : tuple of Typed
        The WHERE conjuncts that apply at the prefix ending with this goal: the first that binds all their variables.
    span : Span
    """

    stream: Stream
    terms: tuple[nodes.Term, ...]
    filter: Typed | None = None
    kleene: bool = False
    shared: tuple[str, ...] = ()
    step_condition: Typed | None = None
    selections: tuple[Typed, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def key_terms(self) -> tuple[nodes.Term, ...]:
        """The terms in key positions."""
        return self.terms[: len(self.stream.keys)]

    @property
    def variables(self) -> set[str]:
        """Every variable of the goal."""
        return {term.name for term in self.terms if isinstance(term, nodes.Variable)}

    @property
    def exported(self) -> set[str]:
        """The variables that later goals and WHERE can use."""
        return set(self.shared) if self.kleene else self.variables


@dataclass(frozen=True, slots=True)
class BoundPattern:
    """A PATTERN question. `group_by` holds (name as written, lower-case variable)."""

    name: str
    goals: tuple[BoundGoal, ...]
    group_by: tuple[tuple[str, str], ...] = ()
    threshold: float = 0.0
    accuracy: float = 0.01
    confidence: float = 0.99
    seed: int = 0
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the question."""
        return tuple(
            condition
            for goal in self.goals
            for condition in (goal.filter, goal.step_condition, *goal.selections)
            if condition is not None
        )

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the question names, each once, in order of appearance."""
        return tuple({goal.stream.name.lower(): goal.stream for goal in self.goals}.values())


@dataclass(frozen=True, slots=True)
class BoundOperand:
    """A name of the question and the stream its events come from.

    `label` is the name as written, which becomes a result column; `name` is lower case, as in typed conditions.
    """

    label: str
    name: str
    stream: Stream
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class BoundDelay:
    """The law of a delay, its parameters in the unit of the time column.

    `law` is EXPONENTIAL (mean), UNIFORM (lo, hi), GAMMA (shape, scale), LOGNORMAL (mu, sigma), NORMAL (mean, sd), or
    one that is read from `path`: EMPIRICAL, which becomes `atoms`, one for each delay that was seen; FITTED, which
    becomes one of the others.
    """

    law: str
    parameters: tuple[float, ...] = ()
    path: str | None = None
    atoms: tuple[float, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BoundRates:
    """`MISS BY column FROM relation`: the chance of a loss is that of the reader, which the column names."""

    column: str
    relation: Relation
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BoundComponent(BoundOperand):
    """A component of a SEQUENCE.

    `miss` is the chance that its reading is lost; None where it is that of its reader (`BoundSequence.rates`).
    """

    negative: bool = False
    miss: float | None = 0.0
    delay: BoundDelay | None = None

    @property
    def may_miss(self) -> bool:
        """Whether its reading can be lost, as far as the text says."""
        return self.miss is None or self.miss > 0


@dataclass(frozen=True, slots=True)
class BoundSequence:
    """A SEQUENCE question.

    `where` is as written: normal forms are the analysis' work. `within` is None where not given. With `ending_open`
    what stands at the end may be missing, or be negative. `emit` is a part of {'best', 'expired'}. `scoring` is
    'joint', what the paper scores, or 'posterior'.
    """

    name: str
    components: tuple[BoundComponent, ...]
    where: Typed | None = None
    within: float | None = None
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    ending_open: bool = False
    emit: frozenset[str] = frozenset()
    scoring: str = "joint"
    rates: BoundRates | None = None

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the question."""
        return () if self.where is None else (self.where,)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the question names, each once."""
        return _streams(self.components)


@dataclass(frozen=True, slots=True)
class BoundQuantified(BoundOperand):
    """An operand of a RELATE with its quantifier: ALL where `at_least` is None, SOME where it is 1."""

    at_least: int | None = 1


@dataclass(frozen=True, slots=True)
class BoundRelate:
    """A RELATE question.

    `relations` is the union asked for, as a subset of the 13 simple relations in a fixed order: composites are
    spelled out. `timeout` is None where not given. `complement` asks for a column of that name.
    """

    name: str
    first: BoundQuantified
    relations: tuple[str, ...]
    second: BoundQuantified
    where: Typed | None = None
    timeout: float | None = None
    complement: bool = False
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the question."""
        return () if self.where is None else (self.where,)

    @property
    def operands(self) -> tuple[BoundQuantified, BoundQuantified]:
        """Both operands."""
        return self.first, self.second

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the question names, each once."""
        return _streams(self.operands)


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """`plus - minus op bound`, or of its absolute value; `minus` is None for a single value.

    The two may be columns of one operand. `op` is one of `= <> < <= > >=`. A `bound` of None is NULL: nothing meets it.
    """

    plus: Reference
    minus: Reference | None
    absolute: bool
    op: str
    bound: float | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def values(self) -> tuple[Reference, ...]:
        """The values that it is about."""
        return (self.plus,) if self.minus is None else (self.plus, self.minus)


@dataclass(frozen=True, slots=True)
class BoundMonitor:
    """A MONITOR question over one to four operands.

    `conditions` are the conjuncts of WHERE: those that name no value (`row_conditions`), and those that do, which are
    `constraints` too. `semantics` is EXPECTED, MAY or MUST. `every`, `max_delay` and `buffer` are None where not given;
    `discard` is the policy of a full buffer, None where there is none.
    """

    name: str
    operands: tuple[BoundOperand, ...]
    conditions: tuple[Typed, ...] = ()
    within: float = 0.0
    semantics: str = "EXPECTED"
    every: float | None = None
    max_delay: float | None = None
    buffer: int | None = None
    discard: str | None = None
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    constraints: tuple[BoundConstraint, ...] = ()
    row_conditions: tuple[Typed, ...] = ()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the question names, each once."""
        return _streams(self.operands)


@dataclass(frozen=True, slots=True)
class BoundCounted(BoundOperand):
    """A variable of a CONSTRAIN; `count` above 1 stands for that many interchangeable events."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class BoundConstrain:
    """A CONSTRAIN question; `conditions` are the conjuncts of WHERE.

    A condition that names a counted variable once holds for each of its events; one that names it twice has
    references with `mention` 1 and 2, and holds for every pair. `strategy` is LOOSE, TIGHT, NOINDEX, or None where
    not given.
    """

    name: str
    variables: tuple[BoundCounted, ...]
    conditions: tuple[Typed, ...] = ()
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    strategy: str | None = None

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the question names, each once."""
        return _streams(self.variables)


BoundQuestion = BoundPattern | BoundSequence | BoundRelate | BoundMonitor | BoundConstrain


def _streams(operands: tuple[BoundOperand, ...]) -> tuple[Stream, ...]:
    return tuple({operand.stream.name.lower(): operand.stream for operand in operands}.values())
